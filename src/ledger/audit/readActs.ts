import type { Database } from '../../postgres/database.ts'

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

const ms = (time: string) => `extract(epoch from ${time})::float8 * 1000`

/** The acts of a span, oldest first. */
export async function* readActs(
  db: Database,
  { sinceMs, untilMs }: { sinceMs: number | null; untilMs: number | null },
): AsyncGenerator<AuditedAct> {
  let after = '0'
  for (;;) {
    const { rows } = await db.query<AuditedAct & { id: string }>(
      `select 'act' as kind, id, ${ms('at')} as "atMs", act, who, reason, account, ${ms('until')} as "untilMs", detail
       from outboxd.operator_act
       where id > $1 and at >= coalesce($2::timestamptz, '-infinity') and at < coalesce($3::timestamptz, 'infinity')
       order by id limit ${pageRows}`,
      [
        after,
        sinceMs === null ? null : new Date(sinceMs).toISOString(),
        untilMs === null ? null : new Date(untilMs).toISOString(),
      ],
    )
    for (const { id, ...act } of rows) {
      after = id
      yield act
    }
    if (rows.length < pageRows) return
  }
}
