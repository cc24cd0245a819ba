import type { DocumentTable, Mapping } from '../mapping/mapping.ts'
import type { OutboxRecord } from '../model/outbox.ts'
import { classifyDatabaseError, didSessionSurviveError } from '../postgres/database.ts'
import { classifySqlState, errorCodeOf } from '../postgres/sqlState.ts'
import { isExactNumber, isObject, type PayloadValue, readPayload, writeJson } from '../yaml/exactJson.ts'
import {
  type ContentRow,
  type ContentSource,
  contentsQuery,
  documentConditionQuery,
  documentKeysQuery,
  hasKeyOfSeveralColumns,
  idsParameter,
  inReadOnlyTransaction,
  type QueryByIds,
  QueryFailed,
  SourceFailed,
  seeAllRowsSql,
} from './contentQueries.ts'
import { findFailingIds, findFailingParts } from './failingRows.ts'
import type { Outbox } from './outbox.ts'
import { payloadTooLargeMessage, readRecordWithoutQueriedContent } from './readRows.ts'

interface ContentSources {
  get(type: string): Pick<Mapping, 'source' | 'document'> | undefined
}

/**
 * Time limit for all queries of one batch. Until they end, the batch's rows stay locked and its other sessions idle.
 */
const sourceMaxMs = 5_000

/**
 * Reads the contents of records whose mapping file has `source:`, by one query for each type. Returns other records
 * unchanged.
 *
 * @returns as many of the first records as may be in memory at once
 * @throws SourceFailed if a query fails for all records of a type, or takes too long
 */
export async function readRecordContentsThatFit(
  outbox: Outbox,
  sources: ContentSources,
  records: readonly OutboxRecord[],
  timeoutMs = sourceMaxMs,
): Promise<OutboxRecord[]> {
  const untilMs = performance.now() + timeoutMs
  const named = await nameDocuments(outbox, sources, records)
  const read = new Map<OutboxRecord, OutboxRecord | null>()
  for (const group of groupRecords(sources, named))
    for (const [record, content] of await readGroup(outbox, group, untilMs)) read.set(record, content)
  const all = named.map((record) => (read.has(record) ? (read.get(record) ?? null) : record))
  const left = all.indexOf(null)
  return all.slice(0, left === -1 ? all.length : left).filter((record) => record !== null)
}

export async function readRecordWithContent(
  outbox: Outbox,
  sources: ContentSources,
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
  sources: ContentSources,
  records: readonly OutboxRecord[],
): Promise<OutboxRecord[]> {
  const all: OutboxRecord[] = []
  while (all.length < records.length)
    all.push(
      ...(await readRecordContentsThatFit(outbox, sources, records.slice(all.length, all.length + commandRecordsMax))),
    )
  return all
}

/**
 * Names the documents that rows stand for by their keys, as the document's table writes them. A key that no such column
 * can have stays as it is, and a row without a key names none (null).
 *
 * @throws SourceFailed if the table cannot be used, or the query takes too long
 */
export async function nameDocuments(
  outbox: Outbox,
  sources: ContentSources,
  records: readonly OutboxRecord[],
): Promise<OutboxRecord[]> {
  const names = new Map<OutboxRecord, string | null>()
  for (const { type, document, ids } of groupRecords(
    sources,
    records.filter((record) => record.document === undefined),
  )) {
    if (document === null) continue
    const keys = await readDocumentKeys(outbox, type, document, [...new Set(ids.values())].filter(isGiven))
    for (const [record, id] of ids) names.set(record, id && (keys.get(id) ?? id))
  }
  return records.map((record) => (names.has(record) ? { ...record, document: names.get(record) ?? null } : record))
}

const isGiven = (id: string | null): id is string => id !== null

async function readDocumentKeys(
  outbox: Outbox,
  type: string,
  document: DocumentTable,
  ids: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const { label, sql } = documentKeysQuery(document)
  const keys = new Map<string, string>()
  const untilMs = performance.now() + sourceMaxMs
  try {
    await findFailingIds(ids, async (part) => {
      const { rows } = await inReadOnlyTransaction(outbox, untilMs, (db) =>
        db.query<{ at: number; key: string }>(sql, [idsParameter({ document }, part)]),
      )
      for (const { at, key } of rows) keys.set(part[at - 1] ?? '', key)
    })
  } catch (error) {
    if (!didSessionSurviveError(error)) throw error
    const blame = classifyDatabaseError(error, 'claim') === 'moment' ? 'moment' : 'type'
    throw new SourceFailed(type, blame, new QueryFailed(label, String(errorCodeOf(error)), error as Error))
  }
  return keys
}

