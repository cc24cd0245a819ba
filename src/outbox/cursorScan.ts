import { findRepeated, twiceInBatch } from '../ledger/sameRow.ts'
import { ForeignOutbox } from '../ledger/servedOutbox.ts'
import type { RowsRequest } from '../model.ts'
import type { Database } from '../postgres/database.ts'
import { chooseInLine } from './chooseInLine.ts'
import { cursorScanStatements, type PageRow } from './cursorScanStatements.ts'
import type { Cursor, CursorStore, Position, SeenRow } from './cursorStore.ts'
import { createDifferences, type FoundDifferences } from './differences.ts'
import type { Horizon, SafePosition } from './horizon.ts'
import { isNoValueOfType } from './isNoValueOfType.ts'
import type { RowExpressions } from './statements.ts'
import { testSample } from './testSample.ts'
import type { TypeCount } from './typeCounts.ts'

/** Finds the rows that wait where the rows themselves do not say so: those that the ledger does not have. */
export interface CursorScan {
  /** The lowest unknown rows that the request does not leave, in order; and the types of rows left to other instances. */
  findUnknown(request: RowsRequest): Promise<UnknownRows>
  /** Whether the row of this id is there, waits, and is unknown. */
  isUnknown(outboxId: string): Promise<boolean>
  /** Rows met since this was last asked that are not as those that the ledger knows by their ids. */
  takeConflicts(): FoundDifferences
  /** Whether a row may wait, or the numbers of the table began anew, which a claim says. */
  hasUnknown(): Promise<boolean>
  /** How many wait, and the first of them. */
  countUnknown(): Promise<{ waiting: number; firstId: string | null }>
  /** The types of the rows after the cursor, and how many each has, among so many of them. */
  countTypes(most: number): Promise<TypeCount[]>
  /** Up to where all rows were known and none could come; null: nowhere yet. */
  readPosition(): Promise<Position | null>
  /** All that it asks of the table, by name. */
  readonly statements: Readonly<Record<string, string>>
}

export interface UnknownRows {
  outboxIds: string[]
  leftTypes: string[]
}

export interface CursorScanDeps {
  db: Database
  from: string
  rows: RowExpressions
  horizon: Horizon
  cursorStore: CursorStore
  /** Which outbox it is, in words. */
  name: string
  /** The cursor holds numbers of transactions, which a restored database begins anew. */
  byTransaction: boolean
}

const pageMost = 2_000
const pagesMost = 20

/**
 * The table is read from a cursor on. It moves over rows that are in the ledger and settled, never over one that is
 * unknown: so the lowest unknown row is always ahead of it, however late it committed. Rows between the cursor and the
 * end that are known, because a transaction still runs or a key's row before them has to stay, are read again.
 */
