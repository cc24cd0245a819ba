import { boundText } from '../boundText.ts'
import { newLedgerAdvice, OutboxMismatch } from '../ledger/binding.ts'
import type { OutboxRecord, RowStatus, RowsRequest } from '../model/outbox.ts'
import type { Database } from '../postgres/database.ts'
import { isInvalidValueError } from '../postgres/sqlState.ts'
import type { OpenTable } from './openTable.ts'
import type { Outbox } from './outbox.ts'
import { advancePosition, readStablePosition } from './position.ts'
import { readWaitingRowsThatFit } from './readRows.ts'
import { idCharsMax } from './rowExpressions.ts'
import type { StablePosition } from './stablePosition.ts'
import { toMarkedState, writeBackStatements } from './writeBack.ts'

/** Rows that the capture's transaction may capture. It has them locked, if the table's form lets it. */
export interface ClaimedRows {
  readonly table: OpenTable
  readonly outboxIds: readonly string[]
  /** Read before the rows. Null unless the table is append-only. */
  readonly stablePosition: StablePosition | null
}

/**
 * @param db the transaction that holds the capture lock, because two claims at once would break the order of a key
 */
export async function claimRows(outbox: Outbox, db: Database, request: RowsRequest): Promise<ClaimedRows> {
  return outbox.queryTable(async (table) => {
    const failing = outbox.failingRows.ids().map((outboxId) => ({ outboxId, isCaptured: false }))
    const meant = { ...request, skipped: [...request.skipped, ...failing] }
    await assertIdsAreComparable(table)
    const stablePosition = await readStablePosition(db, table)
    await db.query('savepoint before_claim')
    try {
      // A row of the form end only that waits although its outcome was written gets the outcome again.
      if (table.form === 'end only') await db.query(claimStatements(table).reportAgain)
      return { table, outboxIds: await lockRows(db, table, meant), stablePosition }
    } catch (error) {
      // If the filter fails for a row, the claim is tried again without that row, in the same transaction.
      await db.query('rollback to savepoint before_claim').catch(() => {}) // a broken session reports `error`
      throw error
    }
  })
}

/**
 * Refuses a table whose id column's new type writes captured ids differently: if rows are not marked on capture, all of
 * them would count as new.
 */
async function assertIdsAreComparable(table: OpenTable): Promise<void> {
  if (table.form === 'marked' || table.areIdsComparable) return
  const now = `outbox_id::${table.rows.exactIdType}::text`
  const sql = `select outbox_id || ' as ' || ${now} as change
    from (select outbox_id from outboxd.submission order by submission.id desc limit 100) captured where ${now} <> outbox_id collate "C" limit 1`
  const change = await table.db.query<{ change: string }>(sql).then(
    ({ rows }) => rows[0]?.change,
    (error: unknown) => {
      if (isInvalidValueError(error)) return 'some do not fit its type'
      throw error
    },
  )
  if (change !== undefined)
    throw new OutboxMismatch(
      `the column now writes ids of the outbox ${table.name} differently (${change}), so captured rows would be sent again`,
      `Give the column its former type. ${newLedgerAdvice}`,
    )
  table.areIdsComparable = true
}

/** Returns no row if the row no longer waits. @throws an error with code 55P03 if another session has locked the row */
export async function claimRow(
  outbox: Outbox,
  db: Database,
  outboxId: string,
): Promise<ClaimedRows & { key: string | null }> {
  const table = await outbox.open()
  const rows = await readRow(db, claimStatements(table).lockById, outboxId)
  return { table, outboxIds: idsOf(rows), stablePosition: null, key: rows[0]?.key ?? null }
}

/** Reads at least one row, and as many as memory allows. @param db the transaction of the claim */
export const readClaimedRows = (outbox: Outbox, db: Database, rows: ClaimedRows): Promise<OutboxRecord[]> =>
  readWaitingRowsThatFit(outbox, rows.table.locksRows ? db : rows.table.db, rows.table, rows.outboxIds)

/** Locks nothing. */
export async function hasToWaitForKey(
  outbox: Outbox,
  outboxId: string,
  order: Pick<RowsRequest, 'exceptKeys' | 'skipped'>,
): Promise<boolean> {
  return outbox.queryTable(async (table) => {
    const sql = claimStatements(table)
    const rows = await readRow(table.db, sql.keyById, outboxId)
    // A row behind the position is not captured again by itself: its record waits for its key in the ledger.
    if (rows.some(({ key, isAhead }) => isAhead && key !== null && order.exceptKeys.includes(key))) return true
    return (await findOvertaking(table.db, sql, rows, order.skipped)).size > 0
  })
}

/**
 * Writes the states of rows whose records are inserted, before the COMMIT. Of an append-only table, moves the position.
 *
 * @returns the ids of the rows that still have to be written
 */
