import type pg from 'pg'
import { z } from 'zod'
import { orderColumns, transactionColumns } from '../control/shownRows.ts'
import type { Parts } from '../exchange.ts'
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

/** A transaction or an order of a client: another may have one of the same id. */
export interface Which {
  of: 'transaction' | 'order'
  id: string
  client: string
}

const owners = {
  transaction: 'select client from sandbox.transactions where id = $1 order by client',
  order: 'select client from sandbox.orders where id = $1 order by client',
}

/** The clients that have a transaction or an order of this id. */
export async function ownersOf(pool: pg.Pool, of: Which['of'], id: string): Promise<string[]> {
  if (of === 'order' && !z.guid().safeParse(id).success) return []
  const { rows } = await pool.query<{ client: string }>(owners[of], [id])
  return rows.map(({ client }) => client)
}

type Needed = Pick<Parts, 'pool' | 'clock' | 'mutex'>

/** Changes what is not finished; of two that want to finish it, the second finds it finished. */
export async function changeCourse(parts: Needed, which: Which, change: CourseChange): Promise<Changed> {
  return alone(parts, which, async (nowUs) => {
    const update = which.of === 'order' ? updateOrder : updateTransaction
    const row = await update(parts.pool, which, change, nowUs)
    return row === undefined ? findFinished(parts.pool, which) : { kind: 'changed', row }
  })
}

/**
 * Now, at a moment at which nobody changes its course. What is read after it and had ended by then ends no other way: whoever
 * changes it from now on comes later, and finds it finished.
 */
export async function settledNowUs(parts: Needed, which: Which): Promise<number> {
  return alone(parts, which, async (nowUs) => nowUs)
}

/** One sandbox serves a database, so a lock in its memory does, and polls need none of Postgres. */
async function alone<T>({ mutex, clock }: Needed, { of, id, client }: Which, act: (nowUs: number) => Promise<T>) {
  const release = await mutex.take(`course of ${of} ${client} ${of === 'order' ? id.toLowerCase() : id}`)
  try {
    return await act(clock.nowUs())
  } finally {
    release()
  }
}

type Row = Record<string, unknown>

/** @returns undefined where it is finished, or there is none */
async function updateTransaction(
  pool: pg.Pool,
  { id, client }: Which,
  change: CourseChange,
  nowUs: number,
): Promise<Row | undefined> {
  const { rows } = await pool.query<Row>(
    `
    update sandbox.transactions
    set held = $2 = 'hold', statuses = null,
      done_at = ${doneAt},
      outcome = case when $2 <> 'finish' then outcome when $4::text is null then 'completed' else 'failed' end,
      error_code = case when $2 <> 'finish' then error_code else $4 end
    where id = $1 and client = $5 and (held or done_at > ${time('$3::bigint')})
    returning ${transactionColumns}
    `,
    [id, change.kind, nowUs, change.kind === 'finish' ? change.errorCode : null, client],
  )
  return rows[0]
}

/** @returns undefined where it is finished, or there is none */
async function updateOrder(
  pool: pg.Pool,
  { id, client }: Which,
  change: CourseChange,
  nowUs: number,
): Promise<Row | undefined> {
  const { rows } = await pool.query<Row>(
    `
    update sandbox.orders set held = $2 = 'hold', statuses = null, done_at = ${doneAt}
    where id = $1 and client = $4 and (held or done_at > ${time('$3::bigint')})
    returning ${orderColumns}
    `,
    [id, change.kind, nowUs, client],
  )
  return rows[0]
}

/** Let go, what was held past its time is done now, and not at a time at which it was seen pending. */
const doneAt = `
  case $2
    when 'finish' then ${time('$3::bigint')}
    when 'let go' then case when held then greatest(done_at, ${time('$3::bigint')}) else done_at end
    else done_at
  end`

const found = {
  transaction: `select ${transactionColumns} from sandbox.transactions where id = $1 and client = $2`,
  order: `select 'completed' as outcome, ${orderColumns} from sandbox.orders where id = $1 and client = $2`,
}

async function findFinished(pool: pg.Pool, { of, id, client }: Which): Promise<Changed> {
  const { rows } = await pool.query<{ outcome: string; doneAt: string }>(found[of], [id, client])
  const [row] = rows
  return row === undefined ? { kind: 'unknown' } : { kind: 'finished', outcome: row.outcome, at: row.doneAt }
}
