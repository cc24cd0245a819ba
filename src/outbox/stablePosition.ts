import type { Database } from '../postgres/database.ts'
import { tableWriterTransactionsSql } from '../postgres/locks.ts'
import { literalSql, prefixedColumnSql, type TableShape, tableAndPartitionOidsSql } from './columns.ts'
import type { Cursor } from './ledgerMemory.ts'
import type { OutboxTable } from './outboxTable.ts'

/**
 * Says up to where a table is settled: no transaction, running or future, can commit a row there. Read this position
 * before the rows.
 */
export interface StablePositionReader {
  read(): Promise<StablePosition>
  /** True if the sequence's numbers started again since the cursor was stored. */
  hasSequenceRestartedSince(cursor: Cursor): Promise<boolean>
}

export interface StablePosition {
  /**
   * Identifies the table by oids, order and partitions. If one of these changes, the table is read from its beginning.
   */
  outbox: string
  /** Rows whose first sort value is at most this value are settled. */
  upTo: string | null
  /** The last number that the sequence has drawn. */
  drawn: string | null
  /** The sequence's file on disk, which changes if the sequence restarts. */
  sequenceFile: string | null
}

export function createStablePositionReader(db: Database, table: OutboxTable, shape: TableShape): StablePositionReader {
  return table.sequence === null ? byTransaction(db, shape) : bySequence(db, shape, table.sequence)
}

const outboxKey = (qualified: string) =>
  `(select oid::text from pg_database where datname = current_database()) || '.' || ${literalSql(qualified)}::regclass::oid::text`

/** A digest of the partitions, because a partition that is attached later brings rows that were written long ago. */
const partsKey = (qualified: string) =>
  `coalesce((select '.' || md5(string_agg(id::text, ',' order by id))
    from (${tableAndPartitionOidsSql(qualified)}) part where id <> ${literalSql(qualified)}::regclass::oid), '')`

/** Goes by transaction numbers. Rows of transactions before the oldest running one are settled. */
function byTransaction(db: Database, shape: TableShape): StablePositionReader {
  const sql = `select ${outboxKey(shape.qualified)} || '.transaction' || ${partsKey(shape.qualified)} as outbox,
    (pg_snapshot_xmin(pg_current_snapshot())::text::bigint - 1)::text as "upTo", null as drawn, null as "sequenceFile"`
  return {
    async read() {
      const { rows } = await db.query<StablePosition>(sql)
      return rows[0] as StablePosition
    },
    hasSequenceRestartedSince: async () => false, // no transaction number is given twice
  }
}

/**
 * Goes by the numbers of a sequence. The highest number is settled when every transaction that wrote the table at that
 * time has ended (see `tableWriterTransactionsSql`). A number that the sequence has not drawn yet settles nothing.
 */
function bySequence(db: Database, shape: TableShape, sequence: string): StablePositionReader {
  const own = `pg_get_serial_sequence(${literalSql(shape.qualified)}, ${literalSql(sequence)})::regclass`
  const sql = `select ${outboxKey(shape.qualified)} || '.sequence' as outbox, pg_is_in_recovery() as standby,
      pg_sequence_last_value(${own})::text as drawn, pg_relation_filenode(${own})::text as "sequenceFile",
      (select case when pg_sequence_last_value(${own}) is not null
        then least(max(${prefixedColumnSql(sequence)}), pg_sequence_last_value(${own}))::text end from ${shape.qualified} o) as highest,
      array(${tableWriterTransactionsSql(tableAndPartitionOidsSql(shape.qualified))}) as writers`
  let upTo: string | null = null
  let waiting: { highest: string; writers: Set<string>; outbox: string } | null = null
  let outboxBefore: string | null = null
  let answers = 0
  return {
    async read() {
      const answersBefore = answers
      const { rows } = await db.query<{
        outbox: string
        standby: boolean
        drawn: string | null
        sequenceFile: string | null
        highest: string | null
        writers: string[]
      }>(sql)
      const { outbox, standby, drawn, sequenceFile, highest, writers } = rows[0] as (typeof rows)[0]
      if (standby) return { outbox, upTo: null, drawn, sequenceFile }
      // A read that began before the last answer may have seen older writers, so it settles nothing.
      if (answers !== answersBefore) return { outbox, upTo: outbox === outboxBefore ? upTo : null, drawn, sequenceFile }
      answers += 1
      if (outbox !== outboxBefore) [upTo, waiting, outboxBefore] = [null, null, outbox]
      if (waiting !== null && !writers.some((writer) => waiting?.writers.has(writer))) {
        upTo = waiting.highest
        waiting = null
      }
      if (highest !== null && writers.length === 0) {
        upTo = highest
        waiting = null
      } else if (highest !== null && waiting === null) waiting = { highest, writers: new Set(writers), outbox }
      return { outbox, upTo, drawn, sequenceFile }
    },
    async hasSequenceRestartedSince({ position, sequenceFile }) {
      const { rowCount } = await db.query(
        `select where pg_sequence_last_value(${own})::numeric < $1::numeric or pg_relation_filenode(${own})::text <> $2`,
        [position[0], sequenceFile],
      )
      return (rowCount ?? 0) > 0
    },
  }
}
