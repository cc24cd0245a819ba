import type { Database } from '../database.ts'
import type { RowConflict } from '../ledger/sameRow.ts'
import { findRepeated, twiceInBatch } from '../ledger/sameRow.ts'
import { ForeignOutbox } from '../ledger/servedOutbox.ts'
import type { Horizon, Settled } from './horizon.ts'
import type { OutboxMemory, Position, SeenRow } from './memory.ts'
import type { RowExpressions } from './statements.ts'

/** Finds the rows that wait where the rows themselves do not say so: those that the ledger does not have. */
export interface Walk {
  /**
   * The lowest unknown rows, in order.
   *
   * @param exceptKeys rows of these keys are passed over
   */
  findUnknown(limit: number, exceptKeys: readonly string[]): Promise<UnknownRow[]>
  /** Rows met since this was last asked that are others than those that the ledger knows by their ids. */
  takeConflicts(): RowConflict[]
  /** Whether a row may wait; one statement. */
  hasUnknown(): Promise<boolean>
  /** How many wait, and the first of them. */
  countUnknown(): Promise<{ waiting: number; firstId: string | null }>
}

export interface UnknownRow {
  outboxId: string
  key: string | null
}

interface PageRow extends UnknownRow, SeenRow {
  position: string[]
  settled: boolean | null
}

export interface WalkDeps {
  db: Database
  from: string
  rows: RowExpressions
  horizon: Horizon
  memory: OutboxMemory
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
export function openWalk(deps: WalkDeps): Walk {
  const { db, horizon, memory } = deps
  const sql = walkStatements(deps)
  let cursor: Position | null = null
  /** Where to go on when so many known rows lay behind the cursor that none was found among them. */
  let resumeAt: Position | null = null

  async function readCursor(outbox: string, upTo: string | null): Promise<Position | null> {
    const stored = await memory.readCursor(outbox)
    const isOfAnother = deps.byTransaction && BigInt(stored?.[0] ?? 0) > BigInt(upTo ?? 0)
    return isOfAnother ? null : stored
  }

  const conflicts = new Map<string, RowConflict>()
  const told = new Set<string>()
  /** A row that is in conflict is told of once: the position passes it, as it does what is known. */
  function note(found: readonly RowConflict[]): void {
    for (const conflict of found) if (!told.has(conflict.outboxId)) conflicts.set(conflict.outboxId, conflict)
  }

  /** Numbers that are drawn a second time stand before the position, where nobody looks. */
  function assertAhead({ drawn }: Settled): void {
    if (drawn === null || cursor?.[0] === undefined || BigInt(drawn) >= BigInt(cursor[0])) return
    const why = `the table has been read up to number ${cursor[0]} and its sequence stands at ${drawn}: it was set back`
    throw new ForeignOutbox(deps.name, `the ids of the outbox ${deps.name} began anew (${why})`)
  }

  async function readPage(after: Position | null, upTo: string | null): Promise<PageRow[]> {
    const { rows } = after
      ? await db.query<PageRow>(sql.pageAfter, [pageMost, upTo, ...after])
      : await db.query<PageRow>(sql.page, [pageMost, upTo])
    return rows
  }

  return {
    async findUnknown(limit, exceptKeys) {
      const settledUpTo = await horizon.read()
      const { outbox, upTo } = settledUpTo
      cursor = await readCursor(outbox, upTo)
      assertAhead(settledUpTo)
      const except = new Set(exceptKeys)
      const unknown: UnknownRow[] = []
      let passed: Position | null = null
      let isPassing = resumeAt === null
      let at = resumeAt ?? cursor
      resumeAt = null
      for (let page = 1; unknown.length < limit; page++) {
        const rows = await readPage(at, upTo)
        const { known, conflicts: others } = await memory.findKnown(rows)
        const repeated = findRepeated(rows.map(({ outboxId }) => outboxId))
        note([...others, ...[...repeated].map((outboxId) => ({ outboxId, detail: twiceInBatch }))])
        for (const { outboxId, key, position, settled } of rows) {
          const isKnown = known.has(outboxId) || repeated.has(outboxId)
          isPassing &&= isKnown && settled === true
          if (isPassing) passed = position
          if (isKnown || (key !== null && except.has(key))) continue
          unknown.push({ outboxId, key })
          if (unknown.length === limit) break
        }
        at = rows.at(-1)?.position ?? at
        if (rows.length < pageMost) break
        if (page >= pagesMost) {
          if (!isPassing && unknown.length === 0) resumeAt = at
          break
        }
      }
      if (passed !== null) {
        await memory.advanceCursor(outbox, passed)
        cursor = passed
      }
      return unknown
    },

    takeConflicts() {
      const found = [...conflicts.values()]
      conflicts.clear()
      for (const { outboxId } of found) told.add(outboxId)
      return found
    },

    async hasUnknown() {
      const { rowCount } = cursor ? await db.query(sql.anyAfter, [...cursor]) : await db.query(sql.any)
      return (rowCount ?? 0) > 0
    },

    async countUnknown() {
      const { outbox, upTo } = await horizon.read()
      const from = await readCursor(outbox, upTo)
      const { rows } = from
        ? await db.query<{ n: number }>(sql.countAfter, [...from])
        : await db.query<{ n: number }>(sql.count)
      const first = await readPage(from, upTo)
      const { known } = await memory.findKnown(first)
      return {
        waiting: Math.max(0, (rows[0]?.n ?? 0) - known.size),
        firstId: first.find(({ outboxId }) => !known.has(outboxId))?.outboxId ?? null,
      }
    },
  }
}

function walkStatements({ from, rows: { waits, key, stamp, createdAt, sort } }: WalkDeps) {
  const expressions = sort.map(({ expression }) => expression)
  const order = expressions.join(', ')
  const idOf = expressions.at(-1)
  const after = (firstParameter: number) =>
    ` and (${order}) > (${sort.map(({ type }, i) => `$${firstParameter + i}::${type}`).join(', ')})`
  const page = (and: string) => `
    select ${idOf}::text as "outboxId", ${key} as key, ${stamp} as stamp, ${createdAt} as "createdAt", array[${expressions.map((each) => `(${each})::text`).join(', ')}] as position,
      ${expressions[0]} <= $2::${sort[0]?.type} as settled
    from ${from} where ${waits}${and} order by ${order} limit $1`
  const any = (and: string) => `select from ${from} where ${waits}${and} limit 1`
  const count = (and: string) => `select count(*)::float8 as n from ${from} where ${waits}${and}`
  return {
    page: page(''),
    pageAfter: page(after(3)),
    any: any(''),
    anyAfter: any(after(1)),
    count: count(''),
    countAfter: count(after(1)),
  }
}
