import { setTimeout } from 'node:timers/promises'
import { readServedOutbox, type StartPosition } from '../ledger/binding.ts'
import { tableWriterTransactionsSql } from '../postgres/locks.ts'
import { isInvalidValueError } from '../postgres/sqlState.ts'
import { columnOf, prefixedColumnSql, type TableShape, tableAndPartitionOidsSql } from './columns.ts'
import { withSearchPathIfNeeded } from './openTable.ts'
import type { Outbox } from './outbox.ts'
import { isMarkedOnCapture } from './outboxTable.ts'
import { OutboxTableUnusable } from './readTableShape.ts'
import { notBeforeStartSql, rowExpressions } from './rowExpressions.ts'

export interface RowsBeforeStart {
  rows: number
  oldest: string | null
}

export const rowsBeforeStartMax = 10_000

/**
 * Counts the waiting rows before a start position, by default the ledger's. Null if rows do not show that they wait.
 */
export async function countRowsBeforeStart(outbox: Outbox, start?: StartPosition): Promise<RowsBeforeStart | null> {
  const position = start ?? (await readServedOutbox(outbox.ledger)).start
  const { described } = outbox
  const { shape } = await outbox.inspect()
  if (!isMarkedOnCapture(described) || (position.id === null && position.at === null)) return null
  const { waits, createdAt, from } = rowExpressions(described, shape, { id: null, at: null })
  const { rows } = await withSearchPathIfNeeded(outbox.pool, shape).query<RowsBeforeStart>(
    `select count(*)::int as rows, min(at) as oldest from (
       select ${createdAt} as at from ${from}
       where ${waits} and not (true${notBeforeStartSql(described, shape, position)}) limit ${rowsBeforeStartMax}
     ) hidden`,
  )
  return rows[0] ?? null
}

export async function isRowBeforeStart(outbox: Outbox, outboxId: string): Promise<boolean> {
  const { start } = await readServedOutbox(outbox.ledger)
  const { described } = outbox
  const { shape } = await outbox.inspect()
  const { rowCount } = await withSearchPathIfNeeded(outbox.pool, shape).query(
    `select from ${shape.qualified} o where ${prefixedColumnSql(described.id)}::text = $1 and not (true${notBeforeStartSql(described, shape, start)})`,
    [outboxId],
  )
  return (rowCount ?? 0) > 0
}

/** A start position may be above the highest id by this number, because the ERP may be inserting rows. */
const aheadMax = 1_000

/**
 * Says why a start position cannot be used; null if it can. Refuses positions in the future, because they would hide
 * rows that are not written yet.
 *
 * @throws OutboxTableUnusable if the table lacks a column that the position needs
 */
export async function findStartPositionProblem(outbox: Outbox, start: StartPosition): Promise<string | null> {
  const { pool, described } = outbox
  const { shape } = await outbox.inspect()
  try {
    const { waits, from } = rowExpressions(described, shape, start)
    await withSearchPathIfNeeded(pool, shape).query(`explain select from ${from} where ${waits}`)
  } catch (error) {
    if (start.id !== null && isInvalidValueError(error))
      return `--start id:${start.id}: not a value of the column ${described.id}`
    throw error
  }
  if (start.at !== null) {
    const { rowCount } = await pool.query('select where $1::timestamptz > clock_timestamp()', [start.at])
    if ((rowCount ?? 0) > 0) return `--start since:${start.at}: this time is in the future`
  }
  if (start.id === null || !/^(bigint|integer|smallint|numeric)$/.test(columnOf(shape, described.id).baseType))
    return null
  const { rows } = await withSearchPathIfNeeded(pool, shape).query<{ highest: string }>(
    `select greatest((select max(${prefixedColumnSql(described.id)}) from ${shape.qualified} o)::numeric,
       case when has_sequence_privilege(own, 'select, usage') then pg_sequence_last_value(own)::numeric end, 0)::text as highest
     from (select pg_get_serial_sequence($1, $2)::regclass as own) sequence`,
    [shape.qualified, described.id],
  )
  const highest = rows[0]?.highest ?? '0'
  return Number(start.id) > Number(highest) + aheadMax
    ? `--start id:${start.id}: this id is in the future, the highest is ${highest}`
    : null
}

const waitMaxMs = 10_000
const lookEveryMs = 100

/**
 * Reads the position for `--start now`: the next id if the table's own sequence fills it, or else the present time.
 * Reads the id while no session writes the table, because only then no lower id can follow (see
 * `tableWriterTransactionsSql`).
 *
 * @throws OutboxTableUnusable if the table has neither such an id nor a creation time
 */
export async function readPositionForStartNow(outbox: Outbox): Promise<StartPosition> {
  const { pool, described } = outbox
  const { shape } = await outbox.inspect()
  const { qualified } = shape
  const isNumber = /^(bigint|integer|smallint)$/.test(columnOf(shape, described.id).baseType)
  const { rows } = await pool.query<{ sequence: string | null; now: string }>(
    `select pg_get_serial_sequence($1, $2) as sequence,
       to_char(clock_timestamp() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as now`,
    [qualified, described.id],
  )
  if (isNumber && rows[0]?.sequence != null) return { id: await nextId(outbox, shape), at: null }
  if (described.createdAt !== null) return { id: null, at: rows[0]?.now ?? null }
  throw new OutboxTableUnusable(
    `the table ${qualified} has no id from its own sequence, and its description names no created_at. Give the first row to send as --start id:N`,
  )
}

async function nextId({ pool, described }: Outbox, shape: TableShape): Promise<string> {
  const { qualified } = shape
  const sql = `select (coalesce(max(${prefixedColumnSql(described.id)}), 0) + 1)::text as next, exists (${tableWriterTransactionsSql(tableAndPartitionOidsSql(qualified))}) as busy
    from ${qualified} o`
  for (let waitedMs = 0; waitedMs < waitMaxMs; waitedMs += lookEveryMs) {
    const { rows } = await withSearchPathIfNeeded(pool, shape).query<{ next: string; busy: boolean }>(sql)
    if (rows[0]?.busy === false) return rows[0].next
    await setTimeout(lookEveryMs)
  }
  throw new OutboxTableUnusable(
    `sessions write the table ${qualified} without a pause, so "now" cannot be determined. Give --start id:N or since:D`,
  )
}
