import type pg from 'pg'
import { raiseProblems } from '../ledger/problems.ts'
import { conflictRetryMs, type RowConflict, wholeTable } from '../ledger/sameRow.ts'
import {
  assertServed,
  claimOutbox,
  nameOutbox,
  type OutboxIdentity,
  readServedOutbox,
  type ServedOutbox,
  type StartPosition,
} from '../ledger/servedOutbox.ts'
import type { ClaimedRows, OutboxRecord, RowStatus, RowsRequest, Telling } from '../model.ts'
import { states } from '../model.ts'
import { begin, type Database } from '../postgres/database.ts'
import { storableText } from '../postgres/storableText.ts'
import { type HiddenRows, liesBefore, readHidden, whyNoStart } from './beforeStart.ts'
import { type ClaimStatements, claimStatements, cutId, lockById, lockRows } from './claimByLock.ts'
import { type CursorScan, openCursorScan } from './cursorScan.ts'
import { type CursorStore, openCursorStore, type SeenRow } from './cursorStore.ts'
import { findNow } from './findNow.ts'
import { findRemarks } from './findRemarks.ts'
import { type OutboxHistory, readHistory } from './history.ts'
import { openHorizon } from './horizon.ts'
import { inspectTable, qualifiedName, type TableShape } from './inspectTable.ts'
import { isNoValueOfType } from './isNoValueOfType.ts'
import { findLocked, type LockedRow, type LockedStatements, lockedStatements } from './lockedRows.ts'
import { readIdentity } from './outboxIdentity.ts'
import { type OutboxTable, saysTaken, standardTable } from './outboxTable.ts'
import { outboxChannel } from './outboxTableName.ts'
import { readPayloadText } from './payloadText.ts'
import { type ReadRow, type ReadStatements, readFirstRows, readStatements } from './readRows.ts'
import { type LookStatements, reviewConflicts } from './reviewConflicts.ts'
import { type RowExpressions, rowExpressions } from './statements.ts'
import { type TakenRow, type TakenStatements, takenStatements } from './takenRows.ts'
import { tellRows } from './tellRows.ts'
import { type RowTrial, tryRow } from './tryRow.ts'
import { createUnfilterable, type FilterStatements, mayBeRowsFault } from './unfilterable.ts'
import { createUnreadableIds, unreadableMax } from './unreadableIds.ts'
import { type WriteStatements, writeStatements } from './writeBack.ts'

export type { OutboxTable } from './outboxTable.ts'
export type { TakenRow } from './takenRows.ts'

/** What is left in the outbox. */
export interface OutboxBacklog {
  waiting: number
  /** Creation of the oldest row that waits, epoch milliseconds; null where none does, or the table does not say. */
  oldestMs: number | null
}

/** The client's outbox: read by the rows' own state or by the ledger's memory, written only in the columns that are ours. */
export interface Outbox {
  /** Claims rows that wait, in their order. Only one at a time may claim: order by key stands on it. */
  claim(request: RowsRequest): Promise<ClaimedRows>
  /** Claims the row of this id; none where it does not wait, or someone else has it in hand. */
  claimOne(outboxId: string): Promise<ClaimedRows>
  /** Ids of the first rows that wait and that another session may have locked, so that no claim takes them; cheap. */
  readMarked(): Promise<string[]>
  /** Those of these rows that wait and that another session has locked at this moment. */
  findLocked(outboxIds: readonly string[]): Promise<LockedRow[]>
  /** The row as it is now, whatever its state; null where there is none of that id. */
  readRecord(outboxId: string): Promise<OutboxRecord | null>
  /** The rows that wait, in the order in which they would be claimed; locks and changes nothing. */
  readNew(limit: number): Promise<OutboxRecord[]>
  /** Whether any row waits, or may; cheap. */
  hasNew(): Promise<boolean>
  /**
   * Writes states to rows that were claimed, but for those that somebody has locked.
   *
   * @param read what to write, asked when nobody else writes any
   * @throws Error where nothing could be written, whatever the rows
   */
  report<R extends RowStatus>(read: () => Promise<R[]>): Promise<Telling<R>>
  /** Tries on one row that waits what the daemon writes, and takes it back. */
  tryRow(): Promise<RowTrial>
  backlog(): Promise<OutboxBacklog>
  /** The rows that wait; null once anything was ever captured. */
  readHistory(): Promise<OutboxHistory | null>
  /** Which table it is, whether or not it is the one that the ledger belongs to. @throws OutboxTableUnusable */
  identify(): Promise<OutboxIdentity>
  /**
   * Sees that the table can be used and is the ledger's; a ledger that knows none belongs to it from now on.
   *
   * @throws OutboxTableUnusable, ForeignOutbox
   */
  adopt(who: string): Promise<void>
  /**
   * The rows of a slice, in the order of ids, that say they are under way and that the ledger does not know.
   *
   * @param after the id that ended the slice before
   * @returns `upTo`: the id that ends it, null for the last; null where rows do not say that they are under way
   */
  readTaken(after: string | null): Promise<{ unknown: TakenRow[]; upTo: string | null } | null>
  /** Conflicts of rows that the ERP has taken out or put right are over. */
  reviewConflicts(): Promise<void>
  /** The start position of this moment. @throws OutboxTableUnusable where there is none to be had */
  findNow(): Promise<StartPosition>
  /** @returns why a start position cannot be used; null where it can. @throws OutboxTableUnusable */
  tryStart(start: StartPosition): Promise<string | null>
  /** The rows that say that they wait before a start position: the ledger's own, where none is given. Null: they cannot say so */
  readHidden(start?: StartPosition): Promise<HiddenRows | null>
  /** What is no mistake of the table or its description, and may not be what was meant: clauses. */
  findRemarks(): Promise<string[]>
  /** Whether a row lies before the ledger's start position. */
  liesBefore(outboxId: string): Promise<boolean>
  /** The channel that announces new rows; null where the table has no such trigger. */
  readonly channel: string | null
  /** The table's name, quoted, with its schema where one was named. */
  readonly qualified: string
}

