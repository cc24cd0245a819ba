import type { SourceQuery } from '../mapping/mapping.ts'
import type { OutboxRecord } from '../model/outbox.ts'
import { classifyDatabaseError, didSessionSurviveError } from '../postgres/database.ts'
import { classifySqlState, errorCodeOf } from '../postgres/sqlState.ts'
import { isExactNumber, readPayload } from '../yaml/exactJson.ts'
import {
  type CapturedTable,
  type ContentRow,
  contentsQuery,
  documentConditionQuery,
  findCapturedTable,
  inReadOnlyTransaction,
  isCaptureInstalled,
  parseDocumentReference,
  type QueryByIds,
  QueryFailed,
  readCapturedTables,
  SourceFailed,
} from './contentQueries.ts'
import { findFailingParts } from './failingRows.ts'
import type { Outbox } from './outbox.ts'
import { payloadTooLargeMessage, readRecordWithoutQueriedContent } from './readRows.ts'

interface SourceQueries {
  get(type: string): { readonly source: SourceQuery | null } | undefined
}

/**
 * Time limit for all queries of one batch. Until they end, the batch's rows stay locked and its other sessions idle.
 */
const sourceMaxMs = 5_000

/**
 * Reads the contents of captured documents, and of records whose mapping file has `source:`, by one query for each
 * type. Returns other records unchanged.
 *
 * @returns as many of the first records as may be in memory at once
 * @throws SourceFailed if a query fails for all records of a type, or takes too long
 */
export async function readRecordContentsThatFit(
  outbox: Outbox,
  sources: SourceQueries,
  records: readonly OutboxRecord[],
  timeoutMs = sourceMaxMs,
): Promise<OutboxRecord[]> {
  const untilMs = performance.now() + timeoutMs
  const read = new Map<OutboxRecord, OutboxRecord | null>()
  for (const group of await groupRecords(outbox, sources, records, untilMs))
    for (const [record, content] of await readGroup(outbox, group, untilMs)) read.set(record, content)
  const all = records.map((record) => (read.has(record) ? (read.get(record) ?? null) : record))
  const left = all.indexOf(null)
  return all.slice(0, left === -1 ? all.length : left).filter((record) => record !== null)
}

export async function readRecordWithContent(
  outbox: Outbox,
  sources: SourceQueries,
  outboxId: string,
): Promise<OutboxRecord | null> {
  const record = await readRecordWithoutQueriedContent(outbox, outboxId)
  return record === null ? null : ((await readRecordContentsThatFit(outbox, sources, [record]))[0] ?? null)
}

/** The records that a command reads at once. Fewer than for capture, so that a slow query ends in time. */
const commandRecordsMax = 100

/** @throws SourceFailed */
export async function readContentsInBatches(
  outbox: Outbox,
  sources: SourceQueries,
  records: readonly OutboxRecord[],
): Promise<OutboxRecord[]> {
  const all: OutboxRecord[] = []
  while (all.length < records.length)
    all.push(
      ...(await readRecordContentsThatFit(outbox, sources, records.slice(all.length, all.length + commandRecordsMax))),
    )
  return all
}

interface Group {
  type: string
  source: SourceQuery | null
  /** Null if the records are not captured documents. */
  captured: CapturedTable | null
  /** Null: the payload has no id. */
  ids: Map<OutboxRecord, string | null>
}

async function groupRecords(
  outbox: Outbox,
  sources: SourceQueries,
  records: readonly OutboxRecord[],
  untilMs: number,
): Promise<Iterable<Group>> {
  const references = new Map(records.map((record) => [record, parseDocumentReference(record.payload ?? '')]))
  const names = new Set([...references.values()].flatMap((reference) => reference?.document ?? []))
  const [firstType = ''] = [...references].flatMap(([{ type }, reference]) => (reference === null ? [] : [type]))
  const { tables, isInstalled } =
    names.size === 0 ? nothingCaptured : await readTables(outbox, firstType, [...names], untilMs)
  const groups = new Map<string, Group>()
  for (const [record, reference] of references) {
    const mapping = sources.get(record.type)
    const source = mapping?.source ?? null
    const captured = reference === null ? null : findCapturedTable(tables, reference.document, record.type)
    if (record.payload === null || mapping === undefined || (source === null && captured === null)) continue
    if (captured === null && isInstalled && reference?.document.includes('.'))
      throw installationNotFound(record, reference.document)
    const name = JSON.stringify([record.type, captured?.document])
    const group = groups.get(name) ?? { type: record.type, source, captured, ids: new Map() }
    groups.set(name, group)
    group.ids.set(record, reference?.id ?? readId(record.payload))
  }
  return groups.values()
}

