import { newLedgerAdvice, OutboxMismatch } from '../ledger/binding.ts'
import { duplicateIdMessage, findRepeatedIds, type RowConflict } from '../ledger/rowConflicts.ts'
import type { RowsRequest } from '../model.ts'
import type { Database } from '../postgres/database.ts'
import { isInvalidValueError } from '../postgres/sqlState.ts'
import {
  cursorScanStatements,
  type EarlierRow,
  type KeyedRow,
  type NamedRow,
  type PageRow,
} from './cursorScanStatements.ts'
import { type CapturableRowChooser, createCapturableRowChooser, type ScannedRow } from './keyOrder.ts'
import type { Cursor, CursorPosition, LedgerMemory, SeenRow } from './ledgerMemory.ts'
import type { RowExpressions, TypeCount } from './rowExpressions.ts'
import type { StablePosition, StablePositionReader } from './stablePosition.ts'

export interface RowsToCapture {
  rows: ScannedRow[]
  typesLeftToOthers: string[]
}

interface ScannedTable {
  db: Database
  rows: RowExpressions
  stablePosition: StablePositionReader
  memory: LedgerMemory
  name: string
  byTransaction: boolean
}

const pageMax = 2_000
const idSampleMax = 100
const pagesMax = 20

/**
 * Finds the rows that the ledger lacks, if rows do not show that they were captured.
 *
 * The cursor passes only rows that the ledger has and that are settled: no transaction can still commit a row before
 * them. So a row that the ledger lacks is always ahead of the cursor. Each scan reads all rows ahead of the cursor
 * again.
 */
export class CursorScan {
  readonly statements: ReturnType<typeof cursorScanStatements>
  readonly #table: ScannedTable
  #conflicts: RowConflict[] = []
  #cursor: Cursor | null = null
  /** How far the last search may move the cursor. */
  #passed: (Cursor & { outbox: string }) | null = null
  #areIdsComparable = false
  /** The next scan continues here, because the last scans chose no row. They left rows of these types to others. */
  #resumeAt: { position: CursorPosition; leftTypes: ReadonlySet<string> } | null = null

  constructor(table: ScannedTable) {
    this.#table = table
    this.statements = cursorScanStatements(table.rows)
  }

