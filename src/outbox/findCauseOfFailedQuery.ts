import { blameForSqlState } from '../postgres/sqlState.ts'
import type { QueryFailed } from './contentQueries.ts'

/** The cause of a failed query for the contents of records. */
export type QueryFault =
  | { kind: 'records'; records: { id: string; error: QueryFailed }[] }
  /** The query itself, or its rights. */
  | { kind: 'type'; error: QueryFailed }
  /** A lock, a deadlock, or too little time or memory. Fewer records, or a later try, may succeed. */
  | { kind: 'moment'; error: QueryFailed }

export interface QueryTrials {
  /** @returns why the query fails for these records; null if it succeeds */
  tryPart(ids: readonly string[]): Promise<QueryFailed | null>
  failsWithoutRecords(): Promise<boolean>
}

/** If this many parts have failed and none has succeeded, the query fails for all. */
const failedPartsMax = 64
/** If this many records fail and none succeeds, their data is not the cause. */
const failedRecordsMax = 10

/**
 * Finds the cause of a failed query by trying ever smaller parts of the records. The SQLSTATE says little, because a
 * function may raise any code for one record:
 *
 *     fails for some records, succeeds for others      the records
 *     fails for all, fewer than 10, a code about data  the records
 *     fails for all, 10 or more, or another code       the type
 *     fails without any record                         the type
 *     a code that may pass                             moment
 */
export async function findCauseOfFailedQuery(
  ids: readonly string[],
  error: QueryFailed,
  { tryPart, failsWithoutRecords }: QueryTrials,
): Promise<QueryFault> {
  if (mayPass(error)) return { kind: 'moment', error }
  if (await failsWithoutRecords()) return { kind: 'type', error }
  let failed = [{ ids, error }]
  let anyPassed = false
  while (failed.some((part) => part.ids.length > 1) && (anyPassed || failed.length < failedPartsMax)) {
    const smaller: typeof failed = []
    for (const part of failed.flatMap(halve)) {
      const again = part.isSingle ? part.error : await tryPart(part.ids)
      if (again === null) anyPassed = true
      else if (mayPass(again)) return { kind: 'moment', error: again }
      else smaller.push({ ids: part.ids, error: again })
    }
    failed = smaller
  }
  if (!anyPassed && (ids.length >= failedRecordsMax || !isAboutData(error))) return { kind: 'type', error }
  return { kind: 'records', records: failed.map((part) => ({ id: part.ids[0] ?? '', error: part.error })) }
}

function halve(part: { ids: readonly string[]; error: QueryFailed }) {
  const isSingle = part.ids.length === 1
  const half = part.ids.length >> 1
  const halves = isSingle ? [part.ids] : [part.ids.slice(0, half), part.ids.slice(half)]
  return halves.map((ids) => ({ ids, error: part.error, isSingle }))
}

const mayPass = ({ code }: QueryFailed) => blameForSqlState(code, 'claim') === 'moment'
const isAboutData = ({ code }: QueryFailed) => blameForSqlState(code, 'claim') === 'piece'
