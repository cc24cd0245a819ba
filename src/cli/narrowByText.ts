import type { SubmissionFilter } from '../ledger/operator/selectSubmissions.ts'
import type { OperatorStore } from '../store/operatorStore.ts'
import type { FiltersRead } from './filters.ts'
import { pluralize } from './table.ts'

/** A search reads every payload that it looks at. */
const bounds = { rowsMax: 100_000, timeMaxMs: 10_000 }

/** The filter with what --containing finds. @param onCut told where the search was cut */
export async function narrowByText(
  store: Pick<OperatorStore, 'searchText'>,
  { filter, containing }: Extract<FiltersRead, { kind: 'value' }>,
  onCut: (message: string) => void,
): Promise<SubmissionFilter> {
  if (containing === null) return filter
  const { ids, lookedAt, isCut } = await store.searchText(filter, containing, bounds)
  if (isCut)
    onCut(
      `--containing looked at the newest ${pluralize(lookedAt, 'record')} and then stopped: there may be older ones with the text. Narrow the search with --state, --type, --since or --until.`,
    )
  return { ...filter, among: ids }
}
