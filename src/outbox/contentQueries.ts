import { randomUUID } from 'node:crypto'
import type { SourceQuery } from '../mapping/mapping.ts'
import { beginTransaction, type Database, quoteIdentifier, withSearchPathOfRole } from '../postgres/database.ts'
import { isExactNumber, readPayload } from '../yaml/exactJson.ts'
import type { Outbox } from './outbox.ts'
import { batchBytesMax } from './readRows.ts'

/** The payload that change capture writes: `{"document": "public.sale_sale", "id": 5}`. */
interface DocumentReference {
  document: string
  id: string
}

export interface CapturedTable {
  /** The table's first name. */
  document: string
  type: string
  /** Quoted, with its schema. */
  table: string
  /** Quoted. */
  key: string
  /** SQL about the row `n`; null if every document is sent. */
  condition: string | null
  /** Each name in the payload, then its column; null for all columns. */
  payload: readonly string[] | null
}

/** A longer payload is not parsed. */
const referenceMax = 10_000
const looksLikeReference = /^\s*\{\s*"(document|id)"\s*:/

export function parseDocumentReference(payload: string): DocumentReference | null {
  if (payload.length > referenceMax || !looksLikeReference.test(payload)) return null
  const read = readPayload(payload)
  if (read.kind === 'invalid' || Object.keys(read.payload).length !== 2) return null
  const { document, id } = read.payload
  if (typeof document !== 'string' || id === undefined) return null
  if (typeof id === 'string') return { document, id }
  return isExactNumber(id) ? { document, id: id.rawJSON } : null
}

/**
 * Reads the installations of change capture for these documents, or all. The daemon runs their conditions with its own
 * rights. So it reads the view `captured` only if the view's owner may insert into the outbox.
 *
 * @param qualifiedOutbox quoted, with its schema
 */
export async function readCapturedTables(
  db: Database,
  qualifiedOutbox: string,
  documents: readonly string[] | null,
): Promise<CapturedTable[]> {
  const { rows: found } = await db.query<{ isThere: boolean }>(
    `select exists (
       select from pg_catalog.pg_class c join pg_catalog.pg_namespace s on s.oid operator(pg_catalog.=) c.relnamespace
       where s.nspname operator(pg_catalog.=) 'outboxd_capture' and c.relname operator(pg_catalog.=) 'captured'
         and pg_catalog.has_table_privilege(c.relowner, $1::pg_catalog.regclass::pg_catalog.oid, 'insert')
     ) as "isThere"`,
    [qualifiedOutbox],
  )
  if (!found[0]?.isThere) return []
  const { rows } = await db.query<CapturedTable>(
    `select c.document, c.type, pg_catalog.format('%I.%I', s.nspname, t.relname) as table, pg_catalog.quote_ident(c.key_column) as key,
       c.condition, c.payload
     from outboxd_capture.captured c join pg_catalog.pg_class t on t.oid operator(pg_catalog.=) c.erp_table
       join pg_catalog.pg_namespace s on s.oid operator(pg_catalog.=) t.relnamespace
     where $1::pg_catalog.text[] is null or c.document operator(pg_catalog.=) any ($1::pg_catalog.text[])
       or pg_catalog.format('%I.%I', s.nspname, t.relname) operator(pg_catalog.=) any ($1::pg_catalog.text[])`,
    [documents],
  )
  return rows
}

/** A document's only installation may have a different type, because `outbox.yaml` can rename types. */
export function findCapturedTable(
  tables: readonly CapturedTable[],
  document: string,
  type: string,
): CapturedTable | null {
  const ofDocument = tables.filter((table) => table.document === document || table.table === document)
  const [only, ...others] = ofDocument
  return ofDocument.find((table) => table.type === type) ?? (others.length === 0 ? (only ?? null) : null)
}

/** True if change capture is, or was, installed for some table. */
export async function isCaptureInstalled(db: Database): Promise<boolean> {
  // Qualifies names, because a pooled session's search path may contain operators of other roles.
  const { rows } = await db.query<{ isInstalled: boolean }>(
    `select pg_catalog.to_regnamespace('outboxd_capture') is not null as "isInstalled"`,
  )
  return rows[0]?.isInstalled ?? false
}

/** A statement whose parameter is a list of ids, and its name in messages. */
export interface QueryByIds {
  label: string
  sql: string
}

/** Returns rows of `at` (the id's position) and `meets` (whether the document meets the condition). */
export const documentConditionQuery = (captured: CapturedTable): QueryByIds => ({
  label: `the condition of ${captured.document}`,
  sql: byIdSql(meetingSql(captured)),
})

/** Reads the contents of ids, as `ContentRow`s. Null if the type has neither a query nor a captured table. */
export function contentsQuery(
  source: SourceQuery | null,
  captured: CapturedTable | null,
  bytesMax: number,
): QueryByIds | null {
  if (source !== null)
    return { label: `${source.file}: the query of "source"`, sql: contentsSql(foundSql(source), bytesMax) }
  if (captured === null) return null
  return { label: `reading ${captured.document}`, sql: contentsSql(ownColumnsSql(captured), bytesMax) }
}

export interface ContentRow {
  /** The id's position in the list of ids, from 1. */
  at: number
  bytes: number
  /** Null if the content is too large, alone or together with the contents before. */
  json: string | null
}

export class SourceFailed extends Error {
  override name = 'SourceFailed'
  readonly type: string
  /** SQLSTATE. */
  readonly code: string
  /** `moment`: fewer records, or a later try, may succeed. `type`: the query fails for every record of the type. */
  readonly blame: 'moment' | 'type'
  /** For the operator, without the client's data. */
  readonly detail: string
  constructor(type: string, blame: 'moment' | 'type', { queryLabel, code, cause }: QueryFailed) {
    super(`${queryLabel} failed: ${cause.message}`, { cause })
    this.type = type
    this.blame = blame
    this.code = code
    this.detail = `${queryLabel} fails for all rows (${code}${quotesNoValues.test(code) ? `: ${cause.message}` : ''})`
  }
}

/** Messages of these SQLSTATE classes name columns, tables and rights; messages of other classes quote values. */
const quotesNoValues = /^(0A|25|3F|42|53|55)/

export class QueryFailed extends Error {
  override name = 'QueryFailed'
  readonly queryLabel: string
  /** SQLSTATE. */
  readonly code: string
  override readonly cause: Error
  constructor(what: string, code: string, cause: Error) {
    super(`${what} failed: ${cause.message}`)
    this.queryLabel = what
    this.code = code
    this.cause = cause
  }
}

const lockMaxMs = 1_000
/** A query may catch the server's cancel and continue. After this further time the daemon ends the session. */
const cancelMs = 1_000

const statementTimeout = '57014'

/**
 * Runs `work`, which sees one state of the database, and waits for a lock for at most `lockMaxMs`.
 *
 * @throws an error with code 57014 if a statement takes too long, even if its functions catch the server's cancel
 */
export async function inReadOnlyTransaction<T>(
  { pool }: Pick<Outbox, 'pool'>,
  untilElapsedMs: number,
  work: (db: Database) => Promise<T>,
): Promise<T> {
  const statementMs = Math.max(1, Math.ceil(untilElapsedMs - performance.now()))
  await using transaction = await beginTransaction(withSearchPathOfRole(pool), {
    isReadOnly: true,
    openingSql: `set transaction isolation level repeatable read; set local statement_timeout = ${statementMs}; set local lock_timeout = ${lockMaxMs}`,
  })
  const mark = `/* outboxd ${randomUUID()} */`
  let isEnded = false
  return await work({
    async query(text, values) {
      const tooLate = setTimeout(() => {
        isEnded = true
        endSession(pool, mark).catch(() => {})
      }, statementMs + cancelMs)
      try {
        return await transaction.db.query(`${mark} ${text}`, values)
      } catch (error) {
        throw isEnded ? Object.assign(new Error('canceling statement due to statement timeout'), timedOut) : error
      } finally {
        clearTimeout(tooLate)
      }
    },
  })
}

const timedOut = { code: statementTimeout, severity: 'ERROR' }

/**
 * Ends our session whose running statement begins with the comment `mark`. A pooler may hide the session's process id.
 */
async function endSession(db: Database, mark: string): Promise<void> {
  await db.query(
    `select pg_catalog.pg_terminate_backend(pid) from pg_catalog.pg_stat_activity
     where pg_catalog.starts_with(query, $1) and usename operator(pg_catalog.=) current_user and state operator(pg_catalog.=) 'active'`,
    [mark],
  )
}

/** The existing documents of the ids in $1, as rows of `key` and `meets`. The condition may end with a comment. */
const meetingSql = ({ table, key, condition }: CapturedTable): string =>
  `select n.${key}::pg_catalog.text as key, (${condition ?? 'true'}
) is true as meets from ${table} n where n.${key} = any($1)`

/** Selects the contents of the ids in $1 from the captured table itself, as rows of `key` and `json`. */
function ownColumnsSql({ table, key, payload }: CapturedTable): string {
  const pairs = (payload ?? []).flatMap((name, i, all) => (i % 2 === 0 ? [[name, all[i + 1] ?? '']] : []))
  const named = pairs.map(([name = '', column = '']) => `n.${quoteIdentifier(column)} as ${quoteIdentifier(name)}`)
  const json = payload === null ? 'row_to_json(n.*)' : `row_to_json(built.*) from (select ${named.join(', ')}) built`
  return `select n.${key}::pg_catalog.text as key, (select pg_catalog.${json})::pg_catalog.text as json from ${table} n
    where n.${key} = any($1)`
}

/** The rows of a mapping file's query as `key` and `json`. The query may end with a comment. */
const foundSql = ({ sql }: SourceQuery): string =>
  `select (r.id)::pg_catalog.text as key, (pg_catalog.row_to_json(r.*))::pg_catalog.text as json from (
${sql}
) r`

/**
 * The rows of a query with the positions of their ids in $1, from 1. `found` stands first, so that it gives $1 its
 * type. Compares ids as texts of that type, so that 007 equals 7, 1.00 equals 1, and a uuid in capitals equals itself.
 * Qualifies names, because the role's search path may have other objects of the same names.
 */
const byIdSql = (found: string): string =>
  `select given.at::pg_catalog.int4 as at, found.* from (${found}) found
     join pg_catalog.unnest($1) with ordinality as given(id, at)
     on ${comparableIdSql('given.id::pg_catalog.text')} operator(pg_catalog.=) ${comparableIdSql('found.key')}`

/** Leaves out a number's zeros at the end of its decimals. A text column keeps them, because 1 and 1.00 may be two ids. */
const comparableIdSql = (text: string) =>
  `case when pg_catalog.jsonb_typeof(pg_catalog.to_jsonb(($1)[1])) operator(pg_catalog.=) 'number'
     then pg_catalog.regexp_replace(${text}, '[.]0+$|([.][0-9]*[1-9])0+$', E'\\\\1') else ${text} end`

/** Selects contents as `ContentRow`s in the order of the ids: up to `batchBytesMax` bytes, and at least one. */
const contentsSql = (found: string, bytesMax: number): string =>
  `select at, bytes, case when bytes <= ${bytesMax} and (sum <= ${batchBytesMax} or sum = bytes) then json end as json
   from (
     select at, json, bytes, pg_catalog.sum(case when bytes <= ${bytesMax} then bytes else 0 end) over (order by at) as sum
     from (select at, json, pg_catalog.octet_length(json) as bytes from (${byIdSql(found)}) found) sized
   ) summed order by at`
