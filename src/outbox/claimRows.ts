import { boundText } from '../boundText.ts'
import { raiseRowConflicts } from '../ledger/rowConflicts.ts'
import type { ClaimedRow, ClaimedRows, RowOrder, RowStatus, RowsRequest } from '../model.ts'
import type { Database } from '../postgres/database.ts'
import { isInvalidValueError } from '../postgres/sqlState.ts'
import type { RowsToCapture } from './cursorScan.ts'
import { createKeyOrderFilter, idCharsMax, isTypeOfOtherInstancesSql, shortenedIdSql } from './keyOrder.ts'
import type { OpenTable } from './openTable.ts'
import type { Outbox } from './outbox.ts'
import { type ReadRow, readWaitingRowsThatFit } from './readRows.ts'
import { toMarkedState, writeBackStatements } from './writeBackStatements.ts'

/**
 * @param db the transaction that holds the capture lock, because two claims at once would break the order of a key
 */
export async function claimRows(outbox: Outbox, db: Database, request: RowsRequest): Promise<ClaimedRows> {
  await outbox.ensureLedgerBound()
  return outbox.queryTable(async (table) => {
    const failing = outbox.failingRows.ids().map((outboxId) => ({ outboxId, isCaptured: false }))
    const meant = { ...request, skipped: [...request.skipped, ...failing] }
    const { scan } = table
    if (scan !== null) {
      const found = await scan.findUncapturedRows(meant)
      await raiseRowConflicts(outbox.ledger, scan.takeConflicts())
      await scan.advance()
      return rememberedRows(outbox, table, found)
    }
    const sql = waitingRowLockStatements(table)
    return lockedRows(outbox, db, table, async () => ({
      typesLeftToOthers: await findLeftTypes(db, sql, meant),
      outboxIds: await lockRows(db, table, meant),
    }))
  })
}

/** Returns no row if the row no longer waits. @throws an error with code 55P03 if another session has locked the row */
export async function claimRow(outbox: Outbox, db: Database, outboxId: string): Promise<ClaimedRow> {
  const table = await outbox.open()
  const { scan } = table
  if (scan === null) {
    const { lockById } = waitingRowLockStatements(table)
    let key: string | null = null
    const locked = await lockedRows(outbox, db, table, async () => {
      const rows = await readRow(db, lockById, outboxId)
      key = rows[0]?.key ?? null
      return { outboxIds: idsOf(rows), typesLeftToOthers: [] }
    })
    return { ...locked, key }
  }
  const row = await scan.readUncapturedRow(outboxId)
  const rows = row === null ? [] : [row]
  return { ...rememberedRows(outbox, table, { rows, typesLeftToOthers: [] }), key: row?.key ?? null }
}

/** Locks nothing. */
export async function hasToWaitForKey(outbox: Outbox, outboxId: string, order: RowOrder): Promise<boolean> {
  return outbox.queryTable(async (table) => {
    if (table.scan !== null) return table.scan.hasToWaitForKey(outboxId, order)
    const sql = waitingRowLockStatements(table)
    const rows = await readRow(table.db, sql.keyById, outboxId)
    if (rows.some(({ key }) => key !== null && order.exceptKeys.includes(key))) return true
    return (await findOvertaking(table.db, sql, rows, order.skipped)).size > 0
  })
}

function rememberedRows(outbox: Outbox, table: OpenTable, { rows, typesLeftToOthers }: RowsToCapture): ClaimedRows {
  const outboxIds = idsOf(rows)
  const claimed = new Map(rows.map((row) => [row.outboxId, row]))
  // The ERP may have changed the key since the order was checked. Such a row waits for the next claim.
  const createFilter = () => {
    const goes = createKeyOrderFilter(Number.POSITIVE_INFINITY)
    return ({ outboxId, keyHash, type }: ReadRow) => {
      const seen = claimed.get(outboxId)
      return goes(keyHash, seen?.keyHash === keyHash && seen.type === type)
    }
  }
  return {
    outboxIds,
    typesLeftToOthers,
    isUnmarkable: true,
    readAsManyAsFit: () => readWaitingRowsThatFit(outbox, table.db, table, outboxIds, createFilter()),
    // The rows are not locked and may show a later state already, so the report writes their states.
    markReturningUnmarkedIds: async (statuses) =>
      idsOf(statuses.filter(({ state }) => writeBackStatements(table)?.states.has(state))),
  }
}

