import { boundText } from '../boundText.ts'
import type { ClaimedRows, RowStatus, RowsRequest } from '../model.ts'
import { begin, type Database } from '../postgres/database.ts'
import { isInvalidValue } from '../postgres/sqlState.ts'
import type { UnknownRows } from './cursorScan.ts'
import { createKeyOrder, cutIdSql, idCharsMax, staysSql } from './keyOrder.ts'
import type { OpenTable } from './openTable.ts'
import type { Outbox } from './outbox.ts'
import { readFirstWaiting } from './readRows.ts'
import { recordDifferences } from './rowDifferences.ts'
import { formOf } from './stateForms.ts'
import { writeStatements } from './writeStatements.ts'

/** Claims rows that wait, in their order. Only one instance may claim at a time: order by key depends on it. */
export async function claimRows(outbox: Outbox, request: RowsRequest): Promise<ClaimedRows> {
  await outbox.adoptLate()
  return outbox.ask(async (table) => {
    const failing = outbox.failingRows.ids().map((outboxId) => ({ outboxId, isCaptured: false }))
    const meant = { ...request, skipped: [...request.skipped, ...failing] }
    const { scan } = table
    if (scan !== null) {
      const found = await scan.findUnknown(meant)
      await recordDifferences(outbox.ledger, scan.takeDifferences())
      return rememberedRows(outbox, table, found)
    }
    const sql = claimStatements(table)
    return heldRows(outbox, table, async (db) => ({
      leftTypes: await findLeftTypes(db, sql, meant),
      outboxIds: await lockRows(db, sql, meant),
    }))
  })
}

/** Claims one row; none if it does not wait, or another session has it locked. */
export async function claimRow(outbox: Outbox, outboxId: string): Promise<ClaimedRows> {
  const table = await outbox.open()
  const { scan } = table
  if (scan === null) {
    const { lockById } = claimStatements(table)
    return heldRows(outbox, table, async (db) => ({ outboxIds: await lockRow(db, lockById, outboxId), leftTypes: [] }))
  }
  const outboxIds = (await scan.isUnknown(outboxId)) ? [outboxId] : []
  return rememberedRows(outbox, table, { outboxIds, leftTypes: [] })
}

/** Rows that only the ledger remembers as taken. */
function rememberedRows(outbox: Outbox, table: OpenTable, { outboxIds, leftTypes }: UnknownRows): ClaimedRows {
  return {
    outboxIds,
    leftTypes,
    isRemembered: true,
    read: () => readFirstWaiting(outbox, table.db, table, outboxIds),
    // These rows are not locked: by now they may say more than that they were taken.
    mark: async (statuses) => idsOf(toWrite(table, statuses)),
    async [Symbol.asyncDispose]() {},
  }
}

/** Rows locked by a transaction, which ends when they are marked or let go. */
async function heldRows(
  outbox: Outbox,
  table: OpenTable,
  lock: (db: Database) => Promise<UnknownRows>,
): Promise<ClaimedRows> {
  const transaction = await begin(table.db)
  try {
    const { outboxIds, leftTypes } = await lock(transaction.db)
    return {
      outboxIds,
      leftTypes,
      isRemembered: false,
      read: () => readFirstWaiting(outbox, transaction.db, table, outboxIds),
      async mark(statuses) {
        const unmarked = await mark(transaction.db, table, statuses)
        await transaction.commit()
        return unmarked
      },
      [Symbol.asyncDispose]: () => transaction[Symbol.asyncDispose](),
    }
  } catch (error) {
    await transaction[Symbol.asyncDispose]()
    throw error
  }
}

/**
 * The statuses that change something in the table. A record that ends as it is taken, without a request, is told as taken if the state
 * column has no word for discarded: the row no longer waits, at least.
 */
function toWrite(table: OpenTable, statuses: readonly RowStatus[]): RowStatus[] {
  const states = writeStatements(table)?.states
  const saysDiscarded = formOf(table.table.state)?.isWrittenAt('discarded') ?? true
  return statuses
    .map((status) =>
      status.state === 'discarded' && !saysDiscarded ? { ...status, state: 'queued' as const } : status,
    )
    .filter(({ state }) => states?.has(state))
}

/** @returns the ids of rows that still say that they wait */
async function mark(db: Database, table: OpenTable, statuses: readonly RowStatus[]): Promise<string[]> {
  const writing = writeStatements(table)
  const meant = toWrite(table, statuses)
  if (writing === null || meant.length === 0) return []
  const storable = meant.map((status) => ({ ...status, error: status.error && boundText(status.error) }))
  const { rows } = await db.query<{ outboxId: string; written: boolean }>(writing.mark, [JSON.stringify(storable)])
  const written = new Set(rows.flatMap(({ outboxId, written }) => (written ? [outboxId] : [])))
  return idsOf(meant).filter((id) => !written.has(id))
}

const idsOf = (rows: readonly { outboxId: string }[]): string[] => rows.map(({ outboxId }) => outboxId)

interface LockedRow {
  outboxId: string
  /** Hash of the key. */
  line: string | null
}

const roundsMax = 5
const leftTypesAmongMax = 2_000

type ClaimStatements = ReturnType<typeof claimStatements>

