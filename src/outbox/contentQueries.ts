import type { DocumentTable, Mapping, SourceQuery } from '../mapping/mapping.ts'
import {
  beginTransaction,
  type Database,
  queryOne,
  quoteIdentifier,
  quoteLiteral,
  withSearchPathOfRole,
} from '../postgres/database.ts'
import type { Outbox } from './outbox.ts'
import { batchBytesMax } from './readRows.ts'

/** A statement whose parameter is a list of ids, and its name in messages. */
export interface QueryByIds {
  label: string
  sql: string
  /** True if row-level security must fail the statement: a hidden document would look as if it was deleted. */
  mustSeeAllRows: boolean
}

export const seeAllRowsSql = 'set local row_security = off'

/** What a mapping file says about the contents of its records. */
export type ContentSource = Pick<Mapping, 'document'> & { readonly source: SourceQuery }

/** True if ids are JSON objects, such as `{"tenant": 3, "number": "A-7"}`, and the queries' $1 is a JSON list of them. */
export const hasKeyOfSeveralColumns = ({ document }: Pick<Mapping, 'document'>): boolean =>
  document !== null && document.key.length > 1

/** The queries' parameter. */
export const idsParameter = (source: Pick<Mapping, 'document'>, ids: readonly string[]): readonly string[] | string =>
  hasKeyOfSeveralColumns(source) ? `[${ids.join(',')}]` : ids

/** Reads the documents that exist, as rows of `at` (the id's position) and `meets` (whether it meets the condition). */
export const documentConditionQuery = (document: DocumentTable): QueryByIds => ({
  label: `the condition of ${document.table}`,
  sql: byIdSql({ document }, meetingSql(document)),
  mustSeeAllRows: true,
})

/**
 * Reads the keys in $1 as the document's columns write them, as rows of `at` (the key's position) and `key`. So two
 * spellings of one key, such as 1.0 and 1, or a character with and without blanks at its end, name one document.
 */
export const documentKeysQuery = (document: DocumentTable): QueryByIds => ({
  label: `the key of ${document.table}`,
  sql: keysSql(document),
  mustSeeAllRows: false,
})

/** Reads the contents of ids, as `ContentRow`s. */
export const contentsQuery = (source: ContentSource, bytesMax: number): QueryByIds => ({
  label: `${source.source.file}: the query of "source"`,
  sql: contentsSql(byIdSql(source, foundSql(source.source)), bytesMax),
  mustSeeAllRows: source.document !== null,
})

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

/**
 * Runs `work`, which sees one state of the database, and waits for a lock for at most `lockMaxMs`.
 *
 * @throws an error with code 57014 if a statement takes too long, even if its functions catch the server's cancel
 */
export async function inReadOnlyTransaction<T>(
  { pool, ledger }: Pick<Outbox, 'pool' | 'ledger'>,
  untilElapsedMs: number,
  work: (db: Database) => Promise<T>,
): Promise<T> {
  const statementMs = Math.max(1, Math.ceil(untilElapsedMs - performance.now()))
  await using transaction = await beginTransaction(withSearchPathOfRole(pool), {
    isReadOnly: true,
    openingSql: `set transaction isolation level repeatable read; set local statement_timeout = ${statementMs}; set local lock_timeout = ${lockMaxMs}`,
  })
  // Not the process id that the client knows, because a pooler replaces it.
  const server = await queryOne<ServerTransaction>(
    transaction.db,
    'select pg_catalog.pg_backend_pid() as pid, extract(epoch from pg_catalog.now())::pg_catalog.text as began',
  )
  return await work({
    async query(text, values) {
      let isEnded = Promise.resolve(false)
      const tooLate = setTimeout(() => {
        isEnded = endSession(ledger, server)
      }, statementMs + cancelMs)
      try {
        return await transaction.db.query(text, values)
      } catch (error) {
        throw (await isEnded)
          ? Object.assign(new Error('canceling statement due to statement timeout'), timedOut)
          : error
      } finally {
        clearTimeout(tooLate)
      }
    },
  })
}

interface ServerTransaction {
  pid: number
  /** Epoch seconds. */
  began: string
}

/** Ends the session only while it is in this transaction, because a pooler may give it to another client afterwards. */
async function endSession(db: Database, { pid, began }: ServerTransaction): Promise<boolean> {
  const ended = await db
    .query(
      `select pg_terminate_backend(pid) from pg_stat_activity where pid = $1 and extract(epoch from xact_start)::text = $2`,
      [pid, began],
    )
    .catch(() => null)
  return ended?.rowCount === 1
}

