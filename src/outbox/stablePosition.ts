import { type Database, queryOne } from '../postgres/database.ts'
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

/**
 * Says up to which number of its sequence an append-only table is settled. Read this position before the rows.
 *
 * The highest number is settled when every transaction that wrote the table at that time has ended (see
 * `tableWriterTransactionsSql`). A number that the sequence has not drawn yet settles nothing.
 */
export class StablePositionReader {
  readonly #db: Database
  readonly #sql: string
  #upTo: string | null = null
  #waiting: { highest: string; writers: Set<string> } | null = null
  #answers = 0

  constructor(db: Database, { qualified }: TableShape, sequence: string) {
    const own = `pg_get_serial_sequence(${literalSql(qualified)}, ${literalSql(sequence)})::regclass`
    this.#db = db
    this.#sql = `select pg_is_in_recovery() as standby,
      pg_sequence_last_value(${own})::text as drawn, pg_relation_filenode(${own})::text as "sequenceFile",
      (select case when pg_sequence_last_value(${own}) is not null
        then least(max(${prefixedColumnSql(sequence)}), pg_sequence_last_value(${own}))::text end from ${qualified} o) as highest,
      array(${tableWriterTransactionsSql(tableAndPartitionOidsSql(qualified))}) as writers`
  }

  async read(): Promise<StablePosition> {
    const answersBefore = this.#answers
    const { standby, drawn, sequenceFile, highest, writers } = await queryOne<{
      standby: boolean
      drawn: string | null
      sequenceFile: string | null
      highest: string | null
      writers: string[]
    }>(this.#db, this.#sql)
    if (standby) return { upTo: null, drawn, sequenceFile }
    // A read that began before the last answer may have seen older writers, so it settles nothing.
    if (this.#answers === answersBefore) {
      this.#answers += 1
      this.#settle(highest, writers)
    }
    return { upTo: this.#upTo, drawn, sequenceFile }
  }

  #settle(highest: string | null, writers: readonly string[]): void {
    const waiting = this.#waiting
    if (waiting !== null && !writers.some((writer) => waiting.writers.has(writer))) {
      this.#upTo = waiting.highest
      this.#waiting = null
    }
    if (highest === null) return
    if (writers.length === 0) {
      this.#upTo = highest
      this.#waiting = null
    } else this.#waiting ??= { highest, writers: new Set(writers) }
  }
}