  async findUncapturedRows(request: RowsRequest): Promise<RowsToCapture> {
    if (!this.#areIdsComparable) await this.#assertIdsComparable()
    const settled = await this.#table.stablePosition.read()
    this.#cursor = await this.#readCursor(settled)
    this.#assertAhead(settled)
    const skipped = new Set(request.skipped.flatMap((row) => (row.isCaptured ? [] : [row.outboxId])))
    const choice = createCapturableRowChooser(request, skipped)
    const leftBefore = this.#resumeAt?.leftTypes ?? new Set<string>()
    const passed = await this.#readPages(choice, settled.upTo, request)
    this.#passed =
      passed === null ? null : { outbox: settled.outbox, position: passed, sequenceFile: settled.sequenceFile }
    const leftTypes = choice.leftTypes.union(leftBefore)
    if (this.#resumeAt !== null) this.#resumeAt = { ...this.#resumeAt, leftTypes }
    return { rows: choice.rows, typesLeftToOthers: [...leftTypes] }
  }

  async #readPages(
    choice: CapturableRowChooser,
    upTo: string | null,
    request: RowsRequest,
  ): Promise<CursorPosition | null> {
    let passed: CursorPosition | null = null
    let isPassing = this.#resumeAt === null
    let at = this.#resumeAt?.position ?? this.#cursor?.position ?? null
    // A page's rows may have an earlier row of their key that was not met: a resumed scan begins behind it, or it was
    // committed after its page was read.
    let mayOvertake = this.#resumeAt !== null
    this.#resumeAt = null
    for (let page = 1; !choice.isFull(); page++) {
      const rows = await this.#readPage(at, upTo, request)
      const { known, repeated } = await this.#meet(rows)
      const isKnown = ({ outboxId }: PageRow) => known.has(outboxId) || repeated.has(outboxId)
      const uncaptured = rows.filter((row) => !isKnown(row))
      if (mayOvertake && at !== null) await this.#holdKeysOfEarlierRows(choice, uncaptured, at)
      for (const [i, row] of rows.entries()) {
        isPassing &&= isKnown(row) && row.settled === true
        if (isPassing && isCursorStop(rows, i)) passed = row.position
      }
      for (const row of putKeysInOrder(uncaptured)) {
        choice.meet(row)
        if (choice.isFull()) break
      }
      at = rows.at(-1)?.position ?? at
      mayOvertake ||= rows.at(-1)?.settled !== true
      if (rows.length < pageMax) break
      if (page < pagesMax) continue
      // If a row was chosen, the next scan starts at the cursor again, because the cursor may then pass that row.
      if (!isPassing && choice.rows.length === 0 && at !== null) this.#resumeAt = { position: at, leftTypes: new Set() }
      break
    }
    return passed
  }

  /**
   * Holds the keys of a page's rows if an earlier row of the key is neither in the ledger nor chosen.
   *
   * Reads the table between the cursor and the page again. This is later than the page was read, so it finds every row
   * that was committed before a row of the page.
   */
  async #holdKeysOfEarlierRows(
    choice: CapturableRowChooser,
    uncaptured: readonly NamedRow[],
    upTo: CursorPosition,
  ): Promise<void> {
    const { db, memory } = this.#table
    const chosen = new Set(choice.rows.map(({ outboxId }) => outboxId))
    const keyHashes = choice.findFreeKeyHashes(uncaptured)
    let after = this.#cursor?.position ?? null
    while (keyHashes.size > 0) {
      const values = [pageMax, [...keyHashes], ...this.#valuesOf(after), ...upTo]
      const { rows } = await db.query<EarlierRow>(this.statements.earlierOfKeys, values)
      const { known } = await memory.findCapturedRows(rows)
      const repeated = findRepeatedIds(rows.map(({ outboxId }) => outboxId))
      for (const { outboxId, keyHash } of rows) {
        if (known.has(outboxId) || repeated.has(outboxId) || chosen.has(outboxId)) continue
        choice.hold(keyHash)
        keyHashes.delete(keyHash)
      }
      if (rows.length < pageMax) break
      after = rows.at(-1)?.position ?? after
    }
  }

  /** Stores how far the last search passed. Call this after the conflicts that it met are stored. */
  async advance(): Promise<void> {
    if (this.#passed === null) return
    const { outbox, ...cursor } = this.#passed
    this.#passed = null
    await this.#table.memory.advanceCursor(outbox, cursor)
    this.#cursor = cursor
  }

  /** Null if the row no longer waits, or the ledger has it. */
  readUncapturedRow(outboxId: string): Promise<KeyedRow | null> {
    return this.#readUncapturedRow(outboxId, [])
  }

  async hasToWaitForKey(outboxId: string, { exceptKeys }: Pick<RowsRequest, 'exceptKeys'>): Promise<boolean> {
    const row = await this.#readUncapturedRow(outboxId, exceptKeys)
    if (row === null || row.keyHash === null) return false
    const choice = createCapturableRowChooser({ limit: 1, keyRowsMax: 1 }, new Set())
    choice.meet(row)
    this.#cursor ??= await this.#readCursor(await this.#table.stablePosition.read())
    await this.#holdKeysOfEarlierRows(choice, [row], row.position)
    return choice.findFreeKeyHashes([row]).size === 0
  }

  async #readUncapturedRow(outboxId: string, exceptKeys: readonly string[]): Promise<KeyedRow | null> {
    const { db, memory } = this.#table
    const { rows } = await db.query<KeyedRow>(this.statements.one, [outboxId, exceptKeys]).catch((error: unknown) => {
      if (isInvalidValueError(error)) return { rows: [] }
      throw error
    })
    const [row = null] = rows
    return rows.length === 1 && !(await memory.findCapturedRows(rows)).known.has(outboxId) ? row : null
  }

  takeConflicts(): RowConflict[] {
    const found = this.#conflicts
    this.#conflicts = []
    return found
  }

  /** True if a row may wait, or if the table's sequence was set back, because the next scan then throws. */
  async mayHaveUncapturedRows(): Promise<boolean> {
    const { db, stablePosition } = this.#table
    const cursor = this.#cursor
    const { rowCount } = await db.query(this.statements.any, this.#valuesOf(cursor?.position ?? null))
    return (rowCount ?? 0) > 0 || (cursor !== null && (await stablePosition.hasSequenceRestartedSince(cursor)))
  }

  async readPosition(): Promise<CursorPosition | null> {
    return (await this.#readCursor(await this.#table.stablePosition.read()))?.position ?? null
  }

  async countWaitingRowsByType(rowsMax: number): Promise<TypeCount[]> {
    const values = [rowsMax, ...this.#valuesOf(await this.readPosition())]
    return (await this.#table.db.query<TypeCount>(this.statements.types, values)).rows
  }

  async countUncapturedRows(): Promise<{ waiting: number; firstId: string | null }> {
    const { db, stablePosition, memory } = this.#table
    const settled = await stablePosition.read()
    const stored = await this.#readCursor(settled)
    this.#cursor = stored && this.#cursor // If no cursor is stored, as after a new partition, reads from the beginning.
    const from = stored?.position ?? null
    const { rows } = await db.query<{ n: number }>(this.statements.count, this.#valuesOf(from))
    let rowsKnown = 0
    let firstId: string | null = null
    let at = from
    // Rows that the ledger has do not wait. Without a cursor there are many; with a cursor one page has most of them.
    for (let page = 1; page <= (from === null ? pagesMax : 1); page++) {
      const read = await this.#readPage(at, settled.upTo)
      const { known } = await memory.findCapturedRows(read)
      rowsKnown += known.size
      firstId ??= read.find(({ outboxId }) => !known.has(outboxId))?.outboxId ?? null
      const last = read.at(-1)
      if (read.length < pageMax || known.size === 0 || last === undefined) break
      at = last.position
    }
    return { waiting: Math.max(0, (rows[0]?.n ?? 0) - rowsKnown), firstId }
  }

  async #readCursor({ outbox, upTo }: StablePosition): Promise<Cursor | null> {
    const { memory, byTransaction } = this.#table
    const stored = await memory.readCursor(outbox)
    const isOfAnother = stored !== null && byTransaction && isAfter(stored.position, upTo)
    return isOfAnother ? null : stored
  }

  async #meet(rows: readonly SeenRow[]): Promise<{ known: ReadonlySet<string>; repeated: ReadonlySet<string> }> {
    const { known, conflicts } = await this.#table.memory.findCapturedRows(rows)
    const repeated = findRepeatedIds(rows.map(({ outboxId }) => outboxId))
    const twice = [...repeated].map((outboxId) => ({ outboxId, detail: duplicateIdMessage }))
    this.#conflicts.push(...conflicts, ...twice)
    return { known, repeated }
  }

  /**
   * Refuses a table whose sequence was restarted or set back, because its new rows lie behind the cursor, which no scan
   * reads. Other options of a sequence change its file, too.
   *
   * @throws OutboxMismatch
   */
  #assertAhead({ drawn, sequenceFile }: StablePosition): void {
    const { name, byTransaction } = this.#table
    const cursor = this.#cursor
    if (cursor === null || byTransaction) return
    const number = cursor.position[0]
    if (drawn !== null && isAfter(cursor.position, drawn))
      throw new OutboxMismatch(
        name,
        `the ids of the outbox ${name} started again: the table has been read up to number ${number}, and its sequence stands at ${drawn}`,
        `If the rows are the same, set the sequence to ${number} or above (setval). ${newLedgerAdvice}`,
      )
    if (cursor.sequenceFile === null || cursor.sequenceFile === sequenceFile) return
    throw new OutboxMismatch(
      name,
      `the sequence of the outbox ${name} was restarted or altered since the table was read up to number ${number}`,
      `If the rows are the same, run \`outboxd adopt --same\`. ${newLedgerAdvice}`,
    )
  }

  /**
   * Refuses a table whose id column's new type writes captured ids differently: all rows would count as new.
   *
   * @throws OutboxMismatch
   */
  async #assertIdsComparable(): Promise<void> {
    const { db, memory, name } = this.#table
    const ids = await memory.readCapturedIds(idSampleMax)
    const { rows } = await db
      .query<{ change: string }>(this.statements.changedIds, [ids, ids])
      .catch((error: unknown) => {
        if (isInvalidValueError(error)) return { rows: [{ change: 'some do not fit its type' }] }
        throw error
      })
    const [changed] = rows
    if (changed !== undefined)
      throw new OutboxMismatch(
        name,
        `the column now writes ids of the outbox ${name} differently (${changed.change}), so captured rows would be sent again`,
        `Give the column its former type. ${newLedgerAdvice}`,
      )
    this.#areIdsComparable = true
  }

  async #readPage(after: CursorPosition | null, upTo: string | null, left: Left = leavesNone): Promise<PageRow[]> {
    const { exceptKeys, types } = left
    const values = [pageMax, upTo, exceptKeys, types.known, types.knownToOthers, ...this.#valuesOf(after)]
    return (await this.#table.db.query<PageRow>(this.statements.page, values)).rows
  }

  #valuesOf(position: CursorPosition | null): (string | null)[] {
    return this.#table.rows.sort.map((_, i) => position?.[i] ?? null)
  }
}

/**
 * True if the cursor may stop at a row of a page: the last row of its transaction. With `sequence`, each row's first
 * sort value is its own.
 *
 * An UPDATE or DELETE that is open or undone changes a row's place within its transaction (cmin), so the row could move
 * behind a cursor that stops there. The cursor stops within a transaction only if it fills a page, because otherwise
 * each scan would read all rows of a large transaction again.
 */
function isCursorStop(rows: readonly PageRow[], i: number): boolean {
  const first = (row: PageRow | undefined) => row?.position[0]
  if (i < rows.length - 1) return first(rows[i + 1]) !== first(rows[i])
  return rows.length < pageMax || first(rows[0]) === first(rows[i])
}

/** Sorts the rows of each key among the places that the key has in the page. */
function putKeysInOrder(rows: readonly PageRow[]): PageRow[] {
  const ordered = rows.toSorted((a, b) => a.placeInKey - b.placeInKey)
  const ofKeys = new Map([...Map.groupBy(ordered, ({ keyHash }) => keyHash)].map(([key, its]) => [key, its.values()]))
  return rows.map((row) => (row.keyHash === null ? row : (ofKeys.get(row.keyHash)?.next().value ?? row)))
}

const isAfter = ([at = '0']: CursorPosition, number: string | null) => BigInt(at) > BigInt(number ?? 0)

type Left = Pick<RowsRequest, 'exceptKeys' | 'types'>
const leavesNone: Left = { exceptKeys: [], types: { known: [], knownToOthers: [] } }
