import type { Database } from '../postgres/database.ts'
import { quoteIdentifier } from '../postgres/database.ts'
import { isDigits, readPayload } from '../yaml/exactJson.ts'

/** What the payload of a row says that stands for a document: `{"document": "public.sale_sale", "id": 5}`. */
export interface DocumentReference {
  document: string
  id: string
}

/** How change capture was installed for a table (`outboxd_capture.captured`). */
export interface CapturedTable {
  document: string
  /** Quoted, with its schema. */
  table: string
  /** Quoted. */
  key: string
  /** SQL on the row `n`; null: every document is a record. */
  condition: string | null
  /** Pairs: a name in the payload, a column. Null: all columns. */
  payload: readonly string[] | null
}

/** Most references are shorter; what is longer than any is not parsed. */
const referenceMax = 10_000
const looksLikeReference = /^\s*\{\s*"(document|id)"\s*:/

/** Reads a payload that has exactly the fields of a reference; null if it is another. */
export function readReference(payload: string): DocumentReference | null {
  if (payload.length > referenceMax || !looksLikeReference.test(payload)) return null
  const read = readPayload(payload)
  if (read.kind === 'invalid' || Object.keys(read.payload).length !== 2) return null
  const { document, id } = read.payload
  if (typeof document !== 'string' || id === undefined) return null
  if (typeof id === 'string') return { document, id }
  return isDigits(id) ? { document, id: id.rawJSON } : null
}

/**
 * Reads how change capture was installed for these documents. Conditions are SQL that we run with our rights, so a view is believed only if its
 * owner may insert into the outbox: a role that may not has no say in what is sent.
 *
 * @param outbox the outbox table, quoted, with its schema
 */
export async function readCaptured(
  db: Database,
  outbox: string,
  documents: readonly string[],
): Promise<Map<string, CapturedTable>> {
  const { rows: found } = await db.query<{ isThere: boolean }>(
    `select exists (
       select from pg_catalog.pg_class c join pg_catalog.pg_namespace s on s.oid operator(pg_catalog.=) c.relnamespace
       where s.nspname operator(pg_catalog.=) 'outboxd_capture' and c.relname operator(pg_catalog.=) 'captured'
         and pg_catalog.has_table_privilege(c.relowner, $1::pg_catalog.regclass::pg_catalog.oid, 'insert')
     ) as "isThere"`,
    [outbox],
  )
  if (!found[0]?.isThere) return new Map()
  const { rows } = await db.query<CapturedTable>(
    `select c.document, pg_catalog.format('%I.%I', s.nspname, t.relname) as table, pg_catalog.quote_ident(c.key_column) as key,
       c.condition, c.payload
     from outboxd_capture.captured c join pg_catalog.pg_class t on t.oid operator(pg_catalog.=) c.erp_table
       join pg_catalog.pg_namespace s on s.oid operator(pg_catalog.=) t.relnamespace
     where c.document operator(pg_catalog.=) any ($1::pg_catalog.text[])`,
    [documents],
  )
  return new Map(rows.map((row) => [row.document, row]))
}

/** The documents of the ids in $1 that are there, as rows of `key` and `meets`. The condition's last line may be a comment. */
export const meetingSql = ({ table, key, condition }: CapturedTable): string =>
  `select n.${key}::pg_catalog.text as key, (${condition ?? 'true'}
) is true as meets from ${table} n where n.${key} = any($1)`

/** The contents of the ids in $1, for a type whose mapping file has no query, as rows of `key` and `json`. */
export function ownColumnsSql({ table, key, payload }: CapturedTable): string {
  const pairs = (payload ?? []).flatMap((name, i, all) => (i % 2 === 0 ? [[name, all[i + 1] ?? '']] : []))
  const named = pairs.map(([name = '', column = '']) => `n.${quoteIdentifier(column)} as ${quoteIdentifier(name)}`)
  const built = payload === null ? 'n' : `(select built from (select ${named.join(', ')}) built)`
  return `select n.${key}::pg_catalog.text as key, (pg_catalog.row_to_json(${built}))::pg_catalog.text as json from ${table} n
    where n.${key} = any($1)`
}
