import { createHash } from 'node:crypto'
import { joinHalves, readLedgerHalf, readOutboxHalf, type StatusReport } from '../../cli/readStatus.ts'
import type { StoreConfig } from '../../config.ts'
import type { OperatorStore } from '../../store/operatorStore.ts'

/** All that the page shows, at one moment. */
export interface NowView {
  report: StatusReport
  /** Another when there is something else to show. */
  version: string
}

export async function readNow(store: OperatorStore, config: StoreConfig): Promise<NowView> {
  const [ledger, outbox] = await Promise.all([readLedgerHalf(store), readOutboxHalf(store)])
  const report = joinHalves(ledger, outbox, config)
  return { report, version: createHash('sha256').update(JSON.stringify(report)).digest('base64url') }
}
