import { setTimeout } from 'node:timers/promises'
import {
  deleteSubmissions,
  isOldSql,
  mayBeEmptiedSql,
  mayBePrunedSql,
  type PrunedCounts,
  type PruneLimits,
  type Retention,
  removeContentsOfOldSubmissions,
  takePruneTurn,
  toRetention,
} from '../ledger/retention.ts'
import { hasSettings, type Settings } from '../ledger/settings.ts'
import { beginTransaction, type Database, queryOne } from '../postgres/database.ts'
import { isInvalidValueError } from '../postgres/sqlState.ts'
import type { OpenTable } from './openTable.ts'
import type { Outbox } from './outbox.ts'
import { stateExpressions } from './stateForms.ts'

/**
 * `through`: all is done. `begun`: `goOn` ended the round. `elsewhere`: another instance prunes or captures, or the
 * ledger has other settings by now.
 */
export type PruneRoundResult = 'through' | 'begun' | 'elsewhere'

export interface PruneRound {
  /** Those of the ledger: how long to keep records, and what outbox.yaml says of rows that wait. */
  settings: Settings
  /** If another instance prunes, a command waits, and a daemon gives up. */
  turn: 'try' | 'wait'
  /** Called between two batches. False ends the round. */
  goOn(): boolean
  onProgress(pruned: PrunedCounts): void
}

/** A batch of this size takes some 4 ms. With `pauseMs` between batches, 370 rows are pruned in a second. */
const batchRows = 20

/** Time between two batches, which leaves the ledger to others most of the time. */
const pauseMs = 50

/** Works in short transactions. */
export async function runPruneRound(
  outbox: Outbox,
  { settings, turn, goOn, onProgress }: PruneRound,
): Promise<PruneRoundResult> {
  const { days, payloadDays } = toRetention(settings)
  const pruned: PrunedCounts = { submissions: 0, emptied: 0 }
  const runBatches = async (
    what: keyof PrunedCounts,
    work: (db: Database, table: OpenTable) => Promise<number>,
  ): Promise<PruneRoundResult> => {
    for (;;) {
      if (!goOn()) return 'begun'
      const table = await outbox.open()
      await using transaction = await beginTransaction(table.db)
      const { db } = transaction
      if (!(await takePruneTurn(db, turn)) || !(await hasSettings(db, settings))) return 'elsewhere'
      const rows = await work(db, table)
      await transaction.commit()
      pruned[what] += rows
      if (rows > 0) onProgress({ ...pruned })
      if (rows < batchRows) return 'through'
      await setTimeout(pauseMs)
    }
  }
  // Deletes first, because deleted records need not be emptied.
  if (days !== null) {
    const limits = { olderThanDays: days, limit: batchRows }
    const end = await runBatches('submissions', (db, table) => pruneOldSubmissions(db, table, limits))
    if (end !== 'through') return end
  }
  if (payloadDays === null) return 'through'
  return runBatches('emptied', (db) =>
    removeContentsOfOldSubmissions(db, { olderThanDays: payloadDays, limit: batchRows }),
  )
}

/**
 * Deletes the oldest ended submissions, unless their rows still wait: without its record such a row would be sent again.
 *
 * Needs capture's lock (7161), so that no row is set back to waiting and captured meanwhile.
 */
async function pruneOldSubmissions(
  db: Database,
  table: OpenTable,
  { olderThanDays, limit }: PruneLimits,
): Promise<number> {
  await db.query('savepoint found')
  const { rows } = await byIdOrText(table, async (waits) => {
    await db.query('rollback to savepoint found') // of the first try
    return db.query<{ id: string }>(
      `select s.id from outboxd.submission s where ${mayBePrunedSql} and ${isOldSql} and not ${waits}
       order by s.ended_at limit $2 for update of s skip locked`,
      [olderThanDays, limit],
    )
  })
  // What is written after a savepoint has another xmin than its transaction, which outboxd.history must have.
  await db.query('release savepoint found')
  if (rows.length === 0) return 0
  const ids = rows.map(({ id }) => id)
  await db.query(prunedRowStatements(table).note, [ids])
  return deleteSubmissions(db, ids)
}

/** Leaves out records whose rows still wait, because those stay. */
export async function readPruneOverdueMs(outbox: Outbox, { days, payloadDays }: Retention): Promise<number> {
  const table = await outbox.open()
  const { overdueMs } = await byIdOrText(table, (waits) =>
    queryOne<{ overdueMs: number }>(
      table.db,
      `select greatest(0, extract(epoch from greatest(
         now() - (select s.ended_at from outboxd.submission s where ${mayBePrunedSql} and ${isOldSql} and not ${waits}
           order by s.ended_at limit 1) - $1::float8 * interval '1 day',
         now() - (select min(ended_at) from outboxd.submission where ${mayBeEmptiedSql}) - $2::float8 * interval '1 day'
       )))::float8 * 1000 as "overdueMs"`,
      [days, payloadDays],
    ),
  )
  return overdueMs
}

/** Compares ids as texts, which reads the whole table, if one in the ledger does not fit the id column's present type. */
async function byIdOrText<T>(table: OpenTable, find: (waitsSql: string) => Promise<T>): Promise<T> {
  const { waits, waitsByText } = prunedRowStatements(table)
  try {
    return await find(waits)
  } catch (error) {
    if (!isInvalidValueError(error)) throw error
    return find(waitsByText)
  }
}

/** Says which rows of pruned records still wait, and notes up to which rows records may be missing. */
function prunedRowStatements({ rows, table, form }: OpenTable) {
  const { from, mayWait, isAhead, number, id, idOfSubmission, idText } = rows
  const underWay = stateExpressions(table.state)?.underWaySql(null) ?? 'false'
  // Without the filter, because it may fail for an old row. A row that says that it is under way was not told its end: a
  // restored ledger may have lost that this was due.
  const waits = form === 'append-only' ? `${isAhead} and ${mayWait}` : `((${mayWait}) or ${underWay})`
  const highest =
    form === 'append-only'
      ? `(select max(${number}) from ${from} where ${id} = any(array(select ${idOfSubmission} from pruned s)))`
      : 'null'
  return {
    /** The condition that the row of submission `s` waits. A query of one row, because Postgres makes a join of `exists`. */
    waits: `coalesce((select true from ${from} where ${id} = ${idOfSubmission} and ${waits} limit 1), false)`,
    waitsByText: `coalesce(s.outbox_id in (select ${idText} collate "C" from ${from} where ${waits}), false)`,
    /** Notes the rows of the submissions in $1, before these are deleted. */
    note: `with pruned as materialized (select * from outboxd.submission where id = any($1::uuid[]))
      insert into outboxd.outbox_cursor as c (pruned_number, pruned_recorded, pruned_ended)
      select ${highest}, max(recorded_at), max(ended_at) from pruned
      on conflict (is_only) do update set pruned_number = greatest(c.pruned_number, excluded.pruned_number),
        pruned_recorded = greatest(c.pruned_recorded, excluded.pruned_recorded),
        pruned_ended = greatest(c.pruned_ended, excluded.pruned_ended)`,
  }
}
