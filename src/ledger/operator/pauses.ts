import type { PauseReason } from '../../model.ts'
import { inTransaction } from '../../postgres/database.ts'
import { isActivePauseSql } from '../pauses.ts'
import { markRefusalsAsBelieved } from '../refusals.ts'
import { logOperatorAct, type Operator, type StatedActor } from './operator.ts'

export const describeOperatorPause = ({ who, reason }: StatedActor): string =>
  reason === null ? `(${who})` : `${reason} (${who})`

export async function raiseOperatorPause({ ledger, actor }: Operator, forMs: number | null): Promise<void> {
  await ledger.query(
    `with pause as (
       insert into outboxd.pause (reason, until, detail)
       values ('operator', clock_timestamp() + $2::float8 * interval '1 ms', $1)
       on conflict (reason) do update set since = excluded.since, until = excluded.until, detail = excluded.detail,
         probe_until = null
       returning since, until
     )
     insert into outboxd.operator_act (at, act, who, account, reason, until)
     select since, 'pause', $3, $4, $5, until from pause`,
    [describeOperatorPause(actor), forMs, actor.who, actor.account, actor.reason],
  )
}

/** @returns the pause's text; null if nothing was paused */
export async function endOperatorPause({ ledger, actor: { who, account, reason } }: Operator): Promise<string | null> {
  const { rows } = await ledger.query<{ detail: string; isOn: boolean }>(
    `with ended as (
       delete from outboxd.pause where reason = 'operator' returning detail, ${isActivePauseSql} as is_on
     ), act as (
       insert into outboxd.operator_act (act, who, account, reason, detail)
       select 'resume', $1, $2, $3, jsonb_build_object('ended', detail) from ended where is_on
     )
     select detail, is_on as "isOn" from ended`,
    [who, account, reason],
  )
  return rows[0]?.isOn ? rows[0].detail : null
}

/** Ends all pauses but the operator's. As always, a trial goes first. */
export async function endAutomaticPauses({
  ledger,
  actor: { who, account, reason },
}: Operator): Promise<PauseReason[]> {
  const { rows } = await ledger.query<{ reason: PauseReason }>(
    `with shortened as (
       update outboxd.pause set until = least(until, clock_timestamp()), probe_until = null
       where reason <> 'operator' and cleared_at is null and until is not null returning reason
     ), act as (
       insert into outboxd.operator_act (act, who, account, reason, detail)
       select 'resume --all', $1, $2, $3, jsonb_build_object('pauses', json_agg(reason order by reason)) from shortened
       having count(*) > 0
     )
     select reason from shortened`,
    [who, account, reason],
  )
  return rows.map((row) => row.reason)
}

export function resumeDespiteMassRefusals({ ledger, actor }: Operator, forMs: number): Promise<string[]> {
  return inTransaction(ledger, async (db) => {
    const said = await markRefusalsAsBelieved(db, forMs)
    if (said.length > 0) await logOperatorAct(db, actor, 'resume --believe-refusals', { said })
    return said
  })
}
