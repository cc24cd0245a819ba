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
  readonly hasMore: boolean
  /** Only of a row that was claimed by its id. */
  readonly key: string | null
  /** Read before the rows. Null unless the table is append-only. */
  readonly stablePosition: StablePosition | null
}

/**
 * @param db the transaction that holds the capture lock, because two claims at once would break the order of a key
 */
export async function claimRows(outbox: Outbox, db: Database, request: RowsRequest): Promise<ClaimedRows> {
  return outbox.queryTable(async (table) => {
    const skippedIds = [...request.skippedIds, ...outbox.failingRows.ids()]
    await assertIdsAreComparable(table)
    const stablePosition = await readStablePosition(db, table)
    await db.query('savepoint before_claim')
    try {
      // A row of the form end only that waits although its outcome was written gets the outcome again.
      if (table.form === 'end only') await db.query(claimStatements(table).reportAgain)
      return { table, ...(await lockRows(db, table, { ...request, skippedIds })), key: null, stablePosition }
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

/**
 * Claims a row wherever it lies in the table. Claims none if the row no longer waits, or has to wait for its key.
 *
 * @throws an error with code 55P03 if another session has locked the row
 */
export async function claimRow(
  outbox: Outbox,
  db: Database,
  outboxId: string,
  exceptKeys: readonly string[],
): Promise<ClaimedRows> {
  const table = await outbox.open()
  const statements = claimStatements(table)
  type Found = LockedRow & { key: string | null; isAhead: boolean }
  const { rows } = await db.query<Found>(statements.lockById, [outboxId]).catch((error: unknown) => {
    // No row has an id that does not fit the column. The transaction is aborted, but nothing follows in it.
    if (isInvalidValueError(error)) return { rows: [] }
    throw error
  })
  const { key = null, isAhead = true } = rows[0] ?? {}
  // A row behind the position is not captured again by itself: its record waits for its key in the ledger.
  const isKeyClosed = isAhead && key !== null && exceptKeys.includes(key)
  const hasToWait = isKeyClosed || (await findOvertaking(db, statements, rows)).size > 0
  return { table, outboxIds: hasToWait ? [] : idsOf(rows), hasMore: false, key, stablePosition: null }
}

/** Reads at least one row, and as many as memory allows. @param db the transaction of the claim */
export const readClaimedRows = (outbox: Outbox, db: Database, rows: ClaimedRows): Promise<OutboxRecord[]> =>
  readWaitingRowsThatFit(outbox, rows.table.locksRows ? db : rows.table.db, rows.table, rows.outboxIds)

/** The rows still wait after their mark, because a trigger undid it, or row-level security hides the rows from updates. */
export class MarkIgnored extends Error {
  override name = 'MarkIgnored'
  readonly outboxIds: readonly string[]
  constructor(outboxIds: readonly string[]) {
    super(`the table ignores the marks of ${outboxIds.length} rows`)
    this.outboxIds = outboxIds
  }
}

/**
 * Writes the states of rows whose records are inserted, before the COMMIT. Of an append-only table, moves the position.
 *
 * @returns the ids of the rows to which write-back has to write the states
 * @throws MarkIgnored
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
  const { rows: unmarked } = await db.query<{ outboxId: string }>(writing.unmarked, [idsOf(statuses)])
  if (unmarked.length > 0) throw new MarkIgnored(idsOf(unmarked))
  return []
}

const idsOf = (rows: readonly { outboxId: string }[]): string[] => rows.map(({ outboxId }) => outboxId)

interface LockedRow {
  outboxId: string
  keyHash: string | null
}

/** The second round reads at least this many rows. Each further round reads twice as many as the round before. */
const secondRoundRowsMin = 500
/** Bounds a claim of up to 500 rows to 63,500 rows that are read, because the rows that wait are locked, too. */
const roundsMax = 7
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
  const last = `(select ${first} from ${from} where ${id} = $3::${idType} limit 1)`
  const upToLast =
    second === null
      ? `${id} <= $3::${idType}`
      : `((${first}, ${id}) <= (${last}, $3::${idType})
          or (${last} is null and (${first} is not null or ${id} <= $3::${idType})))`
  return {
    // `for no key update`, because `for update` would block inserts that refer to these rows.
    lock: `select ${idText} as "outboxId", ${keyHash} as "keyHash"
      from ${from} where ${uncaptured} and ${shortenedId} <> all($2::text[]) and (${type} = any($3::text[])) is not true
        and (${key} is null or (${key} <> all($4::text[]) and ${keyHash} <> all($5::bigint[])))
      order by ${order} limit $1 ${locksRows ? 'for no key update of o skip locked' : ''}`,
    lockById: `select ${idText} as "outboxId", ${key} as key, ${keyHash} as "keyHash", ${isAhead} as "isAhead"
      from ${from} where ${hasNoRecord} and ${id} = $1::${idType} ${locksRows ? 'for no key update of o nowait' : ''}`,
    overtaking: `select "outboxId" from (
        select ${idText} as "outboxId", ${id} = any($2::${idType}[]) as locked,
          bool_or(${id} <> all($2::${idType}[])) over (partition by ${keyHash} order by ${order}) as "isBehind"
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
 * If all rows of a round are left out, the next round passes their keys, so that these keys do not stop the others.
 */
async function lockRows(
  db: Database,
  table: OpenTable,
  { limit, keyRowsMax, exceptKeys, skippedIds, heldTypes }: RowsRequest,
): Promise<Pick<ClaimedRows, 'outboxIds' | 'hasMore'>> {
  const statements = claimStatements(table)
  const cutIds = skippedIds.map((id) => id.slice(0, idCharsMax))
  const passedKeys = new Set<string>()
  let rowsMax = limit
  for (let round = 1; ; round++) {
    const { rows } = await db.query<LockedRow>(statements.lock, [
      rowsMax,
      cutIds,
      heldTypes,
      exceptKeys,
      [...passedKeys],
    ])
    const taken = takeInKeyOrder(rows, await findOvertaking(db, statements, rows), keyRowsMax)
    const isFull = rows.length === rowsMax
    if (taken.length > 0 || !isFull || round === roundsMax)
      return { outboxIds: idsOf(taken).slice(0, limit), hasMore: isFull || taken.length > limit }
    for (const { keyHash } of rows) if (keyHash !== null) passedKeys.add(keyHash)
    rowsMax = Math.max(secondRoundRowsMin, 2 * rowsMax)
  }
}

/** Returns the ids of the locked rows that have an earlier row of their key that waits and is not locked. */
async function findOvertaking(
  db: Database,
  { overtaking }: ClaimStatements,
  locked: readonly LockedRow[],
): Promise<ReadonlySet<string>> {
  const keyHashes = new Set(locked.flatMap(({ keyHash }) => (keyHash === null ? [] : [keyHash])))
  const last = locked.at(-1)
  if (keyHashes.size === 0 || last === undefined) return new Set()
  const { rows } = await db.query<{ outboxId: string }>(overtaking, [[...keyHashes], idsOf(locked), last.outboxId])
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