export function openCursorScan(deps: CursorScanDeps): CursorScan {
  const { db, horizon, cursorStore } = deps
  const sql = cursorScanStatements(deps.from, deps.rows)
  let cursor: Cursor | null = null
  /** Where to go on when so many known rows lay behind the cursor that none was found among them. */
  let resumeAt: Position | null = null

  async function readCursor({ outbox, upTo, drawn }: SafePosition): Promise<Cursor | null> {
    const stored = await cursorStore.readCursor(outbox)
    if (stored === null) return null
    const isOfAnother = deps.byTransaction && isAfter(stored.position, upTo)
    // An operator says that the rows are those that are known: then the table is read from its beginning, which sends none again.
    const isSame = stored.sameUpto !== null && !isAfter(stored.position, stored.sameUpto[0] ?? null)
    const isSetBack = !deps.byTransaction && drawn !== null && isAfter(stored.position, drawn) && isSame
    return isOfAnother || isSetBack ? null : stored
  }

  const differences = createDifferences()
  /** Those that are in conflict are passed by the position, as what is known. */
  async function meet(
    rows: readonly SeenRow[],
  ): Promise<{ known: ReadonlySet<string>; repeated: ReadonlySet<string> }> {
    const { known, conflicts, edited } = await cursorStore.findKnown(rows)
    const repeated = findRepeated(rows.map(({ outboxId }) => outboxId))
    const stampOf = stampsOf(rows)
    const twice = [...repeated].map((outboxId) => ({ outboxId, detail: twiceInBatch }))
    differences.meetOthers([...conflicts, ...twice], stampOf)
    differences.meetEdited(edited, stampOf)
    return { known, repeated }
  }

  /** Numbers that are drawn a second time stand before the position, where nobody looks. */
  async function assertAhead({ drawn, sequenceFile }: SafePosition): Promise<void> {
    if (cursor === null || deps.byTransaction) return
    const readUpTo = `the table has been read up to number ${cursor.position[0]}`
    if (drawn !== null && isAfter(cursor.position, drawn))
      throw beganAnew(`${readUpTo} and its sequence stands at ${drawn}: it was set back`)
    if ((await judgeBehind(cursor, sequenceFile)) === 'anew')
      throw beganAnew(`${readUpTo}, and the rows there are not those that were`)
  }

  /** Compares the rows at the position with those that were taken there. */
  async function judgeBehind(cursor: Cursor, sequenceFile: string | null): Promise<ReturnType<typeof testSample>> {
    const bounds = cursor.sameUpto ? [...cursor.position, ...cursor.sameUpto] : cursor.position
    const { rows } = await db.query<SeenRow>(cursor.sameUpto ? sql.behindSince : sql.behind, [...bounds])
    const { known, conflicts, edited, repaired } = await cursorStore.findKnown(rows)
    const verdict = testSample({
      rows: rows.length,
      unknown: rows.length - known.size,
      another: conflicts.length,
      edited: edited.length + repaired.length,
      byTime: rows.every(({ stamp }) => /^at\b/.test(stamp)),
      sequenceChanged: cursor.sequenceFile !== null && cursor.sequenceFile !== sequenceFile,
    })
    if (verdict === 'differs') differences.meetEdited([...known], stampsOf(rows))
    return verdict
  }

  /** Numbers that were drawn again up to the position: no row after it says so. */
  async function differsBehind(cursor: Cursor): Promise<boolean> {
    if (deps.byTransaction) return false
    return (await judgeBehind(cursor, cursor.sequenceFile)) === 'anew' || differences.hasMore()
  }

  const beganAnew = (why: string) =>
    new ForeignOutbox(deps.name, `the ids of the outbox ${deps.name} began anew (${why})`)

  async function readPage(after: Position | null, upTo: string | null, left: Left = nothing): Promise<PageRow[]> {
    const values = [pageMost, upTo, left.exceptKeys, left.types.known, left.types.elsewhere]
    const { rows } = after
      ? await db.query<PageRow>(sql.pageAfter, [...values, ...after])
      : await db.query<PageRow>(sql.page, values)
    return rows
  }

  /** The lines of rows that are put off. */
  async function readHeldLines(skipped: ReadonlySet<string>): Promise<Set<string>> {
    if (skipped.size === 0) return new Set()
    const { rows } = await db.query<{ line: string }>(sql.lines, [[...skipped]]).catch((error: unknown) => {
      if (!isNoValueOfType(error)) throw error
      return db.query<{ line: string }>(sql.linesByText, [[...skipped]]) // slower: it has no index
    })
    return new Set(rows.map(({ line }) => line))
  }

  return {
    async findUnknown(request) {
      const settledUpTo = await horizon.read()
      const { outbox, upTo } = settledUpTo
      cursor = await readCursor(settledUpTo)
      await assertAhead(settledUpTo)
      const skipped = new Set(request.skipped.flatMap((row) => (row.isCaptured ? [] : [row.outboxId])))
      // From the cursor on every one of them is met in its place; from the middle on it may lie behind.
      const held = resumeAt === null ? new Set<string>() : await readHeldLines(skipped)
      const choice = chooseInLine(request, skipped, held)
      let passed: Position | null = null
      let isPassing = resumeAt === null
      let at = resumeAt ?? cursor?.position ?? null
      resumeAt = null
      for (let page = 1; !choice.isFull(); page++) {
        const rows = await readPage(at, upTo, request)
        const { known, repeated } = await meet(rows)
        for (const row of rows) {
          const isKnown = known.has(row.outboxId) || repeated.has(row.outboxId)
          isPassing &&= isKnown && row.settled === true
          if (isPassing) passed = row.position
          if (!isKnown) choice.meet(row)
          if (choice.isFull()) break
        }
        at = rows.at(-1)?.position ?? at
        if (rows.length < pageMost) break
        if (page >= pagesMost) {
          // Not from beyond a row that was left: those of its key behind it would overtake it.
          if (!isPassing && choice.outboxIds.length === 0 && choice.leftTypes.size === 0) resumeAt = at
          break
        }
      }
      const { sequenceFile } = settledUpTo
      const position: Position | null = passed ?? cursor?.position ?? null
      if (position !== null && (passed !== null || cursor?.sequenceFile !== sequenceFile)) {
        await cursorStore.advanceCursor(outbox, { position, sequenceFile })
        cursor = { position, sequenceFile, sameUpto: cursor?.sameUpto ?? null }
      }
      return { outboxIds: choice.outboxIds, leftTypes: [...choice.leftTypes] }
    },

    async isUnknown(outboxId) {
      const { rows } = await db.query<SeenRow>(sql.one, [outboxId]).catch((error: unknown) => {
        if (isNoValueOfType(error)) return { rows: [] }
        throw error
      })
      return rows.length === 1 && !(await cursorStore.findKnown(rows)).known.has(outboxId)
    },

    takeConflicts: () => differences.take(),

    async hasUnknown() {
      if (cursor === null) return ((await db.query(sql.any)).rowCount ?? 0) > 0
      const { rowCount } = await db.query(sql.anyAfter, [...cursor.position])
      return (rowCount ?? 0) > 0 || (await horizon.isBehind(cursor)) || differsBehind(cursor)
    },

    statements: sql,

    readPosition: async () => (await readCursor(await horizon.read()))?.position ?? null,

    async countTypes(most) {
      const from = (await readCursor(await horizon.read()))?.position ?? null
      const { rows } = from
        ? await db.query<TypeCount>(sql.typesAfter, [most, ...from])
        : await db.query<TypeCount>(sql.types, [most])
      return rows
    },

    async countUnknown() {
      const settled = await horizon.read()
      const { upTo } = settled
      const stored = await readCursor(settled)
      cursor = stored && cursor // the table has got other parts: what waits in them is looked for
      const from = stored?.position ?? null
      const { rows } = from
        ? await db.query<{ n: number }>(sql.countAfter, [...from])
        : await db.query<{ n: number }>(sql.count)
      let rowsKnown = 0
      let firstId: string | null = null
      let at = from
      // Where the table is read anew many are known, and no backlog; elsewhere a page tells enough of it.
      for (let page = 1; page <= (from === null ? pagesMost : 1); page++) {
        const read = await readPage(at, upTo)
        const { known } = await cursorStore.findKnown(read)
        rowsKnown += known.size
        firstId ??= read.find(({ outboxId }) => !known.has(outboxId))?.outboxId ?? null
        const last = read.at(-1)
        if (read.length < pageMost || known.size === 0 || last === undefined) break
        at = last.position
      }
      return { waiting: Math.max(0, (rows[0]?.n ?? 0) - rowsKnown), firstId }
    },
  }
}

function stampsOf(rows: readonly SeenRow[]): (outboxId: string) => string {
  const stamps = new Map(rows.map(({ outboxId, stamp }) => [outboxId, stamp]))
  return (outboxId) => stamps.get(outboxId) ?? ''
}

const isAfter = ([at = '0']: Position, number: string | null) => BigInt(at) > BigInt(number ?? 0)

type Left = Pick<RowsRequest, 'exceptKeys' | 'types'>
const nothing: Left = { exceptKeys: [], types: { known: [], elsewhere: [] } }