async function lockedRows(
  outbox: Outbox,
  db: Database,
  table: OpenTable,
  lock: () => Promise<Pick<ClaimedRows, 'outboxIds' | 'typesLeftToOthers'>>,
): Promise<ClaimedRows> {
  // If the filter fails for a row, the claim is tried again without that row, in the same transaction.
  await db.query('savepoint before_claim')
  try {
    const { outboxIds, typesLeftToOthers } = await lock()
    return {
      outboxIds,
      typesLeftToOthers,
      isUnmarkable: false,
      readAsManyAsFit: () => readWaitingRowsThatFit(outbox, db, table, outboxIds),
      markReturningUnmarkedIds: (statuses) => mark(db, table, statuses),
    }
  } catch (error) {
    await db.query('rollback to savepoint before_claim').catch(() => {}) // a broken session reports `error`
    throw error
  }
}

/** @returns the ids of rows that still wait */
async function mark(db: Database, table: OpenTable, statuses: readonly RowStatus[]): Promise<string[]> {
  const writing = writeBackStatements(table)
  if (writing === null) return []
  const storable = statuses.map(({ state, error, ...status }) => ({
    ...status,
    state: toMarkedState(table.table, state),
    error: error && boundText(error),
  }))
  await db.query(writing.mark, [JSON.stringify(storable)])
  return idsOf((await db.query<{ outboxId: string }>(writing.unmarked, [idsOf(statuses)])).rows)
}

const idsOf = (rows: readonly { outboxId: string }[]): string[] => rows.map(({ outboxId }) => outboxId)

interface LockedRow {
  outboxId: string
  keyHash: string | null
}

interface KeyedRow extends LockedRow {
  key: string | null
}

/** The second round reads at least this many rows. Each further round reads twice as many as the round before. */
const secondRoundRowsMin = 500
/** Bounds a claim of up to 500 rows to 63,500 rows that are read, because the rows that wait are locked, too. */
const roundsMax = 7
const passedKeysMax = 250_000
const leftTypesAmongMax = 2_000

type ClaimStatements = ReturnType<typeof waitingRowLockStatements>

export function waitingRowLockStatements({ rows }: OpenTable) {
  const { from, waits, key, keyHash, type, sort, order, id, idType, idText } = rows
  const [first, second] = sort
  // Postgres reads the last row's sort value itself, because a value sent as text may lose digits. NULL sorts last and
  // needs a case of its own.
  const last = `(select ${first?.expression} from ${from} where ${id} = $4::${idType} limit 1)`
  const upToLast =
    second === undefined || first === undefined
      ? `${id} <= $4::${idType}`
      : `((${first.expression}, ${second.expression}) <= (${last}, $4::${idType})
          or (${last} is null and (${first.expression} is not null or ${id} <= $4::${idType})))`
  const keyById = `select ${idText} as "outboxId", ${key} as key, ${keyHash} as "keyHash" from ${from} where ${waits} and ${id} = $1::${idType}`
  return {
    // `for no key update`, because `for update` would block inserts that refer to these rows.
    lock: `select ${idText} as "outboxId", ${keyHash} as "keyHash"
      from ${from} where ${waits} and ${shortenedIdSql(idText)} <> all($2::text[]) and not ${isTypeOfOtherInstancesSql(type, 3)}
        and (${key} is null or (${key} <> all($5::text[]) and ${keyHash} <> all($6::bigint[])) or ${id} = any($7::${idType}[]))
      order by ${order} limit $1 for no key update of o skip locked`,
    keyById,
    lockById: `${keyById} for no key update of o nowait`,
    overtaking: `select "outboxId" from (
        select ${idText} as "outboxId", ${id} = any($2::${idType}[]) as locked,
          bool_or(${id} <> all($2::${idType}[]) and ${shortenedIdSql(idText)} <> all($3::text[])) over (partition by ${keyHash} order by ${order}) as "isBehind"
        from ${from} where ${waits} and ${keyHash} = any($1::bigint[]) and ${upToLast}
      ) "inOrder" where locked and "isBehind"`,
    leftTypes: `select distinct type from (
        select ${type} as type from ${from} where ${waits} and ${isTypeOfOtherInstancesSql(type, 1)} order by ${order} limit ${leftTypesAmongMax}
      ) waiting`,
  }
}

