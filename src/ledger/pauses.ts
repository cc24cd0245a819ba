import { type Database, epochMsSql } from '../postgres/database.ts'
import type { Operator, WhoAndReason } from './operator/operator.ts'

/** The pause that was raised last comes first. */
export async function readStandingPauses(db: Database): Promise<{ reason: string; detail: string }[]> {
  const { rows } = await db.query<{ reason: string; detail: string }>(
    'select reason, detail from outboxd.standing_pause order by set_at desc',
  )
  return rows
}

export const describeOperatorPause = ({ who, reason }: WhoAndReason): string =>
  reason === null ? `(${who})` : `${reason} (${who})`

/** @param durationMs null for a pause without an end */
export async function raiseOperatorPause({ ledger, actor }: Operator, durationMs: number | null): Promise<void> {
  await ledger.query(
    `with pause as (
       insert into outboxd.pause (reason, until, detail)
       values ('operator', clock_timestamp() + $2::float8 * interval '1 ms', $1)
       on conflict (reason) do update set since = excluded.since, until = excluded.until, detail = excluded.detail, set_at = excluded.set_at
       returning since, until
     )
     insert into outboxd.operator_act (at, act, who, account, reason, until)
     select since, 'pause', $3, $4, $5, until from pause`,
    [describeOperatorPause(actor), durationMs, actor.who, actor.account, actor.reason],
  )
}

export interface OperatorPause {
  reason: 'operator'
  sinceMs: number
  /** Null: until an operator resumes. */
  untilMs: number | null
  detail: string
  /** Null if no act is logged for it. */
  who: string | null
}

export async function readOperatorPause(db: Database): Promise<OperatorPause | null> {
  const { rows } = await db.query<OperatorPause>(
    `select reason, ${epochMsSql('since')} as "sinceMs", ${epochMsSql('until')} as "untilMs", detail,
       (select a.who from outboxd.operator_act a where a.act = 'pause' and a.at = p.since limit 1) as who
     from outboxd.standing_pause p where reason = 'operator'`,
  )
  return rows[0] ?? null
}

/** @returns the pause's text; null if no operator's pause was active */
export async function endOperatorPause({ ledger, actor: { who, account, reason } }: Operator): Promise<string | null> {
  const { rows } = await ledger.query<{ detail: string; isOn: boolean }>(
    `with ended as (
       delete from outboxd.pause where reason = 'operator'
       returning detail, until is null or until > clock_timestamp() as is_on
     ), act as (
       insert into outboxd.operator_act (act, who, account, reason, detail)
       select 'resume', $1, $2, $3, jsonb_build_object('ended', detail) from ended where is_on
     )
     select detail, is_on as "isOn" from ended`,
    [who, account, reason],
  )
  return rows[0]?.isOn ? rows[0].detail : null
}