const nothingCaptured = { tables: [], isInstalled: false }

const undefinedObject = '42704'

/**
 * Holds the type, because the record's document is not read without the condition of its installation. Change capture
 * writes names of tables with their schemas; a payload with another name is the ERP's own.
 */
function installationNotFound({ type, outboxId }: OutboxRecord, document: string): SourceFailed {
  const cause = new Error(
    `the row ${outboxId} is of ${document}, which is not captured with this type. Install it with this type again. If its documents have moved, write their table as "document" into the payload of the waiting rows. If they are gone, delete these rows`,
  )
  return new SourceFailed(type, 'type', new QueryFailed('finding the captured table', undefinedObject, cause))
}

/**
 * @throws SourceFailed if the view cannot be read. Unless the error may pass, it blames this type, so that other types
 * of the batch go on.
 */
async function readTables(outbox: Outbox, type: string, documents: readonly string[], untilMs: number) {
  const { shape } = await outbox.inspect()
  try {
    return await inReadOnlyTransaction(outbox, untilMs, async (db) => {
      const tables = await readCapturedTables(db, shape.qualified, documents)
      return { tables, isInstalled: tables.length > 0 || (await isCaptureInstalled(db)) }
    })
  } catch (error) {
    if (!didSessionSurviveError(error)) throw error
    const code = String(errorCodeOf(error))
    const blame = classifySqlState(code, 'claim') === 'moment' ? 'moment' : 'type'
    throw new SourceFailed(type, blame, new QueryFailed('reading outboxd_capture.captured', code, error as Error))
  }
}

/** Returns the id with which a query finds the record. */
function readId(payload: string): string | null {
  const read = readPayload(payload)
  const id = read.kind === 'payload' ? read.payload.id : undefined
  if (typeof id === 'string') return id
  return id !== undefined && isExactNumber(id) ? id.rawJSON : null
}

async function readGroup(
  outbox: Outbox,
  group: Group,
  untilMs: number,
): Promise<Map<OutboxRecord, OutboxRecord | null>> {
  const ids = [...new Set([...group.ids.values()].filter((id) => id !== null))]
  const contents = ids.length === 0 ? new Map<string, Content>() : await readOrBlame(outbox, group, ids, untilMs)
  return new Map(
    [...group.ids].map(([record, id]): [OutboxRecord, OutboxRecord | null] => {
      const document = group.captured === null ? {} : { document: `${group.captured.document} ${id}` }
      const content = id === null ? unreadable(noId) : (contents.get(id) ?? unreadable(noId))
      switch (content.kind) {
        case 'read':
          return [record, { ...record, ...document, payload: content.json }]
        case 'none':
          return [record, { ...record, ...document, noRecord: content.why }]
        case 'unreadable':
          return [record, { ...record, ...document, payload: null, unreadable: content.why }]
        case 'left':
          return [record, null]
        default:
          return content satisfies never
      }
    }),
  )
}

type Content =
  | { kind: 'read'; json: string }
  /** Nothing is sent for the document. */
  | { kind: 'none'; why: string }
  | { kind: 'unreadable'; why: string }
  /** The content did not fit into memory. */
  | { kind: 'left' }

const unreadable = (why: string): Content => ({ kind: 'unreadable', why })
const noId = 'the payload has no "id" (a text or a number). The query of the mapping file needs it to read the rest'

/** If a query fails for this number of parts of the list and succeeds for none, it fails for all records. */
const failedPartsMax = 64
/** If this many records fail and none succeeds, their data is not the cause. */
const failedRecordsMax = 10

/**
 * Reads the contents of ids. If the query fails, finds the records for which it fails. The SQLSTATE says little,
 * because a function may raise any code for one record:
 *
 *     fails for some records, succeeds for others      these records are unreadable
 *     fails for all, fewer than 10, a code about data  the records are unreadable
 *     fails for all, 10 or more, or another code       throws SourceFailed, blame `type`
 *     fails without any record                         throws SourceFailed, blame `type`
 *     a code that may pass                             throws SourceFailed, blame `moment`
 */