/**
 * Opens an outbox table. Its columns are looked up when it is first used.
 *
 * @param table     as described, or the name of a table such as migrations/outbox.sql creates
 * @param bytesMost larger payloads are claimed unread
 * @param ledger    remembers what is taken where the table cannot say so
 */
export function openOutbox(pool: pg.Pool, table: OutboxTable | string, bytesMost: number, ledger: Database): Outbox {
  const described = typeof table === 'string' ? standardTable(table, states, outboxChannel) : table
  const unfilterable = createUnfilterable({ pool, ledger })
  const unreadableIds = createUnreadableIds({ pool, ledger })
  let inspected: Promise<InspectedTable> | undefined
  let opened: { from: OpenTable; served: string } | undefined
  const inspect = () => {
    inspected ??= inspectNamed(pool, described).catch((error: unknown) => {
      inspected = undefined // the table may be there, and right, the next time
      throw error
    })
    return inspected
  }
  /** Asked anew each time: another instance, or an operator, may have said that the ledger belongs elsewhere. */
  const open = async (): Promise<OpenTable> => {
    const table = await inspect()
    const served = await readServedOutbox(ledger)
    assertServed(served, table.identity)
    const key = JSON.stringify([served.epoch, served.start, served.rowsEdited, unfilterable.ids()])
    if (opened?.served !== key)
      opened = {
        from: openTable(pool, described, table, { served, unfilterable: unfilterable.ids() }, ledger),
        served: key,
      }
    return opened.from
  }
  /** Where rows do not say that they are taken, pages of them are read with their stamps, which hash what a row holds. */
  const mayFail = described.filter !== null || !saysTaken(described)
  /** Does work that the filter, or a stamp, may fail for a single row in. */
  const withFilter = async <T>(work: (from: OpenTable) => Promise<T>): Promise<T> => {
    const { sql } = await open()
    await unfilterable.retest(sql)
    const known = unfilterable.ids()
    try {
      return await work(await open())
    } catch (error) {
      if (!mayFail || !mayBeRowsFault(error) || !(await unfilterable.find(sql, known))) throw error
      return work(await open())
    }
  }
  const failing = () => unfilterable.ids().map((outboxId) => ({ outboxId, isCaptured: false }))
  let isOurs = false
  const adopt = async (who: string) => {
    const { identity } = await inspect()
    await claimOutbox(ledger, identity, who)
    await open()
    isOurs = true
  }
  const toRecord = ({ raw, bytes, ...row }: ReadRow): OutboxRecord => {
    const { encoding } = described.payload.kind === 'column' ? described.payload : { encoding: 'utf-8' }
    const { outboxId, type, createdAt, stamp } = row
    const { key, unreadable } = readKey(row.key)
    const payload =
      unreadable === null ? readPayloadText({ raw, bytes }, encoding, bytesMost) : { payload: null, unreadable }
    return { outboxId, type, key, createdAt, stamp, ...payload }
  }
  const toWrite = ({ writing }: OpenTable, statuses: readonly RowStatus[]) =>
    statuses.filter(({ state }) => writing?.states.has(state))
  const mark = async (db: Database, from: OpenTable, statuses: readonly RowStatus[]) => {
    const meant = toWrite(from, statuses)
    if (from.writing === null || meant.length === 0) return []
    const storable = meant.map((status) => ({ ...status, error: status.error && storableText(status.error) }))
    const { rows } = await db.query<{ outboxId: string; written: boolean }>(from.writing.mark, [
      JSON.stringify(storable),
    ])
    const written = new Set(rows.flatMap(({ outboxId, written }) => (written ? [outboxId] : [])))
    return idsOf(meant).filter((id) => !written.has(id))
  }
  const raise = (conflicts: readonly RowConflict[]) =>
    raiseProblems(
      ledger,
      conflicts.map(({ outboxId, detail }) => ({
        kind: 'row_conflict',
        subject: outboxId,
        detail,
        retryInMs: outboxId === wholeTable ? null : conflictRetryMs,
      })),
    )
  const readRows = async (from: OpenTable, ids: readonly string[]) => {
    const { rows } = await pool.query<ReadRow>(from.sql.byIds, [bytesMost, ids])
    return rows.map(toRecord)
  }
  const readFirst = async (db: Database, { sql }: OpenTable, ids: readonly string[]) =>
    (await readFirstRows(db, sql, ids, bytesMost)).map(toRecord)

  const remembered = (from: OpenTable, outboxIds: string[], leftTypes: string[] = []): ClaimedRows => ({
    outboxIds,
    leftTypes,
    isRemembered: true,
    read: () => readFirst(pool, from, outboxIds),
    // Nobody has these rows in hand: they may be told more by now than that they were taken.
    mark: async (statuses) => idsOf(toWrite(from, statuses)),
    async [Symbol.asyncDispose]() {},
  })
  const locked = async (
    from: OpenTable,
    lock: (db: Database) => Promise<{ outboxIds: string[]; leftTypes: string[] }>,
  ): Promise<ClaimedRows> => {
    const transaction = await begin(pool)
    try {
      const { outboxIds, leftTypes } = await lock(transaction.db)
      return {
        outboxIds,
        leftTypes,
        isRemembered: false,
        read: () => readFirst(transaction.db, from, outboxIds),
        async mark(statuses) {
          const unmarked = await mark(transaction.db, from, statuses)
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

  return {
    channel: described.channel,
    qualified: qualifiedName(described),
    async identify() {
      return (await inspect()).identity
    },
    adopt,
    async readTaken(after) {
      return withFilter(async ({ taken, memory }) => {
        if (taken === null) return null
        const last = after === null ? [] : [after]
        const { rows: ends } = await pool.query<{ id: string }>(after === null ? taken.end : taken.endAfter, [
          sliceMax - 1,
          ...last,
        ])
        const upTo = ends[0]?.id ?? null
        const bounds = [...last, ...(upTo === null ? [] : [upTo])]
        const { rows } = await pool.query<TakenRow>(taken.rows(after !== null, upTo !== null), bounds)
        const { known } = await memory.findKnown(rows)
        return { unknown: rows.filter(({ outboxId }) => !known.has(outboxId)), upTo }
      })
    },
    reviewConflicts: () => reviewConflicts({ pool, ledger }, open),
    async findNow() {
      return findNow(pool, described, (await inspect()).shape)
    },
    async tryStart(start) {
      return whyNoStart(pool, { table: described, ...(await inspect()) }, start)
    },
    async readHidden(start) {
      const position = start ?? (await readServedOutbox(ledger)).start
      return readHidden(pool, { table: described, ...(await inspect()) }, position)
    },
    async findRemarks() {
      return findRemarks(pool, described, (await inspect()).shape)
    },
    async liesBefore(outboxId) {
      const { start } = await readServedOutbox(ledger)
      return liesBefore(pool, { table: described, ...(await inspect()) }, start, outboxId)
    },
    async claim(request) {
      if (!isOurs) await adopt('daemon') // its database was away at the start
      return withFilter(async (from) => {
        await unreadableIds.tell(from.unreadable)
        const meant = { ...request, skipped: [...request.skipped, ...failing()] }
        if (from.cursorScan !== null) {
          const { outboxIds, leftTypes } = await from.cursorScan.findUnknown(meant)
          await raise(from.cursorScan.takeConflicts())
          return remembered(from, outboxIds, leftTypes)
        }
        return locked(from, async (db) => ({
          leftTypes: await findLeftTypes(db, from.sql, meant),
          outboxIds: await lockRows(db, from.sql, meant),
        }))
      })
    },
    async claimOne(outboxId) {
      const from = await open()
      if (from.cursorScan !== null)
        return remembered(from, (await from.cursorScan.isUnknown(outboxId)) ? [outboxId] : [])
      return locked(from, async (db) => ({ outboxIds: await lockById(db, from.sql, outboxId), leftTypes: [] }))
    },
    async readMarked() {
      return withFilter(async ({ cursorScan, sql }) => {
        if (cursorScan !== null) return [] // rows are read there, and no lock keeps anybody from that
        return idsOf((await pool.query<{ outboxId: string }>(sql.marked)).rows)
      })
    },
    async findLocked(outboxIds) {
      return withFilter(({ sql }) => findLocked(pool, sql, outboxIds))
    },
    async readRecord(outboxId) {
      const { sql } = await open()
      try {
        const { rows } = await pool.query<ReadRow>(sql.byId, [bytesMost, outboxId])
        return rows[0] ? toRecord(rows[0]) : null
      } catch (error) {
        if (isNoValueOfType(error)) return null
        throw error
      }
    },
    async readNew(limit) {
      return withFilter(async (from) => {
        if (from.cursorScan !== null)
          return readRows(
            from,
            (await from.cursorScan.findUnknown({ ...everything, limit, skipped: failing() })).outboxIds,
          )
        const { rows } = await pool.query<ReadRow>(from.sql.waiting, [bytesMost, limit])
        return rows.map(toRecord)
      })
    },
    async hasNew() {
      return withFilter(async ({ cursorScan, sql }) => {
        if (cursorScan !== null) return cursorScan.hasUnknown()
        const { rowCount } = await pool.query(sql.any)
        return (rowCount ?? 0) > 0
      })
    },
    async report(read) {
      const { writing, table } = await open()
      if (writing !== null) return tellRows({ pool, table, writing }, read)
      return { kind: 'told', rows: (await read()).map((status) => ({ status, kind: 'written' })) }
    },
    async tryRow() {
      const { writing, sql } = await open()
      return writing === null ? { kind: 'never-written' } : tryRow({ pool, writing, lock: sql.lockOne, any: sql.any })
    },
    async readHistory() {
      const { rows } = await ledger.query<{ any: boolean }>(`select exists (select from outboxd.submission) as any`)
      return rows[0]?.any ? null : readHistory(pool, (await open()).history)
    },
    async backlog() {
      return withFilter(async ({ cursorScan, sql }) => {
        if (cursorScan === null) {
          const { rows } = await pool.query<{ waiting: number; oldest: string | null }>(sql.backlog)
          return { waiting: rows[0]?.waiting ?? 0, oldestMs: toMs(rows[0]?.oldest) }
        }
        const { waiting, firstId } = await cursorScan.countUnknown()
        const { rows } = firstId === null ? { rows: [] } : await pool.query<SeenRow>(sql.look, [[firstId]])
        return { waiting, oldestMs: toMs(rows[0]?.createdAt) }
      })
    },
  }
}

interface OpenTable {
  readonly sql: ClaimStatements &
    ReadStatements &
    LookStatements &
    LockedStatements &
    FilterStatements &
    Record<'byId' | 'waiting' | 'any' | 'lockOne' | 'backlog', string>
  readonly history: Parameters<typeof readHistory>[1]
  /** Finds rows whose ids cannot be read; null where each can. */
  readonly unreadable: string | null
  readonly writing: WriteStatements | null
  /** Quoted, with its schema where it is described so. */
  readonly table: string
  /** Null where the rows themselves say whether they wait. */
  readonly cursorScan: CursorScan | null
  /** Null where the rows do not say that they are under way. */
  readonly taken: TakenStatements | null
  readonly memory: CursorStore
}

/** Rows of one slice of a comparison: some ten milliseconds. */
const sliceMax = 10_000

interface InspectedTable {
  readonly shape: TableShape
  readonly identity: OutboxIdentity
  /** Of the database, by Postgres' name. */
  readonly encoding: string
}

async function inspectNamed(pool: pg.Pool, table: OutboxTable): Promise<InspectedTable> {
  const shape = await inspectTable(pool, table)
  const { rows } = await pool.query<{ encoding: string }>(`select current_setting('server_encoding') as encoding`)
  const identity = await readIdentity(pool, shape.qualified, table.id)
  return { shape, identity, encoding: rows[0]?.encoding ?? 'UTF8' }
}

function openTable(
  pool: pg.Pool,
  table: OutboxTable,
  { shape, identity, encoding }: InspectedTable,
  { served, unfilterable }: { served: ServedOutbox; unfilterable: readonly string[] },
  ledger: Database,
): OpenTable {
  const { epoch, start } = served
  const rows = rowExpressions(table, shape, start, encoding, unfilterable)
  const memory = openCursorStore(ledger, epoch)
  const from = `${shape.qualified} o`
  const byTransaction = table.sequence === null
  return {
    sql: {
      ...claimStatements(from, rows),
      ...readStatements(from, rows),
      ...lookStatements(from, rows),
      ...lockedStatements(from, rows, shape),
      // With the stamp as it is for every row: whether it still fails is asked.
      ...filterStatements(table, from, rowExpressions(table, shape, start, encoding)),
    },
    history: { from, waits: rows.waits, createdAt: rows.createdAt },
    unreadable:
      rows.hasId === ''
        ? null
        : `select ${rows.idText} as id from ${from} where ${rows.mayWait} and not (true${rows.hasId}) limit ${unreadableMax}`,
    writing: writeStatements(table, shape, states, rows, served.rowsEdited),
    table: shape.qualified,
    taken: takenStatements(table, shape, rows, served),
    memory,
    cursorScan: saysTaken(table)
      ? null
      : openCursorScan({
          db: pool,
          from,
          rows,
          horizon: openHorizon(pool, table, shape),
          cursorStore: memory,
          name: nameOutbox(identity),
          byTransaction,
        }),
  }
}

function filterStatements(
  table: OutboxTable,
  from: string,
  { mayWait, hasId, stamp, idType, idText, sort }: RowExpressions,
) {
  const id = sort.at(-1)?.expression
  const filter = table.filter ?? 'true'
  const asked = saysTaken(table) ? '1' : stamp
  return {
    candidates: `select ${idText} as id from ${from} where ${mayWait}${hasId} and ($1::${idType} is null or ${id} > $1::${idType})
      order by ${id} limit $2`,
    ask: `select count(case when (${filter}\n) then ${asked} end) from ${from} where ${id} = any($1::${idType}[])`,
  }
}

function lookStatements(
  from: string,
  { waits, hasId, record, createdAt, stamp, idType, idText, sort }: RowExpressions,
) {
  const order = sort.map(({ expression }) => expression).join(', ')
  const id = sort.at(-1)?.expression
  const seen = `select ${idText} as "outboxId", ${stamp} as stamp, ${createdAt} as "createdAt" from ${from}`
  return {
    look: `${seen} where ${id} = any($1::${idType}[])`,
    lookByText: `${seen} where ${cutId(idText)} = any($1::text[])`,
    byId: `select ${record} from ${from} where ${id} = $2::${idType}`,
    waiting: `select ${record} from ${from} where ${waits} order by ${order} limit $2`,
    any: `select from ${from} where ${waits} limit 1`,
    lockOne: `select ${idText} as "outboxId" from ${from} where ${waits}${hasId} limit 1 for no key update of o skip locked`,
    backlog: `select count(*)::float8 as waiting,
        (select ${createdAt} from ${from} where ${waits} order by ${order} limit 1) as oldest
      from ${from} where ${waits}`,
  }
}

/** The ledger's index of keys cannot hold entries above 2,704 bytes. */
const keyBytesMax = 2_500

function readKey(key: string | null): { key: string | null; unreadable: string | null } {
  const bytes = key === null ? 0 : Buffer.byteLength(key)
  if (bytes <= keyBytesMax) return { key, unreadable: null }
  return { key: null, unreadable: `the key has ${bytes} bytes, more than the ${keyBytesMax} that a key may have` }
}

/** Where several instances know different types, those of the first rows that are left to another. */
async function findLeftTypes(db: Database, { leftTypes }: ClaimStatements, { types }: RowsRequest): Promise<string[]> {
  if (types.elsewhere?.length === 0) return []
  const { rows } = await db.query<{ type: string }>(leftTypes, [types.known, types.elsewhere])
  return rows.map(({ type }) => type)
}

const idsOf = (rows: readonly { outboxId: string }[]) => rows.map(({ outboxId }) => outboxId)

/** Leaves nothing where it is. */
const everything = {
  lineMax: Number.POSITIVE_INFINITY,
  exceptKeys: [],
  skipped: [],
  types: { known: [], elsewhere: [] },
}

function toMs(iso: string | null | undefined): number | null {
  const ms = Date.parse(iso ?? '')
  return Number.isNaN(ms) ? null : ms
}
