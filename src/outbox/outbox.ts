import type pg from 'pg'
import {
  assertOutboxIsServed,
  bindLedgerToOutboxIfUnbound,
  type OutboxIdentity,
  readServedOutbox,
  type ServedOutbox,
} from '../ledger/binding.ts'
import { canBeCausedByRow, FailingRows } from './failingRows.ts'
import { type OpenTable, openTable } from './openTable.ts'
import { type OutboxTable, toOutboxTable } from './outboxTable.ts'
import {
  OutboxTableUnusable,
  readTableShapeAndIdentity,
  type TableShapeAndIdentity,
  unusableTable,
} from './readTableShape.ts'
import { findStartQuestion, readStartPosition } from './startPosition.ts'
import { findNarrowColumnClauses } from './writeBack.ts'

/** The client's outbox table, the first parameter of this folder's functions, as in `claimRows(outbox, …)`. */
export class Outbox {
  readonly pool: pg.Pool
  readonly ledger: pg.Pool
  readonly described: OutboxTable
  /** Rows with larger payloads are captured, but their payload is not read. */
  readonly bytesMax: number
  readonly channel: string | null
  readonly failingRows: FailingRows
  #inspected: Promise<TableShapeAndIdentity> | undefined
  #opened: { table: OpenTable; key: string } | undefined

  /** @param table a description, or the name of a table that `migrate --outbox` created */
  constructor(pool: pg.Pool, table: OutboxTable | string, bytesMax: number, ledger: pg.Pool) {
    this.pool = pool
    this.ledger = ledger
    this.described = toOutboxTable(table)
    this.bytesMax = bytesMax
    this.channel = this.described.channel
    this.failingRows = new FailingRows(ledger)
  }

  /** Reads the catalog once, so a changed table or trigger needs a restart. @throws OutboxTableUnusable */
  inspect(): Promise<TableShapeAndIdentity> {
    this.#inspected ??= readTableShapeAndIdentity(this.pool, this.described).catch((error: unknown) => {
      this.#inspected = undefined
      throw error
    })
    return this.#inspected
  }

  async readIdentity(): Promise<OutboxIdentity> {
    return (await this.inspect()).identity
  }

  /**
   * Opens the table as the ledger describes it now, because another instance or the operator may have changed the
   * description.
   *
   * @param justRead the ledger's description, if the caller has just read it
   * @throws OutboxTableUnusable, or OutboxMismatch if the ledger belongs to a different table
   */
  async open(read?: ServedOutbox): Promise<OpenTable> {
    const inspected = await this.inspect()
    const served = read ?? (await readServedOutbox(this.ledger))
    assertOutboxIsServed(served, inspected.identity)
    const failingIds = this.failingRows.ids()
    // What was seen of writers before a recovery says nothing about the table that it left.
    const key = JSON.stringify([served.start, served.recoveredMs, failingIds])
    if (this.#opened?.key !== key) {
      const table = openTable(this.pool, this.described, inspected, { served, failingIds })
      this.#opened = { table, key }
    }
    return this.#opened.table
  }

  /**
   * Binds the ledger to this table and notes where its rows begin, if the ledger has no table yet.
   *
   * @throws OutboxTableUnusable if a transaction's id or an error code has no room in its column, or if `outbox.yaml` has to
   * say where to begin; OutboxMismatch
   */
  async bindLedger(who: string): Promise<void> {
    const narrow = findNarrowColumnClauses(this.described, (await this.inspect()).shape)
    if (narrow.length > 0) throw unusableTable(this.described, narrow)
    const { identity } = await readServedOutbox(this.ledger)
    if (identity === null) {
      const question = await findStartQuestion(this)
      if (question !== null) throw new OutboxTableUnusable(question)
      const start = { given: this.described.start, ...(await readStartPosition(this)) }
      await bindLedgerToOutboxIfUnbound(this.ledger, await this.readIdentity(), start, who)
    }
    await this.open()
  }

  /**
   * Runs a query. If the filter fails for a row, finds the row, and queries again without the filter for that row.
   */
  async queryTable<T>(question: (table: OpenTable) => Promise<T>, served?: ServedOutbox): Promise<T> {
    const before = this.failingRows.ids()
    const first = await this.open(served)
    await this.failingRows.retest(first)
    const known = this.failingRows.ids()
    const table = known === before ? first : await this.open()
    try {
      return await question(table)
    } catch (error) {
      if (this.described.filter === null || !canBeCausedByRow(error)) throw error
      if (!(await this.failingRows.find(table, known))) throw error
      return question(await this.open())
    }
  }
}
