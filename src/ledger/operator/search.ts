import { systemClock } from '../../clock.ts'
import type { State } from '../../model/submission.ts'
import type { Database } from '../../postgres/database.ts'
import {
  causeDigestSql,
  filterParameters,
  matchingSubmissionsSql,
  normalizedErrorSql,
  type SubmissionFilter,
  selectSubmissionIds,
} from './selectSubmissions.ts'

export interface SearchBounds {
  rowsMax: number
  timeMaxMs: number
}

export interface TextSearch {
  ids: string[]
  lookedAt: number
  /** True if more records match the filter than were searched. */
  isCut: boolean
}

/** Few rows, because payloads can be large and a statement has a time limit. */
const rowsAtOnce = 200

/** Searches payloads, bodies and keys, newest first, ignoring case. Has bounds, because payloads have no index. */
export async function searchSubmissionTexts(
  db: Database,
  filter: SubmissionFilter,
  text: string,
  { rowsMax, timeMaxMs }: SearchBounds,
): Promise<TextSearch> {
  const elapsedMs = systemClock.stopwatch()
  const candidates = await selectSubmissionIds(db, filter, rowsMax + 1, 'newest')
  const ids: string[] = []
  let lookedAt = 0
  while (lookedAt < Math.min(candidates.length, rowsMax) && elapsedMs() < timeMaxMs) {
    const slice = candidates.slice(lookedAt, Math.min(lookedAt + rowsAtOnce, rowsMax))
    const { rows } = await db.query<{ id: string }>(
      `select s.id from outboxd.submission s where s.id = any($1::uuid[]) and ${submissionContainsSql('$2')}`,
      [slice, toLikePatterns(text)],
    )
    ids.push(...rows.map(({ id }) => id))
    lookedAt += slice.length
  }
  return { ids, lookedAt, isCut: lookedAt < candidates.length }
}

export const submissionContainsSql = (patternsSql: string): string =>
  `coalesce(s.key ilike any(${patternsSql}::text[]) or s.payload ilike any(${patternsSql}) or s.body ilike any(${patternsSql}), false)`

/** Returns a pattern for the text as it is, and patterns for its escaped forms in JSON. */
export function toLikePatterns(text: string): string[] {
  const escaped = JSON.stringify(text).slice(1, -1)
  const ascii = escaped.replace(/[\u0080-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
  return [...new Set([text, escaped, ascii])].map((each) => `%${each.replace(/[\\%_]/g, '\\$&')}%`)
}

/** Describes submissions with the same state, code and shape of error. */
export interface FailureCause {
  /** The value of the filter `cause`. */
  cause: string
  count: number
  state: State
  code: string | null
  mayHaveArrived: boolean
  /** True for changes of documents that were sent: these records were not. */
  changedAfterSent: boolean
  /** The error of these submissions, with values left out. */
  shape: string
  types: string[]
  firstMs: number
  lastMs: number
  firstOutboxId: string
}

export interface FailureCauses {
  causes: FailureCause[]
  lookedAt: number
  isCut: boolean
}

export async function countFailureCauses(
  db: Database,
  filter: SubmissionFilter,
  rowsMax: number,
): Promise<FailureCauses> {
  const { rows } = await db.query<FailureCause>(causesSql, filterParameters(filter, rowsMax + 1))
  const lookedAt = rows.reduce((sum, { count }) => sum + count, 0)
  return { causes: rows, lookedAt: Math.min(lookedAt, rowsMax), isCut: lookedAt > rowsMax }
}

const columns = `s.outbox_id as "outboxId", s.state, s.error_code as code, s.may_have_arrived as "mayHaveArrived",
  s.changed_after_sent as "changedAfterSent", s.type,
  ${normalizedErrorSql} as shape, ${causeDigestSql} as cause`

const causesSql = `
  select cause, count(*)::int as count, min(state) as state, min(upper(code)) as code, "mayHaveArrived", "changedAfterSent", min(shape) as shape,
    array_agg(distinct type) as types, min("sinceMs") as "firstMs", max("sinceMs") as "lastMs",
    (array_agg("outboxId" order by "sinceMs", seq))[1] as "firstOutboxId"
  from (${matchingSubmissionsSql(columns, 'newest')}) matching
  group by cause, "mayHaveArrived", "changedAfterSent" order by min(state) = 'uncertain' desc, count(*) desc, min("sinceMs")`