const timedOut = { code: '57014', severity: 'ERROR' }

/** The first column's type is that of $1, without a length, so that no key is cut or rounded. */
function keysSql({ table, key }: DocumentTable): string {
  const [column = '', ...others] = key
  if (others.length > 0)
    return `select given.at::pg_catalog.int4 as at, ${keyOfRowSql('k', key)} as key
      from pg_catalog.jsonb_array_elements($1::pg_catalog.jsonb) with ordinality as given(id, at)
        cross join lateral pg_catalog.jsonb_populate_record(null::${table}, given.id) k`
  return `select given.at::pg_catalog.int4 as at, ${writtenSql('given.id')} operator(pg_catalog.#>>) '{}' as key
    from pg_catalog.unnest(coalesce($1, array(select h.${quoteIdentifier(column)} from ${table} h limit 0)))
      with ordinality as given(id, at)`
}

/** The columns of a row's key as the text of a JSON object. */
function keyOfRowSql(alias: string, key: readonly string[]): string {
  const pairs = key.map((name) => `${quoteLiteral(name)}, ${writtenSql(`${alias}.${quoteIdentifier(name)}`)}`)
  return `pg_catalog.jsonb_build_object(${pairs.join(', ')})::pg_catalog.text`
}

/** The value as JSON. As in the row that the trigger writes, a number has no zeros and a character no blanks at its end. */
const writtenSql = (value: string): string =>
  `case when pg_catalog.jsonb_typeof(pg_catalog.to_jsonb(${value})) operator(pg_catalog.=) 'number'
      then pg_catalog.to_jsonb(pg_catalog.trim_scale(${value}::pg_catalog.text::pg_catalog.numeric))
    when pg_catalog.pg_typeof(${value}) operator(pg_catalog.=) 'pg_catalog.bpchar'::pg_catalog.regtype
      then pg_catalog.to_jsonb(${value}::pg_catalog.text) else pg_catalog.to_jsonb(${value}) end`

/** The existing documents of the ids in $1, as rows of `key` and `meets`. The condition may end with a comment. */
function meetingSql({ table, key, condition }: DocumentTable): string {
  const meets = `(${condition ?? 'true'}
) is true as meets`
  const [column = '', ...others] = key.map(quoteIdentifier)
  if (others.length === 0)
    return `select h.${column}::pg_catalog.text as key, ${meets} from ${table} h where h.${column} = any($1)`
  const of = (alias: string) => [column, ...others].map((each) => `${alias}.${each}`).join(', ')
  // Not a join, in which a condition without h. would be ambiguous.
  return `select ${keyOfRowSql('h', key)} as key, ${meets} from ${table} h
    where (${of('h')}) in (select ${of('k')} from pg_catalog.jsonb_populate_recordset(null::${table}, $1) k)`
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
const byIdSql = (source: Pick<Mapping, 'document'>, found: string): string =>
  hasKeyOfSeveralColumns(source)
    ? `select given.at::pg_catalog.int4 as at, found.* from (${found}) found
     join pg_catalog.jsonb_array_elements($1::pg_catalog.jsonb) with ordinality as given(id, at)
     on given.id operator(pg_catalog.=) found.key::pg_catalog.jsonb`
    : `select given.at::pg_catalog.int4 as at, found.* from (${found}) found
     join pg_catalog.unnest($1) with ordinality as given(id, at)
     on ${comparableIdSql('given.id::pg_catalog.text')} operator(pg_catalog.=) ${comparableIdSql('found.key')}`

/** Leaves out a number's zeros at the end of its decimals. A text column keeps them, because 1 and 1.00 may be two ids. */
const comparableIdSql = (text: string) =>
  `case when pg_catalog.jsonb_typeof(pg_catalog.to_jsonb(($1)[1])) operator(pg_catalog.=) 'number'
     then pg_catalog.regexp_replace(${text}, '[.]0+$|([.][0-9]*[1-9])0+$', E'\\\\1') else ${text} end`

/** Selects contents as `ContentRow`s in the order of the ids: up to `batchBytesMax` bytes, and at least one. */
const contentsSql = (foundById: string, bytesMax: number): string =>
  `select at, bytes, case when bytes <= ${bytesMax} and (sum <= ${batchBytesMax} or sum = bytes) then json end as json
   from (
     select at, json, bytes, pg_catalog.sum(case when bytes <= ${bytesMax} then bytes else 0 end) over (order by at) as sum
     from (select at, json, pg_catalog.octet_length(json) as bytes from (${foundById}) found) sized
   ) summed order by at`
