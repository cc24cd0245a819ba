import type { PauseReason } from '../../model.ts'
import type { Database } from '../../postgres/database.ts'
import { activePause } from '../activePause.ts'

/** Pauses everyone, or changes the operator's pause that stands. @param forMs null: until `endOperatorPause` */
export async function raiseOperatorPause(db: Database, detail: string, forMs: number | null): Promise<void> {
  await db.query(
    `insert into outboxd.pause (reason, until, detail)
     values ('operator', clock_timestamp() + $2::float8 * interval '1 ms', $1)
     on conflict (reason) do update set since = excluded.since, until = excluded.until, detail = excluded.detail,
       probe_until = null`,
    [detail, forMs],
  )
}

/** Ends the operator's pause. @returns what was said when it was raised; null where there was none, or it was over by itself */
export async function endOperatorPause(db: Database): Promise<string | null> {
  const { rows } = await db.query<{ detail: string; isOn: boolean }>(
    `delete from outboxd.pause where reason = 'operator' returning detail, ${activePause} as "isOn"`,
  )
  return rows[0]?.isOn ? rows[0].detail : null
}

/**
 * Lets the other pauses come to their end now: one trial request goes before all resume, as it does at the end of
 * each.
 */
export async function shortenPauses(db: Database): Promise<PauseReason[]> {
  const { rows } = await db.query<{ reason: PauseReason }>(
    `update outboxd.pause set until = least(until, clock_timestamp()), probe_until = null
     where reason <> 'operator' and cleared_at is null returning reason`,
  )
  return rows.map((row) => row.reason)
}
