import { setTimeout } from 'node:timers/promises'
import type { StartPosition } from '../ledger/servedOutbox.ts'
import type { Database } from '../postgres/database.ts'
import { tableWriters } from '../postgres/tableWriters.ts'
import { column, columnOf, tableAndPartitions } from './columns.ts'
import { OutboxTableUnusable, type TableShape } from './inspectTable.ts'
import type { OutboxTable } from './outboxTable.ts'

const waitMaxMs = 10_000
const lookEveryMs = 100

/**
 * The start position of this moment. Where ids are drawn from the table's own sequence it is the next id, taken when
 * nobody is writing the table: no row below it can still come (`tableWriters` tells why). Otherwise it is the time on the table's own clock.
 *
 * @throws OutboxTableUnusable where neither is to be had
 */
export async function findNow(db: Database, table: OutboxTable, shape: TableShape): Promise<StartPosition> {
  const { qualified } = shape
  const isNumber = /^(bigint|integer|smallint)$/.test(columnOf(shape, table.id).baseType)
  const { rows } = await db.query<{ sequence: string | null; now: string }>(
    `select pg_get_serial_sequence($1, $2) as sequence,
       to_char(clock_timestamp() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as now`,
    [qualified, table.id],
  )
  if (isNumber && rows[0]?.sequence != null) return { id: await nextId(db, qualified, table.id), at: null }
  if (table.createdAt !== null) return { id: null, at: rows[0]?.now ?? null }
  throw new OutboxTableUnusable(
    `the table ${qualified} has neither an id drawn from a sequence of its own nor a created_at that is described: give the first row that is ours as --start id:N`,
  )
}

async function nextId(db: Database, qualified: string, id: string): Promise<string> {
  const sql = `select (coalesce(max(${column(id)}), 0) + 1)::text as next, exists (${tableWriters(tableAndPartitions(qualified))}) as busy
    from ${qualified} o`
  for (let waitedMs = 0; waitedMs < waitMaxMs; waitedMs += lookEveryMs) {
    const { rows } = await db.query<{ next: string; busy: boolean }>(sql)
    if (rows[0]?.busy === false) return rows[0].next
    await setTimeout(lookEveryMs)
  }
  throw new OutboxTableUnusable(
    `the table ${qualified} is being written all the time, so "now" cannot be told apart from before: give --start id:N or since:D`,
  )
}
