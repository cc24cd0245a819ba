import { duplicateIdMessage, findDuplicates } from '../ledger/rowConflicts.ts'
import { ForeignOutbox } from '../ledger/servedOutbox.ts'
import type { RowsRequest } from '../model.ts'
import type { Database } from '../postgres/database.ts'
import { isInvalidValue } from '../postgres/sqlState.ts'
import type { Horizon, SettledPosition } from './horizon.ts'
import { chooseInKeyOrder, cutIdSql, type KeyOrderChoice, type ScannedRow, staysSql } from './keyOrder.ts'
import type { Cursor, LedgerMemory, Position, SeenRow } from './ledgerMemory.ts'
import { type FoundDifferences, RowDifferences } from './rowDifferences.ts'
import { type RowExpressions, type TypeCount, typeCountsSql } from './rowExpressions.ts'

export interface UnknownRows {
  outboxIds: string[]
  /** The types of rows left to other instances. */
  leftTypes: string[]
}

interface ScannedTable {
  db: Database
  rows: RowExpressions
  horizon: Horizon
  memory: LedgerMemory
  /** Which outbox it is, in words. */
  name: string
  /** The cursor holds numbers of transactions, which a restored database begins anew. */
  byTransaction: boolean
}

const pageMax = 2_000
const pagesMax = 20

/**
 * Finds the rows that wait if the rows themselves do not say so: those that the ledger does not have.
 *
 * The table is read from a cursor on. It moves over rows that are in the ledger and settled, never over one that is
 * unknown: so the lowest unknown row is always ahead of it, however late it committed. Rows between the cursor and the
 * end that are known, because a transaction still runs or a key's row before them has to stay, are read again.
 */
export class CursorScan {
  /** All that it asks of the table, by name. */
  readonly statements: ReturnType<typeof cursorScanStatements>
  readonly #table: ScannedTable
  readonly #differences = new RowDifferences()
  #cursor: Cursor | null = null
  /** Where to go on when so many known rows lay behind the cursor that no unknown row was found among them. */
  #resumeAt: Position | null = null

  constructor(table: ScannedTable) {
    this.#table = table
    this.statements = cursorScanStatements(table.rows)
  }

  /** Finds the lowest unknown rows that the request does not leave, in order. */
  async findUnknown(request: RowsRequest): Promise<UnknownRows> {
    const settled = await this.#table.horizon.read()
    this.#cursor = await this.#readCursor(settled)
    await this.#assertAhead(settled)
    const skipped = new Set(request.skipped.flatMap((row) => (row.isCaptured ? [] : [row.outboxId])))
    // From the cursor on every one of them is met in its place; from the middle on it may lie behind.
    const held = this.#resumeAt === null ? new Set<string>() : await this.#readHeldLines(skipped)
    const choice = chooseInKeyOrder(request, skipped, held)
    const passed = await this.#readPages(choice, settled.upTo, request)
    await this.#advance(passed, settled)
    return { outboxIds: choice.outboxIds, leftTypes: [...choice.leftTypes] }
  }

