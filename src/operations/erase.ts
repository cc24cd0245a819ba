import { eraseRecords, type KeyRecord } from '../ledger/audit/eraseRecords.ts'
import type { Operator } from '../ledger/operator/operator.ts'
import { type BulkRun, type CarriedOut, changedAmong, inBatches } from './bulkChange.ts'

/** Why a record keeps its data; null if it may be erased. */
export function whyNotErased({ mayBeErased, state, reportDue }: KeyRecord): string | null {
  if (mayBeErased) return null
  if (state === 'completed' || state === 'discarded')
    return reportDue ? `is ${state}, and its row is yet to be told so: try again when it is` : `is ${state}`
  if (state === 'failed' || state === 'rejected' || state === 'uncertain')
    return `is ${state} and waits for a person: replay, resolve or discard it first`
  return `is ${state}, and not ended: try again when it is, or discard it first`
}

const batchSize = 100

/** A record that took a step since stays. */
export function eraseData(operator: Operator, records: readonly KeyRecord[], run: BulkRun): Promise<CarriedOut> {
  return inBatches(records, batchSize, run, async (batch) => {
    const erased = new Set(await eraseRecords(operator, batch))
    return { done: [...erased], skipped: changedAmong(batch, erased) }
  })
}
