import type { Mappings } from '../mapping/loadMappings.ts'
import { pluralize } from '../plainText.ts'
import { type Database, quoteIdentifier } from '../postgres/database.ts'
import { errorCodeOf } from '../postgres/sqlState.ts'
import {
  contentsQuery,
  existingDocumentsQuery,
  type IdsQuery,
  inReadOnlyTransaction,
  SourceFailed,
} from './contentQueries.ts'
import { readCapturedTables } from './documents.ts'
import type { Outbox } from './outbox.ts'
import { readContentsDespiteFailures } from './readRecordContents.ts'
import { readWaitingRows } from './readRows.ts'
import { findTablesReadByQueries, grantsToReadTables } from './sourceGrants.ts'

export interface ExaminedSourceQueries {
  /** What stops capture. */
  problems: string[]
  /** Slow queries, and records for which a query fails. */
  warnings: string[]
  /** A sentence about the trial; null if no query was tried. */
  read: string | null
}

const triedMax = 100
const examineMs = 10_000

/** Plans the queries for mapped records and captured documents, and tries them on waiting rows. */
export async function examineSourceQueries(outbox: Outbox, mappings: Mappings): Promise<ExaminedSourceQueries> {
  const queries = await listQueries(outbox, mappings)
  if (queries.length === 0) return { problems: [], warnings: [], read: null }
  const examined = { problems: [] as string[], warnings: [] as string[] }
  for (const query of queries) {
    const { problems, warnings } = await examineQuery(outbox, query)
    examined.problems.push(...problems)
    examined.warnings.push(...warnings)
  }
  if (examined.problems.length > 0) return { ...examined, read: null }
  const { problems, read, unreadable } = await tryWaiting(outbox, mappings)
  return { problems, warnings: [...examined.warnings, ...unreadable], read }
}

async function listQueries(outbox: Outbox, mappings: Mappings): Promise<IdsQuery[]> {
  const { shape } = await outbox.inspect()
  const untilMs = performance.now() + examineMs
  const captured = await inReadOnlyTransaction(outbox, untilMs, (db) => readCapturedTables(db, shape.qualified, null))
  const sources = [...mappings.values()].map(({ source }) => contentsQuery(source, null, outbox.bytesMax))
  const ofTables = captured.flatMap((table) => {
    const hasQuery = (mappings.get(table.type)?.source ?? null) !== null
    return [existingDocumentsQuery(table), hasQuery ? null : contentsQuery(null, table, outbox.bytesMax)]
  })
  return [...sources, ...ofTables].filter((query) => query !== null)
}

async function examineQuery(outbox: Outbox, query: IdsQuery): Promise<{ problems: string[]; warnings: string[] }> {
  try {
    return await inReadOnlyTransaction(outbox, performance.now() + examineMs, async (db) => {
      const scans = await planScans(db, query)
      return { problems: [], warnings: await findMissingIndexes(db, query, scans) }
    })
  } catch (error) {
    if (!(error instanceof Error) || typeof errorCodeOf(error) !== 'string') throw error
    const grants = errorCodeOf(error) === '42501' ? await findGrants(outbox, query) : []
    return { problems: [[`${query.what} fails: ${error.message}${lineOf(error)}`, ...grants].join('\n')], warnings: [] }
  }
}

const missingColumnId = /column r\.id does not exist/

function lineOf(error: Error): string {
  return missingColumnId.test(error.message)
    ? '. The query must return a column "id", which says which record a row is for'
    : ''
}

interface Scan {
  schema: string
  table: string
  /** The compared column; null if the plan does not show it. */
  column: string | null
}

interface PlanNode {
  'Node Type': string
  Schema?: string
  'Relation Name'?: string
  Alias?: string
  Plans?: PlanNode[]
  [condition: string]: unknown
}

/** Plans the query for an unknown list of ids, because a plan for an empty list reads nothing. */
async function planScans(db: Database, { sql }: IdsQuery): Promise<Scan[]> {
  await db.query('set local plan_cache_mode = force_generic_plan')
  await db.query(`prepare outboxd_examined as ${sql}`)
  try {
    const { rows } = await db.query<{ 'QUERY PLAN': [{ Plan: PlanNode }] }>(
      `explain (format json, verbose) execute outboxd_examined('{}')`,
    )
    const root = rows[0]?.['QUERY PLAN'][0].Plan
    return root === undefined ? [] : findScans(root, '')
  } finally {
    await db.query('deallocate outboxd_examined').catch(() => {})
  }
}