  /** Chooses rows page by page. @returns up to where all rows are known and settled */
  async #readPages(choice: KeyOrderChoice, upTo: string | null, request: RowsRequest): Promise<Position | null> {
    let passed: Position | null = null
    let isPassing = this.#resumeAt === null
    let at = this.#resumeAt ?? this.#cursor?.position ?? null
    this.#resumeAt = null
    for (let page = 1; !choice.isFull(); page++) {
      const rows = await this.#readPage(at, upTo, request)
      const { known, repeated } = await this.#meet(rows)
      for (const row of rows) {
        const isKnown = known.has(row.outboxId) || repeated.has(row.outboxId)
        isPassing &&= isKnown && row.settled === true
        if (isPassing) passed = row.position
        if (!isKnown) choice.meet(row)
        if (choice.isFull()) break
      }
      at = rows.at(-1)?.position ?? at
      if (rows.length < pageMax) break
      if (page < pagesMax) continue
      // Not from beyond a row that was left: those of its key behind it would overtake it.
      if (!isPassing && choice.outboxIds.length === 0 && choice.leftTypes.size === 0) this.#resumeAt = at
      break
    }
    return passed
  }

  async #advance(passed: Position | null, { outbox, sequenceFile }: SettledPosition): Promise<void> {
    const position = passed ?? this.#cursor?.position ?? null
    if (position === null || (passed === null && this.#cursor?.sequenceFile === sequenceFile)) return
    await this.#table.memory.advanceCursor(outbox, { position, sequenceFile })
    this.#cursor = { position, sequenceFile, sameUpto: this.#cursor?.sameUpto ?? null }
  }

  /** Returns whether the row of this id is there, waits, and is unknown. */
  async isUnknown(outboxId: string): Promise<boolean> {
    const { db, memory } = this.#table
    const { rows } = await db.query<SeenRow>(this.statements.one, [outboxId]).catch((error: unknown) => {
      if (isInvalidValue(error)) return { rows: [] }
      throw error
    })
    return rows.length === 1 && !(await memory.findKnown(rows)).known.has(outboxId)
  }

  /** Takes the rows met since this was last asked that are not as those that the ledger knows by their ids. */
  takeDifferences(): FoundDifferences {
    return this.#differences.take()
  }

  /** Returns whether a row may wait. True, too, if the table's numbers began anew: then `findUnknown` throws. */
  async hasUnknown(): Promise<boolean> {
    const { db, horizon } = this.#table
    const cursor = this.#cursor
    const { rowCount } = await db.query(this.statements.any, this.#valuesOf(cursor?.position ?? null))
    if ((rowCount ?? 0) > 0) return true
    return cursor !== null && ((await horizon.hasRestartedSince(cursor)) || this.#differsBehind(cursor))
  }

  /** Reads up to where all rows were known and none could come; null: nowhere yet. */
  async readPosition(): Promise<Position | null> {
    return (await this.#readCursor(await this.#table.horizon.read()))?.position ?? null
  }

  /** Counts the types of the rows after the cursor, among `rowsMax` of them. */
  async countTypes(rowsMax: number): Promise<TypeCount[]> {
    const values = [rowsMax, ...this.#valuesOf(await this.readPosition())]
    return (await this.#table.db.query<TypeCount>(this.statements.types, values)).rows
  }

  /** Counts the rows that wait, and finds the first of them. */
  async countUnknown(): Promise<{ waiting: number; firstId: string | null }> {
    const { db, horizon, memory } = this.#table
    const settled = await horizon.read()
    const stored = await this.#readCursor(settled)
    this.#cursor = stored && this.#cursor // the table has got other parts: what waits in them is looked for
    const from = stored?.position ?? null
    const { rows } = await db.query<{ n: number }>(this.statements.count, this.#valuesOf(from))
    let rowsKnown = 0
    let firstId: string | null = null
    let at = from
    // If the table is read anew many are known, and no backlog; otherwise a page tells enough of it.
    for (let page = 1; page <= (from === null ? pagesMax : 1); page++) {
      const read = await this.#readPage(at, settled.upTo)
      const { known } = await memory.findKnown(read)
      rowsKnown += known.size
      firstId ??= read.find(({ outboxId }) => !known.has(outboxId))?.outboxId ?? null
      const last = read.at(-1)
      if (read.length < pageMax || known.size === 0 || last === undefined) break
      at = last.position
    }
    return { waiting: Math.max(0, (rows[0]?.n ?? 0) - rowsKnown), firstId }
  }

  async #readCursor({ outbox, upTo, drawn }: SettledPosition): Promise<Cursor | null> {
    const { memory, byTransaction } = this.#table
    const stored = await memory.readCursor(outbox)
    if (stored === null) return null
    const isOfAnother = byTransaction && isAfter(stored.position, upTo)
    // An operator says that the rows are those that are known: then the table is read from its beginning, which sends none again.
    const isSame = stored.sameUpto !== null && !isAfter(stored.position, stored.sameUpto[0] ?? null)
    const isSetBack = !byTransaction && drawn !== null && isAfter(stored.position, drawn) && isSame
    return isOfAnother || isSetBack ? null : stored
  }

  /** Rows that are in conflict are passed by the position, as known rows are. */
  async #meet(rows: readonly SeenRow[]): Promise<{ known: ReadonlySet<string>; repeated: ReadonlySet<string> }> {
    const { known, conflicts, edited } = await this.#table.memory.findKnown(rows)
    const repeated = findDuplicates(rows.map(({ outboxId }) => outboxId))
    const stampOf = stampsOf(rows)
    const twice = [...repeated].map((outboxId) => ({ outboxId, detail: duplicateIdMessage }))
    this.#differences.addConflicts([...conflicts, ...twice], stampOf)
    this.#differences.addEdited(edited, stampOf)
    return { known, repeated }
  }

  /** Numbers that are drawn a second time stand before the position, where nobody looks. @throws ForeignOutbox */
  async #assertAhead({ drawn, sequenceFile }: SettledPosition): Promise<void> {
    const { name, byTransaction } = this.#table
    const cursor = this.#cursor
    if (cursor === null || byTransaction) return
    const isSetBack = drawn !== null && isAfter(cursor.position, drawn)
    if (!isSetBack && (await this.#judgeBehind(cursor, sequenceFile)) !== 'anew') return
    const why = isSetBack
      ? ` and its sequence stands at ${drawn}: it was set back`
      : ', and the rows there are not those that were'
    throw new ForeignOutbox(
      name,
      `the ids of the outbox ${name} began anew (the table has been read up to number ${cursor.position[0]}${why})`,
    )
  }

  /** Compares the rows at the position with those that were taken there. */
  async #judgeBehind(cursor: Cursor, sequenceFile: string | null): Promise<ReturnType<typeof judgeSample>> {
    const { db, memory } = this.#table
    const bounds = [...cursor.position, ...this.#valuesOf(cursor.sameUpto)]
    const { rows } = await db.query<SeenRow>(this.statements.behind, bounds)
    const { known, conflicts, edited, repaired } = await memory.findKnown(rows)
    const verdict = judgeSample({
      rows: rows.length,
      unknown: rows.length - known.size,
      another: conflicts.length,
      edited: edited.length + repaired.length,
      byTime: rows.every(({ stamp }) => /^at\b/.test(stamp)),
      sequenceChanged: cursor.sequenceFile !== null && cursor.sequenceFile !== sequenceFile,
    })
    if (verdict === 'differs') this.#differences.addEdited([...known], stampsOf(rows))
    return verdict
  }

  /** Numbers that were drawn again up to the position: no row after it says so. */
  async #differsBehind(cursor: Cursor): Promise<boolean> {
    if (this.#table.byTransaction) return false
    return (await this.#judgeBehind(cursor, cursor.sequenceFile)) === 'anew' || this.#differences.hasMore()
  }

  async #readPage(after: Position | null, upTo: string | null, left: Left = nothing): Promise<PageRow[]> {
    const { exceptKeys, types } = left
    const values = [pageMax, upTo, exceptKeys, types.known, types.elsewhere, ...this.#valuesOf(after)]
    return (await this.#table.db.query<PageRow>(this.statements.page, values)).rows
  }

  /** The parameters of a position; NULLs for none. */
  #valuesOf(position: Position | null): (string | null)[] {
    return this.#table.rows.sort.map((_, i) => position?.[i] ?? null)
  }

  /** Reads the lines of rows that are put off. */
  async #readHeldLines(skipped: ReadonlySet<string>): Promise<Set<string>> {
    if (skipped.size === 0) return new Set()
    const { db } = this.#table
    const { lines, linesByText } = this.statements
    const { rows } = await db.query<{ line: string }>(lines, [[...skipped]]).catch((error: unknown) => {
      if (!isInvalidValue(error)) throw error
      return db.query<{ line: string }>(linesByText, [[...skipped]]) // slower: it has no index
    })
    return new Set(rows.map(({ line }) => line))
  }
}

function stampsOf(rows: readonly SeenRow[]): (outboxId: string) => string {
  const stamps = new Map(rows.map(({ outboxId, stamp }) => [outboxId, stamp]))
  return (outboxId) => stamps.get(outboxId) ?? ''
}

const isAfter = ([at = '0']: Position, number: string | null) => BigInt(at) > BigInt(number ?? 0)

type Left = Pick<RowsRequest, 'exceptKeys' | 'types'>
const nothing: Left = { exceptKeys: [], types: { known: [], elsewhere: [] } }

/** How the rows at a position and just behind it compare with those that were taken there. */
export interface Sample {
  rows: number
  /** The ledger does not know their ids. */
  unknown: number
  /** Others than those that it knows. */
  another: number
  /** Edited since, or others of the same type and key. */
  edited: number
  /** All are known by when they were recorded, which never changes. */
  byTime: boolean
  /** The sequence has another file than when the position was reached: `restart identity`, `alter sequence … restart`. */
  sequenceChanged: boolean
}

/**
 * Judges whether the numbers of the table began anew since the position was reached, so that there are rows before it that
 * nobody has read. Edits of single rows must not look like that. Pure.
 *
 * - The sequence began anew, and most rows are not those that were: it is so. (Another option of a sequence changes its file, too.)
 * - It was set back by hand (setval), which leaves no trace; all rows are others by their times, which nobody edits: it is so.
 * - All rows differ, and nothing else says why: that is told, and nothing stops.
 */
export function judgeSample(sample: Sample): 'same' | 'differs' | 'anew' {
  const { rows, unknown, another, edited, byTime, sequenceChanged } = sample
  const differing = unknown + another + edited
  if (sequenceChanged && differing * 2 > rows) return 'anew'
  if (another + edited === 0 || differing < rows) return 'same'
  return byTime ? 'anew' : 'differs'
}

/** A row of `page` and `pageAfter`. */
export interface PageRow extends SeenRow, ScannedRow {
  position: string[]
  settled: boolean | null
}

/** Rows at the position and just behind it that are compared with those that were taken there. */
const sampleMax = 20

/** All that a cursor scan asks of the table, by name. */
export function cursorScanStatements(rows: RowExpressions) {
  const { from, waits, key, line, type, seen, id, idType, idText, sort, order } = rows
  const bounds = (first: number) => sort.map(({ type }, i) => `$${first + i}::${type}`).join(', ')
  /** After a position, or every row if its parameters are NULL. */
  const after = (first: number) => ` and ($${first}::${sort[0]?.type} is null or (${order}) > (${bounds(first)}))`
  const descending = sort.map(({ expression }) => `${expression} desc`).join(', ')
  return {
    page: `
    select ${seen}, ${line} as line,
      ${key} = any($3::text[]) as excepted, case when ${staysSql(type, 4)} then ${type} end as "leftType",
      array[${sort.map(({ expression }) => `(${expression})::text`).join(', ')}] as position,
      ${sort[0]?.expression} <= $2::${sort[0]?.type} as settled
    from ${from} where ${waits}${after(6)} order by ${order} limit $1`,
    /** The last rows up to a position, but not those up to a second one. */
    behind: `
    select ${seen} from ${from}
    where ${waits} and (${order}) <= (${bounds(1)})${after(sort.length + 1)} order by ${descending} limit ${sampleMax}`,
    one: `select ${seen} from ${from} where ${waits} and ${id} = $1::${idType}`,
    lines: `select distinct ${line} as line from ${from} where ${id} = any($1::${idType}[]) and ${key} is not null`,
    linesByText: `select distinct ${line} as line from ${from} where ${cutIdSql(idText)} = any($1::text[]) and ${key} is not null`,
    any: `select from ${from} where ${waits}${after(1)} limit 1`,
    count: `select count(*)::float8 as n from ${from} where ${waits}${after(1)}`,
    types: typeCountsSql(from, type, `${waits}${after(2)}`),
  }
}
