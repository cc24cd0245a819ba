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
  /** Records for which a query fails, and a trial that took too long. */
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
  for (const query of queries) {
    try {
      await inReadOnlyTransaction(outbox, examineUntilMs(), (db) => plan(db, query))
    } catch (error) {
      if (!(error instanceof Error) || typeof errorCodeOf(error) !== 'string') throw error
      const grants = errorCodeOf(error) === '42501' ? await findGrants(outbox, query) : []
      const hint = missingColumnId.test(error.message) ? missingColumnIdHint : ''
      problems.push([`${query.label} fails: ${error.message}${hint}`, ...grants].join('\n'))
    }
  }
  return problems.length > 0 ? { problems, warnings: [], trialResult: null } : tryWaiting(outbox, mappings)
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

async function plan(db: Database, { sql, mustSeeAllRows }: QueryByIds): Promise<void> {
  if (mustSeeAllRows) await db.query(seeAllRowsSql)
  await db.query(`explain ${sql}`, ['{}']) // no ids, as an array or as JSON
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
