import type { Database } from '../postgres/database.ts'
import { isExactNumber, readPayload } from '../yaml/exactJson.ts'

/** The payload of a captured change: `{"document": "public.sale_sale", "id": 5}`. */
export interface DocumentReference {
  document: string
  id: string
}

export interface CapturedTable {
  document: string
  type: string
  /** Quoted, with its schema. */
  table: string
  /** Quoted. */
  key: string
  /** SQL about the row `n`; null if every document is sent. */
  condition: string | null
  /** Pairs of a name and a column; null for all columns. */
  payload: readonly string[] | null
}

/** Longer payloads are not parsed. */
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
 * rights, so it trusts the view only if the view's owner may insert into the outbox.
 *
 * @param outbox quoted, with its schema
 */
export async function readCapturedTables(
  db: Database,
  outbox: string,
  documents: readonly string[] | null,
): Promise<CapturedTable[]> {
  const { rows: found } = await db.query<{ isThere: boolean }>(
    `select exists (
       select from pg_catalog.pg_class c join pg_catalog.pg_namespace s on s.oid operator(pg_catalog.=) c.relnamespace
       where s.nspname operator(pg_catalog.=) 'outboxd_capture' and c.relname operator(pg_catalog.=) 'captured'
         and pg_catalog.has_table_privilege(c.relowner, $1::pg_catalog.regclass::pg_catalog.oid, 'insert')
     ) as "isThere"`,
    [outbox],
  )
  if (!found[0]?.isThere) return []
  const { rows } = await db.query<CapturedTable>(
    `select c.document, c.type, pg_catalog.format('%I.%I', s.nspname, t.relname) as table, pg_catalog.quote_ident(c.key_column) as key,
       c.condition, c.payload
     from outboxd_capture.captured c join pg_catalog.pg_class t on t.oid operator(pg_catalog.=) c.erp_table
       join pg_catalog.pg_namespace s on s.oid operator(pg_catalog.=) t.relnamespace
     where $1::pg_catalog.text[] is null or c.document operator(pg_catalog.=) any ($1::pg_catalog.text[])`,
    [documents],
  )
  return rows
}

/**
 * Finds the installation that wrote a row. If the document has only one, its type may differ, because `outbox.yaml` can
 * rename types.
 */
export function findCapturedTable(
  tables: readonly CapturedTable[],
  document: string,
  type: string,
): CapturedTable | null {
  const ofDocument = tables.filter((table) => table.document === document)
  const [only, ...others] = ofDocument
  return ofDocument.find((table) => table.type === type) ?? (others.length === 0 ? (only ?? null) : null)
}
