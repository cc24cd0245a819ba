import type { SourceQuery } from '../mapping/mapping.ts'
import type { OutboxRecord } from '../model.ts'
import { begin, blameFor, type Database, rolePathOf } from '../postgres/database.ts'
import { codeOf } from '../postgres/sqlState.ts'
import { isDigits, readPayload } from '../yaml/exactJson.ts'
import type { Outbox } from './outbox.ts'
import { batchBytesMax, readRecord, tooLarge } from './rows.ts'

/** The mapping files, as far as contents are read by them. */
export interface Sources {
  get(type: string): { readonly source: SourceQuery | null } | undefined
}

/** The query of a mapping file failed. Whose fault it is, is read from its SQLSTATE, as of any statement. */
export class SourceFailed extends Error {
  override name = 'SourceFailed'
  readonly code: string
  /** @param code the SQLSTATE of the cause; `wrongQuery` if the query is wrong, whatever the records */
  constructor(file: string, cause: Error, code: string) {
    super(`${file}: the query of "source" failed: ${cause.message}`, { cause })
    this.code = code
  }
}

/** Syntax error or access rule violation: class 42 is about everyone. */
const wrongQuery = '42000'

/** The queries of one batch together may take this long: the batch's rows are locked, and its other sessions idle, meanwhile. */
const sourceMaxMs = 5_000
const lockMaxMs = 1_000

/**
 * Reads the contents of the records whose mapping file has `source:`, with one query for each type. Other records are returned as
 * they are, and cost nothing.
 *
 * @returns the first of the records, as many as may be in memory at once
 * @throws SourceFailed if a query fails for several records, or for a reason that is about all of them; of a record that fails alone
 * `unreadable` says why
 */
export async function readContents(
  outbox: Outbox,
  sources: Sources,
  records: readonly OutboxRecord[],
  maxMs = sourceMaxMs,
): Promise<OutboxRecord[]> {
  const byType = Map.groupBy(records, ({ type }) => type)
  const read = new Map<OutboxRecord, OutboxRecord | null>()
  const untilMs = performance.now() + maxMs
  for (const [type, ofType] of byType) {
    const source = sources.get(type)?.source ?? null
    if (source === null) continue
    for (const [record, content] of await readOfType(outbox, source, ofType, untilMs)) read.set(record, content)
  }
  if (read.size === 0) return [...records]
  const all = records.map((record) => read.get(record) ?? (read.has(record) ? null : record))
  const left = all.indexOf(null)
  return all.slice(0, left === -1 ? all.length : left).filter((record) => record !== null)
}

/** Reads the row as it is now, whatever its state, with its content; null if there is none of that id. */
export async function readWholeRecord(
  outbox: Outbox,
  sources: Sources,
  outboxId: string,
): Promise<OutboxRecord | null> {
  const record = await readRecord(outbox, outboxId)
  return record === null ? null : ((await readContents(outbox, sources, [record]))[0] ?? null)
}

/** Reads the contents of records for a person: a query that fails for several records is asked for each half of them again. */
export async function readEachContent(
  outbox: Outbox,
  sources: Sources,
  records: readonly OutboxRecord[],
): Promise<OutboxRecord[]> {
  if (records.length === 0) return []
  try {
    const read = await readContents(outbox, sources, records)
    return [...read, ...(await readEachContent(outbox, sources, records.slice(read.length)))]
  } catch (error) {
    if (records.length === 1 || blameFor(error, 'claim') === 'everyone') throw error
    const half = records.length >> 1
    const first = await readEachContent(outbox, sources, records.slice(0, half))
    return [...first, ...(await readEachContent(outbox, sources, records.slice(half)))]
  }
}

/** @returns each record with its content; null: it did not fit any more */
async function readOfType(
  outbox: Outbox,
  source: SourceQuery,
  records: readonly OutboxRecord[],
  untilMs: number,
): Promise<Map<OutboxRecord, OutboxRecord | null>> {
  const ids = new Map(records.map((record) => [record, readId(record)]))
  const asked = [...new Set([...ids.values()].flatMap((id) => (id === null ? [] : [id])))]
  const found = asked.length === 0 ? new Map() : await readFound(outbox, source, asked, untilMs)
  return new Map(
    [...ids].map(([record, id]) => {
      if (record.payload === null) return [record, record]
      if (id === null) return [record, unreadable(record, noId)]
      const content = contentOf(source, id, found.get(id) ?? [], outbox.bytesMax)
      if (content.kind === 'left') return [record, null]
      return [record, content.kind === 'read' ? { ...record, payload: content.json } : unreadable(record, content.why)]
    }),
  )
}

const noId = 'the payload has no "id" (a text or a number), by which the query of its mapping file reads the rest'

const unreadable = (record: OutboxRecord, why: string): OutboxRecord => ({ ...record, payload: null, unreadable: why })

