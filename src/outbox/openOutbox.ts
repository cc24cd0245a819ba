import type pg from 'pg'
import { assertServed, claimOutbox, readServedOutbox, type ServedOutbox } from '../ledger/servedOutbox.ts'
import { readLedgerId } from '../ledger/servedService.ts'
import { states } from '../model.ts'
import type { Database } from '../postgres/database.ts'
import { wasCanceled } from '../postgres/sqlState.ts'
import { liesBefore, readHidden, whyNoStart } from './beforeStart.ts'
import { findLeftTypes, lockById, lockRows } from './claimByLock.ts'
import { heldRows, rememberedRows } from './claimedRows.ts'
import type { SeenRow } from './cursorStore.ts'
import { mayBeRowsFault } from './failingRows.ts'
import { findNow } from './findNow.ts'
import { findRemarks } from './findRemarks.ts'
import { readHistory } from './history.ts'
import { idsOf } from './idsOf.ts'
import { qualifiedName } from './inspectTable.ts'
import { isNoValueOfType } from './isNoValueOfType.ts'
import { findInHand, findLocked } from './lockedRows.ts'
import { type InspectedTable, inspectNamed, type OpenTable, openTable } from './openTable.ts'
import type { Outbox } from './outbox.ts'
import { type OutboxTable, saysTaken, standardTable } from './outboxTable.ts'
import { outboxChannel } from './outboxTableName.ts'
import { readPassed } from './passedRows.ts'
import { raiseConflicts } from './raiseConflicts.ts'
import type { ReadRow } from './readRows.ts'
import { lookAt, reviewConflicts } from './reviewConflicts.ts'
import { readSaid } from './saidRows.ts'
import { findTakenBySecond } from './secondLedger.ts'
import { readSlice } from './slices.ts'
import { stampOurs, type TakenRow } from './takenRows.ts'
import { tellRows } from './tellRows.ts'
import { toRecord } from './toRecord.ts'
import { tryRow } from './tryRow.ts'
import type { TypeCount } from './typeCounts.ts'
import { createUnfilterable } from './unfilterable.ts'
import { readUnknownStatuses } from './unknownStatuses.ts'

/**
 * Opens an outbox table. Its columns are looked up when it is first used.
 *
 * @param table     as described, or the name of a table such as migrations/outbox.sql creates
 * @param bytesMost larger payloads are claimed unread
 * @param ledger    remembers what is taken where the table cannot say so
 */
