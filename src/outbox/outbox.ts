import type pg from 'pg'
import {
  assertServed,
  claimOutbox,
  type OutboxIdentity,
  readServedOutbox,
  type ServedOutbox,
} from '../ledger/servedOutbox.ts'
import { canBeCausedByRow, createFailingRows, type FailingRows, failingRowStatements } from './failingRows.ts'
import { readHasClientCode, resolveTable } from './inspectTable.ts'
import { type InspectedTable, inspectWithIdentity, type OpenTable, openTable } from './openTable.ts'
import { describeTable, isMarkedOnCapture, type OutboxTable, qualifiedName } from './outboxTable.ts'

/** A trigger that is added may need the role's search path. */
const codeAgeMaxMs = 10_000

/**
 * The client's outbox: one table, read by the rows' own state or by the ledger's memory, and written only in the columns that are ours.
 *
 * It keeps what was looked up of the table and what the ledger said of it. The functions of this folder take it first:
 * `claimRows(outbox, …)`, `writeBackRows(outbox, …)`, `readRecord(outbox, …)`.
 */
export class Outbox {
  readonly pool: pg.Pool
  readonly ledger: pg.Pool
  readonly described: OutboxTable
  /** Larger payloads are claimed unread. */
  readonly bytesMax: number
  /** The channel that announces new rows; null if the table has no such trigger. */
  readonly channel: string | null
  /** The table's name, quoted, with its schema if one was named. */
  readonly qualified: string
  /** Whether a row says that it is taken as soon as it is. */
  readonly isMarkedOnCapture: boolean
  /** Rows that the filter or the stamp fails for. */
  readonly failingRows: FailingRows
  #inspected: Promise<InspectedTable> | undefined
  #opened: { table: OpenTable; key: string } | undefined
  #codeReadAtMs = 0
  #isOurs = false

  /** @param table as described, or the name of a table such as migrations/outbox.sql creates */
  constructor(pool: pg.Pool, table: OutboxTable | string, bytesMax: number, ledger: pg.Pool) {
    this.pool = pool
    this.ledger = ledger
    this.described = describeTable(table)
    this.bytesMax = bytesMax
    this.channel = this.described.channel
    this.qualified = qualifiedName(this.described)
    this.isMarkedOnCapture = isMarkedOnCapture(this.described)
    this.failingRows = createFailingRows(ledger)
  }

  /** Looks the table up when it is first used, and now and then whether the client has put code on it. @throws OutboxTableUnusable */
  async inspect(): Promise<InspectedTable> {
    this.#inspected ??= inspectWithIdentity(this.pool, this.described).then(
      (found) => {
        this.#codeReadAtMs = performance.now()
        return found
      },
      (error: unknown) => {
        this.#inspected = undefined // the table may be there, and right, the next time
        throw error
      },
    )
    const inspected = await this.#inspected
    const nowMs = performance.now()
    if (this.described.filter !== null || nowMs - this.#codeReadAtMs < codeAgeMaxMs) return inspected
    const { shape, identity } = inspected
    const hasClientCode = await readHasClientCode(this.pool, shape.qualified)
    this.#codeReadAtMs = nowMs
    if (hasClientCode === shape.hasClientCode) return inspected
    this.#opened = undefined
    this.#inspected = Promise.resolve({ identity, shape: { ...shape, hasClientCode } })
    return this.#inspected
  }

  /** Reads the table's name, quoted, with the schema in which the role's search path finds it. */
  async readName(): Promise<string> {
    return qualifiedName(await resolveTable(this.pool, this.described))
  }

  /** Says which table it is, whether or not it is the one that the ledger belongs to. @throws OutboxTableUnusable */
  async identify(): Promise<OutboxIdentity> {
    return (await this.inspect()).identity
  }

  /**
   * Asks the ledger each time which table it serves: another instance, or an operator, may have said that it belongs elsewhere.
   *
   * @param read what the ledger has just said
   * @throws OutboxTableUnusable if the table cannot be read as described, ForeignOutbox if it is not the ledger's
   */
  async open(read?: ServedOutbox): Promise<OpenTable> {
    const inspected = await this.inspect()
    const served = read ?? (await readServedOutbox(this.ledger))
    assertServed(served, inspected.identity)
    const failingIds = this.failingRows.ids()
    const key = JSON.stringify([served.epoch, served.start, served.rowsEdited, served.readings, failingIds])
    if (this.#opened?.key !== key) {
      const table = openTable(this.pool, this.described, inspected, { served, failingIds }, this.ledger)
      this.#opened = { table, key }
    }
    return this.#opened.table
  }

  /**
   * Sees that the table can be used and is the ledger's; a ledger that knows none belongs to it from now on.
   *
   * @throws OutboxTableUnusable, ForeignOutbox
   */
  async adopt(who: string): Promise<void> {
    await claimOutbox(this.ledger, await this.identify(), who)
    await this.open()
    this.#isOurs = true
  }

  /** Adopts the table unless it was adopted: its database was away at the start. */
  async adoptLate(): Promise<void> {
    if (!this.#isOurs) await this.adopt('daemon')
  }

  /** Asks the table something that the filter, or a stamp, may raise an error in for a single row; then asks again without that row. */
  async ask<T>(question: (table: OpenTable) => Promise<T>, served?: ServedOutbox): Promise<T> {
    const before = this.failingRows.ids()
    const first = await this.open(served)
    await this.failingRows.retest(failingRowStatements(first))
    const known = this.failingRows.ids()
    const table = known === before ? first : await this.open()
    try {
      return await question(table)
    } catch (error) {
      // Rows that do not say they are taken are read in pages with their stamps, which hash what a row holds.
      const mayFail = this.described.filter !== null || !this.isMarkedOnCapture
      if (!mayFail || !canBeCausedByRow(error)) throw error
      if (!(await this.failingRows.find(failingRowStatements(table), known))) throw error
      return question(await this.open())
    }
  }
}
