import { type FiltersRead, readListFilters } from '../../cli/filters.ts'
import { narrowByText } from '../../cli/narrowByText.ts'
import { skippedRowMessages } from '../../cli/skippedRowMessages.ts'
import type { Cause } from '../../ledger/operator/readCauses.ts'
import type { SubmissionPage } from '../../ledger/operator/selectPage.ts'
import type { SubmissionFilter } from '../../ledger/operator/selectSubmissions.ts'
import type { OperatorStore } from '../../store/operatorStore.ts'
import type { RecordsQuery } from './recordsQuery.ts'

/** What the list shows. */
export interface RecordsView {
  query: RecordsQuery
  /** What is wrong with the filters; then nothing is listed. */
  problems: string[]
  listed: Listed | null
  /** Rows that never became submissions, where the list is of what waits for a person. */
  skippedRows: string[]
  lastEventId: string
  nowMs: number
}

/** A page of submissions, or the causes that they share. */
export type Listed = { filter: SubmissionFilter; cut: string | null } & (
  | { kind: 'page'; page: SubmissionPage; total: number }
  | { kind: 'causes'; causes: Cause[]; lookedAt: number; isCut: boolean }
)

const rowsDefault = 50
/** A page has at most this many rows, whatever its address asks for. */
export const rowsMax = 200

/** A list is counted up to here. */
export const countedMax = 1_000

/** Each is read, to take the values from its reason. */
const causesOfMax = 100_000

/** Reads what an address asks for. */
export async function readRecords(store: OperatorStore, query: RecordsQuery, nowMs: number): Promise<RecordsView> {
  const read = readListFilters(query.filters, nowMs)
  // Before the list: what comes while it is read is told of later.
  const lastEventId = await store.readLastEventId()
  const view = { query, lastEventId, nowMs, skippedRows: await readSkippedRows(store, query) }
  if (read.kind === 'invalid') return { ...view, problems: read.problems, listed: null }
  return { ...view, problems: [], listed: await readListed(store, query, read) }
}

async function readListed(
  store: OperatorStore,
  query: RecordsQuery,
  read: Extract<FiltersRead, { kind: 'value' }>,
): Promise<Listed> {
  let cut: string | null = null
  const filter = await narrowByText(store, read, (message) => {
    cut = message
  })
  if (query.byCause) return { kind: 'causes', filter, cut, ...(await store.readCauses(filter, causesOfMax)) }
  const limit = Math.min(read.limit ?? rowsDefault, rowsMax)
  const [page, total] = await Promise.all([
    store.selectPage(filter, { order: query.order, from: query.from, limit }),
    store.count(filter, countedMax + 1),
  ])
  return { kind: 'page', filter, cut, page, total }
}

const problemsRead = 200

async function readSkippedRows(store: OperatorStore, { filters, from }: RecordsQuery): Promise<string[]> {
  const isDefault = Object.keys(filters).length === 0 && from === null
  return isDefault ? skippedRowMessages(await store.readProblems(problemsRead)) : []
}