export function openOutbox(pool: pg.Pool, table: OutboxTable | string, bytesMost: number, ledger: Database): Outbox {
  const described = describeTable(table)
  const unfilterable = createUnfilterable({ pool, ledger })
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
  const open = async (read?: ServedOutbox): Promise<OpenTable> => {
    const table = await inspect()
    const served = read ?? (await readServedOutbox(ledger))
    assertServed(served, table.identity)
    const key = JSON.stringify([served.epoch, served.start, served.rowsEdited, served.readings, unfilterable.ids()])
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
  const withFilter = async <T>(work: (from: OpenTable) => Promise<T>, served?: ServedOutbox): Promise<T> => {
    const before = unfilterable.ids()
    const first = await open(served)
    await unfilterable.retest(first.sql)
    const known = unfilterable.ids()
    const from = known === before ? first : await open()
    try {
      return await work(from)
    } catch (error) {
      if (!mayFail || !mayBeRowsFault(error) || !(await unfilterable.find(from.sql, known))) throw error
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
  const reader = { pool, bytesMost, toRecord: (row: ReadRow) => toRecord(described, bytesMost, row) }
  const takenBySecond = async (outboxIds: readonly string[]): Promise<ReadonlySet<string>> =>
    outboxIds.length === 0 ? new Set() : findTakenBySecond(pool, await readLedgerId(ledger), outboxIds)
  const readRows = async (from: OpenTable, ids: readonly string[]) => {
    const { rows } = await pool.query<ReadRow>(from.sql.byIds, [bytesMost, ids])
    return rows.map(reader.toRecord)
  }
  return {
    channel: described.channel,
    qualified: qualifiedName(described),
    saysTaken: saysTaken(described),
    async identify() {
      return (await inspect()).identity
    },
    adopt,
    async tryTable() {
      await open()
    },
    async readTaken(after, isWaitingToo = false) {
      const { taken, memory } = await open()
      const { canTell } = taken
      const condition = isWaitingToo ? taken.takenOrNamed : taken.taken
      if (condition === null) return { unknown: [], known: [], upTo: null, canTell }
      const { upTo, bounds } = await readSlice(pool, taken, after, sliceMax)
      const { rows } = await pool.query<TakenRow>(taken.rows(condition, after !== null, upTo !== null), bounds)
      const { known, conflicts } = await memory.findKnown(rows)
      const missed = rows.filter(({ outboxId }) => !known.has(outboxId))
      const theirs = await takenBySecond(missed.map(({ outboxId }) => outboxId))
      const unknown = missed.filter(({ outboxId }) => !theirs.has(outboxId))
      const others = new Set(conflicts.map(({ outboxId }) => outboxId))
      return {
        unknown: await stampOurs(pool, taken, unknown),
        known: taken.saysEnds ? [...known.difference(others)] : [],
        ...{ upTo, canTell },
      }
    },
    async readSaid(outboxIds) {
      const { said, memory } = await open()
      return readSaid(pool, said, memory, outboxIds)
    },
    async readPassedOver(after, sliceRows) {
      return withFilter(async ({ cursorScan, passed: statements, memory }) => {
        const position = (await cursorScan?.readPosition()) ?? null
        return position && readPassed({ db: pool, memory, statements }, position, { after, sliceRows })
      }).catch((error: unknown) => {
        if (wasCanceled(error)) return null // without an index on the id a slice is the whole table
        throw error
      })
    },
    async readUnknownStatuses(after, sliceRows) {
      return withFilter(
        async ({ unknownStatus }) => unknownStatus && readUnknownStatuses(pool, unknownStatus, after, sliceRows),
      )
    },
    async findPresent(outboxIds) {
      const { sql } = await open()
      return new Set((await lookAt(pool, sql, outboxIds)).map(({ outboxId }) => outboxId))
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
        const meant = { ...request, skipped: [...request.skipped, ...failing()] }
        if (from.cursorScan !== null) {
          const { outboxIds, leftTypes } = await from.cursorScan.findUnknown(meant)
          await raiseConflicts(ledger, from.cursorScan.takeConflicts())
          return rememberedRows(reader, from, { outboxIds, leftTypes })
        }
        return heldRows(reader, from, async (db) => ({
          leftTypes: await findLeftTypes(db, from.sql, meant),
          outboxIds: await lockRows(db, from.sql, meant),
        }))
      })
    },
    async claimOne(outboxId) {
      const from = await open()
      if (from.cursorScan !== null)
        return rememberedRows(reader, from, {
          outboxIds: (await from.cursorScan.isUnknown(outboxId)) ? [outboxId] : [],
          leftTypes: [],
        })
      return heldRows(reader, from, async (db) => ({
        outboxIds: await lockById(db, from.sql, outboxId),
        leftTypes: [],
      }))
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
    async readInHand() {
      return withFilter(async (from) => {
        if (from.cursorScan !== null) return []
        const rows = await lookAt(pool, from.sql, await findInHand(pool, from.sql))
        const { known } = await from.memory.findKnown(rows)
        return rows.filter(({ outboxId }) => !known.has(outboxId))
      })
    },
    async readRecord(outboxId) {
      const { sql } = await open()
      try {
        const { rows } = await pool.query<ReadRow>(sql.byId, [bytesMost, outboxId])
        return rows[0] ? reader.toRecord(rows[0]) : null
      } catch (error) {
        if (isNoValueOfType(error)) return null
        throw error
      }
    },
    async saysThatItWaits(outboxId) {
      const { sql } = await open()
      return ((await pool.query(sql.waitsById, [outboxId])).rowCount ?? 0) > 0
    },
    async readNew(limit) {
      return withFilter(async (from) => {
        if (from.cursorScan !== null)
          return readRows(
            from,
            (await from.cursorScan.findUnknown({ ...everything, limit, skipped: failing() })).outboxIds,
          )
        const { rows } = await pool.query<ReadRow>(from.sql.waiting, [bytesMost, limit])
        return rows.map(reader.toRecord)
      })
    },
    async hasNew(served) {
      return withFilter(async ({ cursorScan, sql }) => {
        if (cursorScan !== null) return cursorScan.hasUnknown()
        const { rowCount } = await pool.query(sql.any)
        return (rowCount ?? 0) > 0
      }, served)
    },
    async report(read) {
      const { writing, table } = await open()
      if (writing !== null) return tellRows({ pool, table, writing }, read)
      return { kind: 'told', rows: (await read()).map((status) => ({ status, kind: 'written' })) }
    },
    async tryRow() {
      const { writing, sql, cursorScan } = await open()
      return writing === null
        ? { kind: 'never-written' }
        : tryRow({ pool, writing, isMarked: cursorScan === null, lock: sql.lockOne, any: sql.any })
    },
    async countTypes() {
      return withFilter(async ({ cursorScan, sql }) => {
        if (cursorScan !== null) return cursorScan.countTypes(typedMax)
        return (await pool.query<TypeCount>(sql.types, [typedMax])).rows
      })
    },
    async readHistory() {
      const { rows } = await ledger.query<{ any: boolean }>(
        `select exists (select from outboxd.submission) or exists (select from outboxd.pruned_submission) as any`,
      )
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

/** @param table as described, or the name of a table such as migrations/outbox.sql creates */
export const describeTable = (table: OutboxTable | string): OutboxTable =>
  typeof table === 'string' ? standardTable(table, states, outboxChannel) : table

/** More rows are not counted by their types: some ten milliseconds. */
const typedMax = 10_000

/** Rows of one slice of a comparison: some ten milliseconds. */
const sliceMax = 10_000

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
