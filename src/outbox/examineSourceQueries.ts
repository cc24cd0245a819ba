import type { Mappings } from '../mapping/loadMappings.ts'
import { pluralize } from '../plainText.ts'
import type { Database } from '../postgres/database.ts'
import { errorCodeOf } from '../postgres/sqlState.ts'
import {
  contentsQuery,
  documentConditionQuery,
  inReadOnlyTransaction,
  type QueryByIds,
  SourceFailed,
  seeAllRowsSql,
} from './contentQueries.ts'
import type { Outbox } from './outbox.ts'
import { readNeededQueryGrants } from './outboxGrants.ts'
import { readContentsInBatches } from './readRecordContents.ts'
import { readWaitingRows } from './readRows.ts'

interface ExaminedSourceQueries {
  problems: string[]
  /** Slow queries, and records for which a query fails. */
  warnings: string[]
  /** The result of the trial, as a sentence; null if no query was tried. */
  trialResult: string | null
}

const triedMax = 100
const examineMs = 10_000

/** Plans the queries and conditions of mapping files, and tries them on waiting rows. */
export async function examineSourceQueries(outbox: Outbox, mappings: Mappings): Promise<ExaminedSourceQueries> {
  const queries = listQueries(outbox, mappings)
  if (queries.length === 0) return { problems: [], warnings: [], trialResult: null }
  const problems: string[] = []
  const warnings: string[] = []
  for (const query of queries) {
    try {
      warnings.push(...(await inReadOnlyTransaction(outbox, examineUntilMs(), (db) => findLargeScans(db, query))))
    } catch (error) {
      if (!(error instanceof Error) || typeof errorCodeOf(error) !== 'string') throw error
      const grants = errorCodeOf(error) === '42501' ? await findGrants(outbox, query) : []
      const hint = missingColumnId.test(error.message) ? missingColumnIdHint : ''
      problems.push([`${query.label} fails: ${error.message}${hint}`, ...grants].join('\n'))
    }
  }
  if (problems.length > 0) return { problems, warnings, trialResult: null }
  const tried = await tryWaiting(outbox, mappings)
  return { ...tried, warnings: [...warnings, ...tried.warnings] }
}

const examineUntilMs = () => performance.now() + examineMs
const missingColumnId = /column r\.id does not exist/
const missingColumnIdHint = '. The query must return a column "id", which says which record a row is for'

function listQueries({ bytesMax }: Outbox, mappings: Mappings): QueryByIds[] {
  return [...mappings.values()].flatMap(({ source, document }) => {
    if (source === null) return []
    const contents = contentsQuery({ source, document }, bytesMax)
    return document === null ? [contents] : [documentConditionQuery(document), contents]
  })
}

interface PlanNode {
  'Node Type': string
  Schema?: string
  'Relation Name'?: string
  Plans?: PlanNode[]
}

/** A table with fewer rows is read in milliseconds. */
const largeRows = 10_000

/** Plans the query for an unknown list of ids, because a plan for an empty list reads nothing. */
async function findLargeScans(db: Database, { label, sql, mustSeeAllRows }: QueryByIds): Promise<string[]> {
  if (mustSeeAllRows) await db.query(seeAllRowsSql)
  await db.query('set local plan_cache_mode = force_generic_plan')
  await db.query(`prepare outboxd_examined as ${sql}`)
  const { rows: plans } = await db
    .query<{ 'QUERY PLAN': [{ Plan: PlanNode }] }>(`explain (format json, verbose) execute outboxd_examined('{}')`)
    .finally(() => db.query('deallocate outboxd_examined').catch(() => {}))
  const { rows } = await db.query<{ table: string; rows: number }>(
    `select distinct pg_catalog.format('%I.%I', schema, "table") as table, c.reltuples::pg_catalog.int8::pg_catalog.float8 as rows
     from pg_catalog.jsonb_to_recordset($1) as scan (schema pg_catalog.text, "table" pg_catalog.text)
       join pg_catalog.pg_namespace n on n.nspname operator(pg_catalog.=) scan.schema
       join pg_catalog.pg_class c on c.relnamespace operator(pg_catalog.=) n.oid and c.relname operator(pg_catalog.=) scan.table
     where c.reltuples operator(pg_catalog.>=) $2`,
    [JSON.stringify(plans.flatMap((plan) => scansBelow(plan['QUERY PLAN'][0].Plan))), largeRows],
  )
  return rows.map(
    ({ table, rows }) =>
      `${label} reads all ${Math.round(rows)} rows of ${table} for each batch: create an index on the column by which the query selects rows`,
  )
}

function scansBelow(node: PlanNode): { schema: string; table: string }[] {
  const { Schema: schema = '', 'Relation Name': table = '' } = node
  const own = node['Node Type'] === 'Seq Scan' ? [{ schema, table }] : []
  return [...own, ...(node.Plans ?? []).flatMap(scansBelow)]
}

async function findGrants(outbox: Outbox, { sql }: QueryByIds): Promise<string[]> {
  const grants = await inReadOnlyTransaction(outbox, examineUntilMs(), (db) => readNeededQueryGrants(db, [sql]))
  return grants.flatMap(({ statement, isMissing }) => (isMissing ? [`  ${statement};`] : []))
}

async function tryWaiting(outbox: Outbox, mappings: Mappings): Promise<ExaminedSourceQueries> {
  const waiting = await readWaitingRows(outbox, triedMax)
  const sinceMs = performance.now()
  try {
    const records = await readContentsInBatches(outbox, mappings, waiting)
    const trialResult = `${pluralize(records.length, 'waiting row')} read in ${Math.round(performance.now() - sinceMs)} ms`
    const failed = records.filter(({ unreadable }, i) => unreadable !== null && waiting[i]?.unreadable === null)
    if (failed.length === 0) return { problems: [], warnings: [], trialResult }
    const examples = failed.slice(0, 3).map(({ outboxId, unreadable }) => `  outbox:${outboxId}: ${unreadable}`)
    const which = `${failed.length} of ${records.length} waiting rows will be rejected, because their contents cannot be read:`
    return { problems: [], warnings: [[which, ...examples].join('\n')], trialResult }
  } catch (error) {
    if (!(error instanceof SourceFailed)) throw error
    if (error.blame === 'type')
      return { problems: [`${error.detail}, so no row of this type is captured`], warnings: [], trialResult: null }
    // After a timeout or a lock, the daemon reads fewer rows at once, so this is only a warning.
    const trialResult = `${pluralize(waiting.length, 'waiting row')} could not be read in one batch`
    return { problems: [], warnings: [error.message], trialResult }
  }
}