/**
 * Locks up to `limit` waiting rows, lowest first. Leaves out a row if an earlier row of its key waits and was not
 * locked: the earlier row is skipped, left to another instance, or locked by another session.
 *
 * Later rounds read more than `limit` rows, so that left-out rows do not stop other keys while `limit` is small.
 */
async function lockRows(db: Database, table: OpenTable, request: RowsRequest): Promise<string[]> {
  const { limit, keyRowsMax, exceptKeys, skipped, types } = request
  const statements = waitingRowLockStatements(table)
  const typesText = JSON.stringify(types)
  const { passedKeys } = table
  table.passedKeys = null
  const closed = new Set(passedKeys?.types === typesText ? passedKeys.keyHashes : [])
  let chosen: LockedRow[] = []
  let rowsMax = limit
  for (let round = 1; ; round++) {
    const { rows } = await db.query<LockedRow>(statements.lock, [
      rowsMax,
      cutIdsOf(skipped),
      types.known,
      types.knownToOthers,
      exceptKeys,
      [...closed],
      idsOf(chosen),
    ])
    const overtaking = await findOvertaking(db, statements, rows, skipped)
    chosen = takeInKeyOrder(rows, overtaking, keyRowsMax)
    if (chosen.length >= limit || rows.length < rowsMax) return idsOf(chosen).slice(0, limit)
    const kept = new Set(chosen)
    for (const row of rows) if (!kept.has(row) && row.keyHash !== null) closed.add(row.keyHash)
    if (round >= roundsMax) {
      if (chosen.length === 0 && closed.size < passedKeysMax) table.passedKeys = { types: typesText, keyHashes: closed }
      return idsOf(chosen)
    }
    rowsMax = Math.max(secondRoundRowsMin, 2 * rowsMax)
  }
}

async function readRow(db: Database, statement: string, outboxId: string): Promise<KeyedRow[]> {
  try {
    return (await db.query<KeyedRow>(statement, [outboxId])).rows
  } catch (error) {
    if (isInvalidValueError(error)) return []
    throw error
  }
}

async function findOvertaking(
  db: Database,
  { overtaking }: ClaimStatements,
  locked: readonly LockedRow[],
  skipped: RowsRequest['skipped'],
): Promise<ReadonlySet<string>> {
  const keyHashes = new Set(locked.flatMap(({ keyHash }) => (keyHash === null ? [] : [keyHash])))
  const last = locked.at(-1)
  if (keyHashes.size === 0 || last === undefined) return new Set()
  const { rows } = await db.query<{ outboxId: string }>(overtaking, [
    [...keyHashes],
    idsOf(locked),
    cutIdsOf(skipped.filter(({ isCaptured }) => isCaptured)),
    last.outboxId,
  ])
  return new Set(idsOf(rows))
}

function takeInKeyOrder(rows: readonly LockedRow[], overtaking: ReadonlySet<string>, keyRowsMax: number): LockedRow[] {
  const goes = createKeyOrderFilter(keyRowsMax)
  return rows.filter(({ outboxId, keyHash }) => goes(keyHash, !overtaking.has(outboxId)))
}

const cutIdsOf = (rows: readonly { outboxId: string }[]) => idsOf(rows).map((id) => id.slice(0, idCharsMax))

async function findLeftTypes(db: Database, { leftTypes }: ClaimStatements, { types }: RowsRequest): Promise<string[]> {
  if (types.knownToOthers?.length === 0) return []
  const { rows } = await db.query<{ type: string }>(leftTypes, [types.known, types.knownToOthers])
  return rows.map(({ type }) => type)
}
