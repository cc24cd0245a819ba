import type { Database } from '../../postgres/database.ts'
import { epochMs, isoTime } from '../times.ts'

/** What a person did that is no step of one record. Times in epoch milliseconds. */
export interface AuditedAct {
  kind: 'act'
  atMs: number
  /** As it is said after `outboxd`. */
  act: string
  who: string
  reason: string | null
  account: string | null
  /** Of a pause: when it ends by itself. */
  untilMs: number | null
  detail: Record<string, unknown> | null
}

const pageRows = 500

/** The acts of a span, oldest first. */
export async function* readActs(
  db: Database,
  { sinceMs, untilMs }: { sinceMs: number | null; untilMs: number | null },
): AsyncGenerator<AuditedAct> {
  let after = '0'
  for (;;) {
    const { rows } = await db.query<AuditedAct & { id: string }>(
      `select 'act' as kind, id, ${epochMs('at')} as "atMs", act, who, reason, account, ${epochMs('until')} as "untilMs", detail
       from outboxd.operator_act
       where id > $1 and at >= coalesce($2::timestamptz, '-infinity') and at < coalesce($3::timestamptz, 'infinity')
       order by id limit ${pageRows}`,
      [after, isoTime(sinceMs), isoTime(untilMs)],
    )
    for (const { id, ...act } of rows) {
      after = id
      yield act
    }
    if (rows.length < pageRows) return
  }
}
