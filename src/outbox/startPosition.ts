import { setTimeout } from 'node:timers/promises'
import type { ServedOutbox, StartPosition } from '../ledger/binding.ts'
import { pluralize } from '../plainText.ts'
import { queryOne } from '../postgres/database.ts'
import { tableWriterTransactionsSql } from '../postgres/locks.ts'
import { isInvalidValueError } from '../postgres/sqlState.ts'
import { columnOf, prefixedColumnSql, type TableShape, tableAndPartitionOidsSql } from './columns.ts'
import { ourColumns } from './migrateOutbox.ts'
import { withSearchPathIfNeeded } from './openTable.ts'
import type { Outbox } from './outbox.ts'
import { type OutboxTable, tableFormOf } from './outboxTable.ts'
import { OutboxTableUnusable } from './readTableShape.ts'
import { rowExpressions } from './rowExpressions.ts'
import { stateExpressions } from './stateForms.ts'

export interface RowsBeforeStart {
  rows: number
  oldest: string | null
}

export const rowsBeforeStartMax = 10_000

/** Counts the waiting rows before the ledger's start position. Null if rows do not show that they wait. */
export async function countRowsBeforeStart(outbox: Outbox): Promise<RowsBeforeStart | null> {
  const { db, form, table, rows } = await outbox.open()
  const { from, filtered, begins, createdAt } = rows
  if (form !== 'marked' || begins === '') return null
  return queryOne<RowsBeforeStart>(
    db,
    `select count(*)::int as rows, min(at) as oldest from (
       select ${createdAt} as at from ${from}
       where ${stateExpressions(table.state)?.waitsSql}${filtered} and not (true${begins}) limit ${rowsBeforeStartMax}
     ) hidden`,
  )
}

const rowsNamedMax = 10_000

/**
 * Says what to answer before the first daemon may start: where to begin. Null if `start` says so, if the ledger has
 * records, or if nothing can have been sent: the table is empty, or is one that `migrate --outbox` made and no row is
 * marked.
 */
export async function findStartQuestion(outbox: Outbox): Promise<string | null> {
  const { described, ledger, pool } = outbox
  const { shape } = await outbox.inspect()
  const { hasRecords } = await queryOne<{ hasRecords: boolean }>(
    ledger,
    'select exists (select from outboxd.submission) as "hasRecords"',
  )
  if (described.start !== null || hasRecords) return null
  const { rows } = await queryOne<{ rows: number }>(
    withSearchPathIfNeeded(pool, shape),
    `select count(*)::int as rows from (select from ${shape.qualified} limit ${rowsNamedMax + 1}) counted`,
  )
  if (rows === 0 || (isOwnTable(outbox, shape) && !(await hasMarkedRow(outbox, shape)))) return null
  const count = rows > rowsNamedMax ? `more than ${rowsNamedMax} rows` : pluralize(rows, 'row')
  const place =
    described.file === null
      ? `mappings/outbox.yaml (\`outboxd describe ${described.table} --write\` makes it)`
      : described.file
  return `the ledger is new, and the table ${shape.qualified} has ${count}. Say where to begin, in a line of ${place}:
  start: now        rows that exist when the first daemon starts are not sent
  start: beginning  all waiting rows are sent
  start: id:N       rows with the id N or above are sent, if they wait
If a former ledger knew these rows, some may have been sent: restore it, or run \`outboxd recover\` first`
}

function isOwnTable({ described }: Outbox, { columns }: TableShape): boolean {
  const hasOurColumns = columns.size === ourColumns.length && ourColumns.every((name) => columns.has(name))
  return hasOurColumns && tableFormOf(described) === 'marked'
}

async function hasMarkedRow({ described, pool }: Outbox, shape: TableShape): Promise<boolean> {
  const waits = stateExpressions(described.state)?.waitsSql
  const { any } = await queryOne<{ any: boolean }>(
    withSearchPathIfNeeded(pool, shape),
    `select exists (select from ${shape.qualified} o where (${waits}) is not true or o.transaction_id is not null) as any`,
  )
  return any
}

/**
 * Reads the position that `start` of `outbox.yaml` means now.
 *
 * @throws OutboxTableUnusable if the position cannot be used, or `now` cannot be determined
 */
