import type pg from 'pg'
import { z } from 'zod'
import { orderColumns, transactionColumns } from '../control/shownRows.ts'
import { time } from '../storage/sqlValues.ts'

/** What is to become of something that is being processed. */
export type CourseChange =
  | { kind: 'finish' /** Null: completed. */; errorCode: string | null }
  | { kind: 'hold' }
  /** Processing goes on as was decided on arrival; what would be done by now is done now. */
  | { kind: 'let go' }

export type Changed =
  | { kind: 'changed' /** As the control API shows it. */; row: Record<string, unknown> }
  | { kind: 'unknown' }
  | { kind: 'finished'; outcome: string; at: string }

/** An id, and whose; null: of whichever client has it, or of all who chose the same. */
export interface Which {
  id: string
  client: string | null
}

/** Changes a transaction that is not finished at `nowUs`. */
export async function changeTransaction(
  pool: pg.Pool,
  { id, client }: Which,
  change: CourseChange,
  nowUs: number,
): Promise<Changed> {
  const { rows } = await pool.query(
    `
    update sandbox.transactions
    set held = $2 = 'hold', statuses = null,
      done_at = ${doneAt},
      outcome = case when $2 <> 'finish' then outcome when $4::text is null then 'completed' else 'failed' end,
      error_code = case when $2 <> 'finish' then error_code else $4 end
    where id = $1 and ($5::text is null or client = $5) and (held or done_at > ${time('$3::bigint')})
    returning ${transactionColumns}
    `,
    [id, change.kind, nowUs, change.kind === 'finish' ? change.errorCode : null, client],
  )
  if (rows.length > 0) return { kind: 'changed', row: rows[0] }
  const found = await pool.query(
    `select ${transactionColumns} from sandbox.transactions where id = $1 and ($2::text is null or client = $2)`,
    [id, client],
  )
  return refusalOf(found.rows)
}

/** Changes an order that is not finished at `nowUs`. */
export async function changeOrder(
  pool: pg.Pool,
  { id, client }: Which,
  change: CourseChange,
  nowUs: number,
): Promise<Changed> {
  if (!z.guid().safeParse(id).success) return { kind: 'unknown' }
  const { rows } = await pool.query(
    `
    update sandbox.orders set held = $2 = 'hold', statuses = null, done_at = ${doneAt}
    where id = $1 and ($4::text is null or client = $4) and (held or done_at > ${time('$3::bigint')})
    returning ${orderColumns}
    `,
    [id, change.kind, nowUs, client],
  )
  if (rows.length > 0) return { kind: 'changed', row: rows[0] }
  const found = await pool.query(
    `
    select 'completed' as outcome, ${orderColumns} from sandbox.orders
    where id = $1 and ($2::text is null or client = $2)
    `,
    [id, client],
  )
  return refusalOf(found.rows)
}

/** Let go, what was held past its time is done now, and not at a time at which it was seen pending. */
const doneAt = `
  case $2
    when 'finish' then ${time('$3::bigint')}
    when 'let go' then case when held then greatest(done_at, ${time('$3::bigint')}) else done_at end
    else done_at
  end`

function refusalOf([row]: { outcome: string; doneAt: string }[]): Changed {
  return row === undefined ? { kind: 'unknown' } : { kind: 'finished', outcome: row.outcome, at: row.doneAt }
}