export function claimStatements({ rows }: OpenTable) {
  const { from, waits, key, line, type, sort, order, id, idType, idText } = rows
  const [first, second] = sort
  // Asked in the table, where its bytes are what they are. NULL comes last in the order, and a comparison of rows would lose it.
  const last = `(select ${first?.expression} from ${from} where ${id} = $4::${idType} limit 1)`
  const upToLast =
    second === undefined || first === undefined
      ? `${id} <= $4::${idType}`
      : `((${first.expression}, ${second.expression}) <= (${last}, $4::${idType})
          or (${last} is null and (${first.expression} is not null or ${id} <= $4::${idType})))`
  return {
    // Not "for update": that would wait for, and hold up, whoever inserts rows that refer to these.
    lock: `select ${idText} as "outboxId", ${line} as line
      from ${from} where ${waits} and ${cutIdSql(idText)} <> all($2::text[]) and not ${staysSql(type, 3)}
        and (${key} is null or (${key} <> all($5::text[]) and ${line} <> all($6::bigint[])) or ${id} = any($7::${idType}[]))
      order by ${order} limit $1 for no key update of o skip locked`,
    lockById: `select ${idText} as "outboxId" from ${from} where ${waits} and ${id} = $1::${idType}
      for no key update of o skip locked`,
    overtaking: `select "outboxId" from (
        select ${idText} as "outboxId", ${id} = any($2::${idType}[]) as locked,
          bool_or(${id} <> all($2::${idType}[]) and ${cutIdSql(idText)} <> all($3::text[])) over (partition by ${line} order by ${order}) as "isBehind"
        from ${from} where ${waits} and ${line} = any($1::bigint[]) and ${upToLast}
      ) line where locked and "isBehind"`,
    leftTypes: `select distinct type from (
        select ${type} as type from ${from} where ${waits} and ${staysSql(type, 1)} order by ${order} limit ${leftTypesAmongMax}
      ) waiting`,
  }
}

/**
 * Locks up to `limit` rows that wait, lowest first. A row stays if one of its key before it waits and could not be locked:
 * someone else has that one in hand, or it is put off, or left to another instance, and must not be overtaken. It stays,
 * too, if there are enough of its key.
 *
 * @returns their ids, in order
 */
async function lockRows(db: Database, statements: ClaimStatements, request: RowsRequest): Promise<string[]> {
  const { limit, keyRowsMax, exceptKeys, skipped, types } = request
  const closed = new Set<string>()
  let taken: LockedRow[] = []
  for (let round = 1; ; round++) {
    const { rows } = await db.query<LockedRow>(statements.lock, [
      limit,
      cutIdsOf(skipped),
      types.known,
      types.elsewhere,
      exceptKeys,
      [...closed],
      idsOf(taken),
    ])
    const overtaking = await findOvertaking(db, statements, rows, skipped)
    taken = takeInLine(rows, overtaking, keyRowsMax)
    const hasEnough = taken.length === rows.length || rows.length < limit || round >= roundsMax
    if (hasEnough) return idsOf(taken)
    const kept = new Set(taken)
    for (const row of rows) if (!kept.has(row) && row.line !== null) closed.add(row.line)
  }
}

/** Locks the row of this id. @returns it, or nothing: it does not wait, or is someone else's, or no row can have that id */
async function lockRow(db: Database, lockById: string, outboxId: string): Promise<string[]> {
  try {
    return idsOf((await db.query<LockedRow>(lockById, [outboxId])).rows)
  } catch (error) {
    if (isInvalidValue(error)) return []
    throw error
  }
}

/** Which of the rows that were locked have one of their key before them that was not. */
async function findOvertaking(
  db: Database,
  { overtaking }: ClaimStatements,
  locked: readonly LockedRow[],
  skipped: RowsRequest['skipped'],
): Promise<ReadonlySet<string>> {
  const lines = new Set(locked.flatMap(({ line }) => (line === null ? [] : [line])))
  const last = locked.at(-1)
  if (lines.size === 0 || last === undefined) return new Set()
  const { rows } = await db.query<{ outboxId: string }>(overtaking, [
    [...lines],
    idsOf(locked),
    cutIdsOf(skipped.filter(({ isCaptured }) => isCaptured)),
    last.outboxId,
  ])
  return new Set(idsOf(rows))
}

/** The rows that may be taken: of each key the first ones, up to one that overtakes, and at most `keyRowsMax`. */
function takeInLine(rows: readonly LockedRow[], overtaking: ReadonlySet<string>, keyRowsMax: number): LockedRow[] {
  const goes = createKeyOrder(keyRowsMax)
  return rows.filter(({ outboxId, line }) => goes(line, !overtaking.has(outboxId)))
}

const cutIdsOf = (rows: readonly { outboxId: string }[]) => idsOf(rows).map((id) => id.slice(0, idCharsMax))

/** Where several instances know different types, those of the first rows that are left to another. */
async function findLeftTypes(db: Database, { leftTypes }: ClaimStatements, { types }: RowsRequest): Promise<string[]> {
  if (types.elsewhere?.length === 0) return []
  const { rows } = await db.query<{ type: string }>(leftTypes, [types.known, types.elsewhere])
  return rows.map(({ type }) => type)
}