export async function readStartPosition(outbox: Outbox): Promise<StartPosition> {
  const { start } = outbox.described
  if (start === null || start === 'beginning') return { id: null, at: null }
  if (start === 'now') return readPresentPosition(outbox)
  const position = { id: start.slice('id:'.length), at: null }
  const problem = await findStartIdProblem(outbox, position)
  if (problem !== null) throw new OutboxTableUnusable(`start: ${start} in outbox.yaml ${problem}`)
  return position
}

/** Says that `start` of `outbox.yaml` has no effect, because the ledger has begun; null if it has not. */
export function ignoredStartMessage({ start }: OutboxTable, { identity, startGiven }: ServedOutbox): string | null {
  if (start === null || identity === null) return null
  const began = startGiven === null ? 'without `start`' : `with \`start: ${startGiven}\``
  return `\`start: ${start}\` in outbox.yaml has no effect, because the ledger began ${began}. Delete the line, so that a daemon with a new ledger asks again if this one is lost`
}

/** A start position may be above the highest id by this number, because the ERP may be inserting rows. */
const aheadMax = 1_000

/** Refuses an id in the future, because it would hide rows that are not written yet. */
async function findStartIdProblem(outbox: Outbox, start: { id: string; at: null }): Promise<string | null> {
  const { shape } = await outbox.inspect()
  const db = withSearchPathIfNeeded(outbox.pool, shape)
  try {
    const { waits, from } = rowExpressions(outbox.described, shape, start)
    await db.query(`explain select from ${from} where ${waits}`)
  } catch (error) {
    if (isInvalidValueError(error)) return `is not a value of the column ${outbox.described.id}`
    throw error
  }
  if (!/^(bigint|integer|smallint|numeric)$/.test(columnOf(shape, outbox.described.id).baseType)) return null
  const { highest } = await queryOne<{ highest: string }>(
    db,
    `select greatest((select max(${prefixedColumnSql(outbox.described.id)}) from ${shape.qualified} o)::numeric,
       case when has_sequence_privilege(own, 'select, usage') then pg_sequence_last_value(own)::numeric end, 0)::text as highest
     from (select pg_get_serial_sequence($1, $2)::regclass as own) sequence`,
    [shape.qualified, outbox.described.id],
  )
  return Number(start.id) > Number(highest) + aheadMax ? `is in the future, because the highest id is ${highest}` : null
}

const waitMaxMs = 10_000
const lookEveryMs = 100

/**
 * Reads the position for `start: now`: the next id if the table's own sequence fills it, or else the present time.
 * Reads the id while no session writes the table, because only then no lower id can follow (see
 * `tableWriterTransactionsSql`).
 *
 * @throws OutboxTableUnusable if the table has neither such an id nor a creation time
 */
async function readPresentPosition(outbox: Outbox): Promise<StartPosition> {
  const { pool, described } = outbox
  const { shape } = await outbox.inspect()
  const { qualified } = shape
  const isNumber = /^(bigint|integer|smallint)$/.test(columnOf(shape, described.id).baseType)
  const { sequence, now } = await queryOne<{ sequence: string | null; now: string }>(
    pool,
    `select pg_get_serial_sequence($1, $2) as sequence,
       to_char(clock_timestamp() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as now`,
    [qualified, described.id],
  )
  if (isNumber && sequence !== null) return { id: await nextId(outbox, shape), at: null }
  if (described.createdAt !== null) return { id: null, at: now }
  throw new OutboxTableUnusable(
    `the table ${qualified} has no id from its own sequence, and its description names no created_at. Name a created_at in outbox.yaml, or the first row to send: start: id:N`,
  )
}

async function nextId({ pool, described }: Outbox, shape: TableShape): Promise<string> {
  const { qualified } = shape
  const sql = `select (coalesce(max(${prefixedColumnSql(described.id)}), 0) + 1)::text as next, exists (${tableWriterTransactionsSql(tableAndPartitionOidsSql(qualified))}) as busy
    from ${qualified} o`
  for (let waitedMs = 0; waitedMs < waitMaxMs; waitedMs += lookEveryMs) {
    const { next, busy } = await queryOne<{ next: string; busy: boolean }>(withSearchPathIfNeeded(pool, shape), sql)
    if (!busy) return next
    await setTimeout(lookEveryMs)
  }
  throw new OutboxTableUnusable(
    `sessions write the table ${qualified} without a pause, so start: now in outbox.yaml cannot be determined. Stop them for a moment, or give start: id:N`,
  )
}