interface Group extends ContentSource {
  type: string
  /** Null: the payload has no id. */
  ids: Map<OutboxRecord, string | null>
}

function groupRecords(sources: ContentSources, records: readonly OutboxRecord[]): Iterable<Group> {
  const groups = new Map<string, Group>()
  for (const record of records) {
    const { type, payload, document: name } = record
    const { source = null, document = null } = sources.get(type) ?? {}
    if (payload === null || source === null) continue
    const group = groups.get(type) ?? { type, source, document, ids: new Map() }
    groups.set(type, group)
    group.ids.set(record, name === undefined ? readId(payload, group) : name)
  }
  return groups.values()
}

/** Returns the id with which a query finds the record. */
function readId(payload: string, source: Pick<Mapping, 'document'>): string | null {
  const read = readPayload(payload)
  const id: PayloadValue | undefined = read.kind === 'payload' ? read.payload.id : undefined
  if (id === undefined || id === null) return null
  if (hasKeyOfSeveralColumns(source)) return isObject(id) ? writeJson(id) : null
  if (typeof id === 'string') return id
  return isExactNumber(id) ? id.rawJSON : null
}

async function readGroup(
  outbox: Outbox,
  group: Group,
  untilMs: number,
): Promise<Map<OutboxRecord, OutboxRecord | null>> {
  const ids = [...new Set(group.ids.values())].filter(isGiven)
  const contents = ids.length === 0 ? new Map<string, Content>() : await readOrBlame(outbox, group, ids, untilMs)
  return new Map(
    [...group.ids].map(([record, id]): [OutboxRecord, OutboxRecord | null] => {
      const content = (id === null ? undefined : contents.get(id)) ?? unreadable(noIdMessage(group))
      switch (content.kind) {
        case 'read':
          return [record, { ...record, payload: content.json }]
        case 'none':
          return [record, { ...record, noRecord: content.why }]
        case 'unreadable':
          return [record, { ...record, payload: null, unreadable: content.why }]
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
const noIdMessage = (source: Pick<Mapping, 'document'>) =>
  `the payload has no "id" (${hasKeyOfSeveralColumns(source) ? 'an object with the columns of the key' : 'a text or a number'}). The query of the mapping file needs it to read the rest. Without \`payload\` in outbox.yaml it is the row's id`

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

async function failsWithoutRecords(outbox: Outbox, group: Group, untilMs: number): Promise<boolean> {
  const condition = group.document === null ? [] : [documentConditionQuery(group.document)]
  try {
    for (const { sql } of [...condition, contentsQuery(group, outbox.bytesMax)])
      await inReadOnlyTransaction(outbox, untilMs, (db) => db.query(`explain ${sql}`, [idsParameter(group, [])]))
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
  group: Group,
  ids: readonly string[],
  untilMs: number,
): Promise<Map<string, Content>> {
  const { bytesMax } = outbox
  const { document } = group
  const meeting = document && documentConditionQuery(document)
  const contents = contentsQuery(group, bytesMax)
  let asked: QueryByIds = contents
  try {
    // Gives each of a document's two statements half of the time.
    const statementUntilMs = document === null ? untilMs : (performance.now() + untilMs) / 2
    return await inReadOnlyTransaction(outbox, statementUntilMs, async (db) => {
      if (document !== null) await db.query(seeAllRowsSql)
      let wanted = ids
      const none = new Map<string, Content>()
      if (document !== null && meeting !== null) {
        asked = meeting
        const { rows } = await db.query<{ at: number; meets: boolean }>(meeting.sql, [idsParameter(group, ids)])
        const meets = new Map(rows.map((row) => [ids[row.at - 1] ?? '', row.meets]))
        wanted = ids.filter((id) => meets.get(id))
        for (const id of ids) {
          const why = meets.has(id) ? 'does not meet the condition' : 'was deleted'
          if (!meets.get(id)) none.set(id, { kind: 'none', why: `${document.table} ${id} ${why}` })
        }
      }
      asked = contents
      const { rows } =
        wanted.length === 0 ? { rows: [] } : await db.query<ContentRow>(contents.sql, [idsParameter(group, wanted)])
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