export async function markRows(
  db: Database,
  { table, stablePosition }: Pick<ClaimedRows, 'table' | 'stablePosition'>,
  statuses: readonly RowStatus[],
): Promise<string[]> {
  if (stablePosition !== null) await advancePosition(db, table, stablePosition)
  const writing = writeBackStatements(table)
  if (writing === null) return []
  if (table.form !== 'marked') return idsOf(statuses.filter(({ state }) => writing.states.has(state)))
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
  isAhead: boolean
  key: string | null
}

/** The second round reads at least this many rows. Each further round reads twice as many as the round before. */
const secondRoundRowsMin = 500
/** Bounds a claim of up to 500 rows to 63,500 rows that are read, because the rows that wait are locked, too. */
const roundsMax = 7
const passedKeysMax = 250_000
/** Rows whose outcomes are written again at once. The next claim takes further rows. */
const setBackMax = 1_000

type ClaimStatements = ReturnType<typeof claimStatements>

export function claimStatements({ rows, locksRows }: OpenTable) {
  const {
    from,
    uncaptured,
    hasNoRecord,
    isAhead,
    setBack,
    key,
    keyHash,
    type,
    sort,
    order,
    id,
    idType,
    idText,
    shortenedId,
  } = rows
  const [first, second = null] = sort
  // Postgres reads the last row's sort value itself, because a value sent as text may lose digits. NULL sorts last and
  // needs a case of its own.
  const last = `(select ${first} from ${from} where ${id} = $4::${idType} limit 1)`
  const upToLast =
    second === null
      ? `${id} <= $4::${idType}`
      : `((${first}, ${id}) <= (${last}, $4::${idType})
          or (${last} is null and (${first} is not null or ${id} <= $4::${idType})))`
  const keyById = `select ${idText} as "outboxId", ${key} as key, ${keyHash} as "keyHash", ${isAhead} as "isAhead" from ${from} where ${hasNoRecord} and ${id} = $1::${idType}`
  return {
    // `for no key update`, because `for update` would block inserts that refer to these rows.
    lock: `select ${idText} as "outboxId", ${keyHash} as "keyHash"
      from ${from} where ${uncaptured} and ${shortenedId} <> all($2::text[]) and (${type} = any($3::text[])) is not true
        and (${key} is null or (${key} <> all($4::text[]) and ${keyHash} <> all($5::bigint[])) or ${id} = any($6::${idType}[]))
      order by ${order} limit $1 ${locksRows ? 'for no key update of o skip locked' : ''}`,
    keyById,
    lockById: `${keyById} ${locksRows ? 'for no key update of o nowait' : ''}`,
    overtaking: `select "outboxId" from (
        select ${idText} as "outboxId", ${id} = any($2::${idType}[]) as locked,
          bool_or(${id} <> all($2::${idType}[]) and ${shortenedId} <> all($3::text[])) over (partition by ${keyHash} order by ${order}) as "isBehind"
        from ${from} where ${uncaptured} and ${keyHash} = any($1::bigint[]) and ${upToLast}
      ) "inOrder" where locked and "isBehind"`,
    reportAgain: `update outboxd.submission set report_due = true
      where outbox_id = any(array(select ${idText} collate "C" from ${from} where ${setBack} limit ${setBackMax}))`,
  }
}

/**
 * Locks up to `limit` waiting rows, lowest first. Leaves out a row if an earlier row of its key waits and was not
 * locked: the earlier row is skipped, of a held type, or locked by another session.
 *
 * Later rounds read more than `limit` rows, so that left-out rows do not stop other keys while `limit` is small.
 */
async function lockRows(db: Database, table: OpenTable, request: RowsRequest): Promise<string[]> {
  const { limit, keyRowsMax, exceptKeys, skipped, heldTypes } = request
  const statements = claimStatements(table)
  const typesText = JSON.stringify(heldTypes)
  const { passedKeys } = table
  table.passedKeys = null
  const closed = new Set(passedKeys?.types === typesText ? passedKeys.keyHashes : [])
  let chosen: LockedRow[] = []
  let rowsMax = limit
  for (let round = 1; ; round++) {
    const { rows } = await db.query<LockedRow>(statements.lock, [
      rowsMax,
      cutIdsOf(skipped),
      heldTypes,
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

/** After `keyRowsMax` rows of a key, or a row that has to wait, all later rows of the key wait. */
function takeInKeyOrder(rows: readonly LockedRow[], overtaking: ReadonlySet<string>, keyRowsMax: number): LockedRow[] {
  const taken = new Map<string, number>()
  return rows.filter(({ outboxId, keyHash }) => {
    if (keyHash === null) return true
    const count = taken.get(keyHash) ?? 0
    const goes = count < keyRowsMax && !overtaking.has(outboxId)
    taken.set(keyHash, goes ? count + 1 : keyRowsMax)
    return goes
  })
}

const cutIdsOf = (rows: readonly { outboxId: string }[]) => idsOf(rows).map((id) => id.slice(0, idCharsMax))