/** @param conditions those of the parent nodes, which may join this node's table */
function findScans(node: PlanNode, conditions: string): Scan[] {
  const own = Object.entries(node).flatMap(([name, value]) => (/(Filter|Cond)$/.test(name) ? [String(value)] : []))
  const all = [conditions, ...own].join(' ')
  const { Schema: schema, 'Relation Name': table, Alias: alias = '' } = node
  const isScan = node['Node Type'] === 'Seq Scan' && schema !== undefined && table !== undefined
  const scans = isScan ? [{ schema, table, column: columnIn(all, alias) }] : []
  return [...scans, ...(node.Plans ?? []).flatMap((below) => findScans(below, all))]
}

/** The first column of the alias that is compared for equality. */
function columnIn(conditions: string, alias: string): string | null {
  const name = `(?:${RegExp.escape(alias)}|${RegExp.escape(quoteIdentifier(alias))})\\.("(?:[^"]|"")+"|\\w+)\\)?(?:::[\\w ]+)?`
  const found = conditions.match(new RegExp(`${name} = |= \\(?${name}`))
  const column = found?.[1] ?? found?.[2] ?? null
  return column?.startsWith('"') ? column.slice(1, -1).replaceAll('""', '"') : column
}

/** A table with fewer rows is read in milliseconds. */
const largeRows = 10_000

async function findMissingIndexes(db: Database, { what }: IdsQuery, scans: readonly Scan[]): Promise<string[]> {
  const { rows } = await db.query<{ table: string; column: string | null; rows: number }>(
    `select distinct pg_catalog.format('%I.%I', schema, "table") as table, pg_catalog.quote_ident(a.attname) as column,
       c.reltuples::pg_catalog.int8::pg_catalog.float8 as rows
     from pg_catalog.jsonb_to_recordset($1) as scan (schema pg_catalog.text, "table" pg_catalog.text, "column" pg_catalog.text)
       join pg_catalog.pg_namespace n on n.nspname operator(pg_catalog.=) scan.schema
       join pg_catalog.pg_class c on c.relnamespace operator(pg_catalog.=) n.oid and c.relname operator(pg_catalog.=) scan.table
       left join pg_catalog.pg_attribute a on a.attrelid operator(pg_catalog.=) c.oid and a.attname operator(pg_catalog.=) scan.column
     where c.reltuples operator(pg_catalog.>=) $2 and not exists (
       select from pg_catalog.pg_index i where i.indrelid operator(pg_catalog.=) c.oid and i.indkey[0] operator(pg_catalog.=) a.attnum
     )`,
    [JSON.stringify(scans), largeRows],
  )
  return rows.map(({ table, column, rows }) => {
    const why = `${what} reads all ${Math.round(rows)} rows of ${table} for each batch`
    if (column === null) return `${why}: create an index on the column by which it is joined`
    return `${why}\n  create index concurrently on ${table} (${column});`
  })
}

async function findGrants(outbox: Outbox, { sql }: IdsQuery): Promise<string[]> {
  return inReadOnlyTransaction(outbox, performance.now() + examineMs, async (db) => {
    const tables = await findTablesReadByQueries(db, [sql])
    const { rows } = await db.query<{ role: string }>('select pg_catalog.quote_ident(current_user) as role')
    return grantsToReadTables(tables, rows[0]?.role ?? '', { onlyMissing: true }).map((grant) => `  ${grant};`)
  })
}

async function tryWaiting(
  outbox: Outbox,
  mappings: Mappings,
): Promise<{ problems: string[]; read: string | null; unreadable: string[] }> {
  const waiting = await readWaitingRows(outbox, triedMax)
  const sinceMs = performance.now()
  try {
    const records = await readContentsDespiteFailures(outbox, mappings, waiting)
    const tookMs = Math.round(performance.now() - sinceMs)
    const failed = records.filter(({ unreadable }, i) => unreadable !== null && waiting[i]?.unreadable === null)
    const examples = failed.slice(0, 3).map(({ outboxId, unreadable }) => `  outbox:${outboxId}: ${unreadable}`)
    const which = `${failed.length} of ${records.length} rows that wait will be rejected:`
    return {
      problems: [],
      read: `${pluralize(records.length, 'waiting row')} read in ${tookMs} ms`,
      unreadable: failed.length === 0 ? [] : [[which, ...examples].join('\n')],
    }
  } catch (error) {
    if (!(error instanceof SourceFailed)) throw error
    if (error.blame === 'type')
      return { problems: [`${error.detail}, so none is captured`], read: null, unreadable: [] }
    // After a timeout or a lock, the daemon reads fewer rows at once, so this is only a warning.
    return {
      problems: [],
      read: `${pluralize(waiting.length, 'waiting row')} could not be read at once`,
      unreadable: [error.message],
    }
  }
}
