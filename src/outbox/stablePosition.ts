import type { Database } from '../postgres/database.ts'
import { tableWriterTransactionsSql } from '../postgres/locks.ts'
import { literalSql, prefixedColumnSql, type TableShape, tableAndPartitionOidsSql } from './columns.ts'

export interface StablePosition {
  /** No transaction, running or future, can commit a row up to this number. Null: not even the first number is known. */
  upTo: string | null
  /** The last number that the sequence has drawn. */
  drawn: string | null
  /** The sequence's file on disk, which changes if the sequence restarts. */
  sequenceFile: string | null
}

export type StablePositionReader = ReturnType<typeof createStablePositionReader>

/**
 * Says up to which number of its sequence an append-only table is settled. Read this position before the rows.
 *
 * The highest number is settled when every transaction that wrote the table at that time has ended (see
 * `tableWriterTransactionsSql`). A number that the sequence has not drawn yet settles nothing.
 */
export function createStablePositionReader(db: Database, { qualified }: TableShape, sequence: string) {
  const own = `pg_get_serial_sequence(${literalSql(qualified)}, ${literalSql(sequence)})::regclass`
  const sql = `select pg_is_in_recovery() as standby,
      pg_sequence_last_value(${own})::text as drawn, pg_relation_filenode(${own})::text as "sequenceFile",
      (select case when pg_sequence_last_value(${own}) is not null
        then least(max(${prefixedColumnSql(sequence)}), pg_sequence_last_value(${own}))::text end from ${qualified} o) as highest,
      array(${tableWriterTransactionsSql(tableAndPartitionOidsSql(qualified))}) as writers`
  let upTo: string | null = null
  let waiting: { highest: string; writers: Set<string> } | null = null
  let answers = 0
  return {
    async read(): Promise<StablePosition> {
      const answersBefore = answers
      const { rows } = await db.query<{
        standby: boolean
        drawn: string | null
        sequenceFile: string | null
        highest: string | null
        writers: string[]
      }>(sql)
      const { standby, drawn, sequenceFile, highest, writers } = rows[0] as (typeof rows)[0]
      if (standby) return { upTo: null, drawn, sequenceFile }
      // A read that began before the last answer may have seen older writers, so it settles nothing.
      if (answers !== answersBefore) return { upTo, drawn, sequenceFile }
      answers += 1
      if (waiting !== null && !writers.some((writer) => waiting?.writers.has(writer))) {
        upTo = waiting.highest
        waiting = null
      }
      if (highest !== null && writers.length === 0) {
        upTo = highest
        waiting = null
      } else if (highest !== null && waiting === null) waiting = { highest, writers: new Set(writers) }
      return { upTo, drawn, sequenceFile }
    },
  }
}