async function readOrBlame(
  outbox: Outbox,
  group: Group,
  ids: readonly string[],
  untilMs: number,
): Promise<Map<string, Content>> {
  const giveUp = (error: QueryFailed) => {
    if (classifySqlState(error.code, 'claim') === 'moment') throw new SourceFailed(group.type, 'moment', error)
    return error
  }
  const read = (part: readonly string[]) =>
    readByIds(outbox, group, part, untilMs).catch((error: unknown) => {
      if (error instanceof QueryFailed) return giveUp(error)
      throw error
    })
  const first = await read(ids)
  if (!(first instanceof QueryFailed)) return first
  if (await failsWithoutRecords(outbox, group, untilMs)) throw new SourceFailed(group.type, 'type', first)
  const tryPart = (part: readonly string[]) => read(part).then((found) => (found instanceof QueryFailed ? found : null))
  const { failed, anyPassed } = await findFailingParts(
    ids,
    first,
    tryPart,
    (parts, passed) => !passed && parts >= failedPartsMax,
  )
  const isAboutData = classifySqlState(first.code, 'claim') === 'piece'
  if (!anyPassed && (ids.length >= failedRecordsMax || !isAboutData)) throw new SourceFailed(group.type, 'type', first)
  const culprits = new Map(
    failed.map(({ ids: [id = ''], error: { queryLabel, cause } }) => [
      id,
      unreadable(`${queryLabel} failed for the record ${id}: ${cause.message}`),
    ]),
  )
  const others = ids.filter((id) => !culprits.has(id))
  // Reads the records that did not fail once more, in one query: the memory limit holds for all of them together.
  const again = others.length === 0 ? new Map<string, Content>() : await read(others)
  if (again instanceof QueryFailed) throw new SourceFailed(group.type, 'moment', again)
  return new Map([...again, ...culprits])
}

async function failsWithoutRecords(outbox: Outbox, { source, captured }: Group, untilMs: number): Promise<boolean> {
  const queries = [captured && documentConditionQuery(captured), contentsQuery(source, captured, outbox.bytesMax)]
  try {
    for (const query of queries)
      if (query !== null) await inReadOnlyTransaction(outbox, untilMs, (db) => db.query(`explain ${query.sql}`, [[]]))
    return false
  } catch (error) {
    if (!didSessionSurviveError(error)) throw error
    return classifyDatabaseError(error, 'claim') !== 'moment'
  }
}

/**
 * Reads the contents of ids, all in one state of the database.
 *
 * @throws QueryFailed if the query fails and its session survives
 */
async function readByIds(
  outbox: Outbox,
  { source, captured }: Group,
  ids: readonly string[],
  untilMs: number,
): Promise<Map<string, Content>> {
  const { bytesMax } = outbox
  const meeting = captured && documentConditionQuery(captured)
  const contents = contentsQuery(source, captured, bytesMax)
  if (contents === null) return new Map()
  let asked: QueryByIds = contents
  try {
    // Gives each of a document's two statements half of the time.
    const statementUntilMs = captured === null ? untilMs : (performance.now() + untilMs) / 2
    return await inReadOnlyTransaction(outbox, statementUntilMs, async (db) => {
      let wanted = ids
      const none = new Map<string, Content>()
      if (captured !== null && meeting !== null) {
        asked = meeting
        const { rows } = await db.query<{ at: number; meets: boolean }>(meeting.sql, [ids])
        const meets = new Map(rows.map((row) => [ids[row.at - 1] ?? '', row.meets]))
        wanted = ids.filter((id) => meets.get(id))
        for (const id of ids) {
          const why = meets.has(id) ? 'does not meet the condition' : 'was deleted'
          if (!meets.get(id)) none.set(id, { kind: 'none', why: `${captured.document} ${id} ${why}` })
        }
      }
      asked = contents
      const { rows } = wanted.length === 0 ? { rows: [] } : await db.query<ContentRow>(contents.sql, [wanted])
      const found = Map.groupBy(rows, ({ at }) => wanted[at - 1] ?? '')
      const read = wanted.map((id): [string, Content] => [
        id,
        contentOf(contents.label, id, found.get(id) ?? [], bytesMax),
      ])
      return new Map([...none, ...read])
    })
  } catch (error) {
    throw didSessionSurviveError(error)
      ? new QueryFailed(asked.label, String(errorCodeOf(error)), error as Error)
      : error
  }
}

function contentOf(what: string, id: string, rows: readonly ContentRow[], bytesMax: number): Content {
  const [row] = rows
  if (row === undefined) return unreadable(`${what} has no row for the record ${id}`)
  if (rows.length > 1)
    return unreadable(`${what} has ${rows.length} rows for the record ${id}: the query must return one`)
  if (row.bytes > bytesMax) return unreadable(`${what}: ${payloadTooLargeMessage(row.bytes, bytesMax)}`)
  return row.json === null ? { kind: 'left' } : { kind: 'read', json: row.json }
}