/** The id by which a query finds the record; null if the payload has none. */
function readId({ payload }: OutboxRecord): string | null {
  const read = payload === null ? null : readPayload(payload)
  const id = read?.kind === 'payload' ? read.payload.id : undefined
  if (typeof id === 'string') return id
  return id !== undefined && isDigits(id) ? id.rawJSON : null
}

/** What a query says of one record. */
type Content = { kind: 'read'; json: string } | { kind: 'unreadable'; why: string } | { kind: 'left' }

type Found = readonly ContentRow[] | Error

function contentOf({ file }: SourceQuery, id: string, found: Found, bytesMax: number): Content {
  const why = (reason: string): Content => ({ kind: 'unreadable', why: `${file}: ${reason}` })
  if (found instanceof Error) return why(`the query of "source" failed for the record ${id}: ${found.message}`)
  const [row] = found
  if (row === undefined) return why(`the query of "source" has no row for the record ${id}`)
  if (found.length > 1)
    return why(`the query of "source" has ${found.length} rows for the record ${id}: it must have one`)
  if (row.bytes > bytesMax) return why(tooLarge(row.bytes, bytesMax))
  return row.json === null ? { kind: 'left' } : { kind: 'read', json: row.json }
}

interface ContentRow {
  /** Position among the ids that were asked for, from 1. */
  at: number
  bytes: number
  /** Null: too large, or beyond what may be in memory at once. */
  json: string | null
}

/**
 * Reads contents for ids in one query.
 *
 * @returns for each id its rows; if it was the only one and the query failed for what it holds, why
 */
async function readFound(
  outbox: Outbox,
  source: SourceQuery,
  ids: readonly string[],
  untilMs: number,
): Promise<Map<string, Found>> {
  const sql = contentsSql(foundSql(source), outbox.bytesMax)
  try {
    const { rows } = await readOnly(outbox, untilMs, (db) => db.query<ContentRow>(sql, [ids]))
    const byPosition = Map.groupBy(rows, ({ at }) => at)
    return new Map(ids.map((id, i) => [id, byPosition.get(i + 1) ?? []]))
  } catch (error) {
    const code = String(codeOf(error))
    if (!(error instanceof Error) || !/^[0-9A-Z]{5}$/.test(code)) throw error
    const [first, ...others] = ids
    if (blameFor(error, 'claim') !== 'piece' || first === undefined || others.length > 0)
      throw new SourceFailed(source.file, error, code === readOnlyState ? wrongQuery : code)
    // What fails without a record is no record's fault.
    await readOnly(outbox, untilMs, (db) => db.query(`explain ${sql}`, [[]])).catch((cause: Error) => {
      throw new SourceFailed(source.file, cause, wrongQuery)
    })
    return new Map([[first, error]])
  }
}

/** Elsewhere this state says that the server is a standby; here the query tries to write. */
const readOnlyState = '25006'

/** Runs `work` in a transaction that changes nothing, sees one state of the database, and waits for no lock for long. */
export async function readOnly<T>(
  { pool }: Pick<Outbox, 'pool'>,
  untilMs: number,
  work: (db: Database) => Promise<T>,
): Promise<T> {
  const statementMs = Math.max(1, Math.ceil(untilMs - performance.now()))
  await using transaction = await begin(rolePathOf(pool), {
    isReadOnly: true,
    opening: `set transaction isolation level repeatable read; set local statement_timeout = ${statementMs}; set local lock_timeout = ${lockMaxMs}`,
  })
  return await work(transaction.db)
}

/** The query of a mapping file as rows of `key` and `json`. Its last line may be a comment. */
const foundSql = ({ sql }: SourceQuery): string =>
  `select (r.id)::pg_catalog.text as key, (pg_catalog.row_to_json(r))::pg_catalog.text as json from (
${sql}
) r`

/**
 * Contents of the ids in $1 as `ContentRow`s, in the order of the ids, up to `batchBytesMax` bytes and always one.
 *
 * $1 gets its type in `found`, which stands first. Ids are compared as texts of that type, so that 007 and 7 are one number, and
 * a uuid in capitals is itself. Names are qualified because the role's search path may have namesakes.
 */
const contentsSql = (found: string, bytesMax: number): string =>
  `select at, bytes, case when bytes <= ${bytesMax} and (sum <= ${batchBytesMax} or sum = bytes) then json end as json
   from (
     select given.at::pg_catalog.int4 as at, json, bytes,
       pg_catalog.sum(case when bytes <= ${bytesMax} then bytes else 0 end) over (order by given.at) as sum
     from (select key, json, pg_catalog.octet_length(json) as bytes from (${found}) found) sized
       join pg_catalog.unnest($1) with ordinality as given(id, at) on given.id::pg_catalog.text operator(pg_catalog.=) key
   ) summed order by at`
