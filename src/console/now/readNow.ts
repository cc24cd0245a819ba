import { readBudgetSlots } from '../../ledger/operator/readActivity.ts'
import { countFailureCauses } from '../../ledger/operator/search.ts'
import { anySubmission, type SubmissionFilter } from '../../ledger/operator/selectSubmissions.ts'
import { statesNeedingAttention } from '../../model.ts'
import { joinStatusHalves } from '../../operations/diagnose.ts'
import { type LedgerReads, ledgerStatusReads, type OutboxHalf, readLedgerHalf } from '../../operations/readStatus.ts'
import type { ConsoleParts } from '../parts.ts'
import { budgetWindow } from './budgetHtml.ts'
import type { NeedingAttention, NowView } from './nowHtml.ts'
import { rereadOnChange, shareRead } from './sharedReads.ts'

/** Longest age of each part, so that any number of viewers costs under five statements a second. */
const agesMs = {
  moving: 300,
  activity: 3_900,
  readOnly: 9_900,
  counts: 10_000,
  served: 60_000,
}

const problemsAge = { minMs: 0, maxMs: 4_900 }
const causesAge = { minMs: 1_900, maxMs: 10_000 }

const causesOfMax = 1_000

export function createNowReader(
  { databases, config, clock }: Pick<ConsoleParts, 'databases' | 'config' | 'clock'>,
  readOutbox: () => Promise<OutboxHalf>,
): () => Promise<NowView> {
  const reads = async () => ledgerStatusReads(await databases())
  const share = <K extends keyof LedgerReads>(read: K, forMs: number): LedgerReads[K] =>
    shareRead(clock, forMs, async () => (await reads())[read]() as ReturnType<LedgerReads[K]>) as LedgerReads[K]
  const readSnapshot = share('readSnapshot', agesMs.moving)
  const readProblems = rereadOnChange(clock, problemsAge, async () => (await reads()).readProblems())
  const readWaiting = rereadOnChange(clock, causesAge, async () =>
    countFailureCauses((await databases()).ledger, needsAttention, causesOfMax),
  )
  const shared: LedgerReads = {
    readSnapshot,
    readProblems: async () => readProblems(JSON.stringify((await readSnapshot()).problems)),
    readDaemonActivity: share('readDaemonActivity', agesMs.activity),
    readServedOutbox: share('readServedOutbox', agesMs.served),
    readReadOnly: share('readReadOnly', agesMs.readOnly),
    readRecentRequestCounts: share('readRecentRequestCounts', agesMs.counts),
    readHeartbeatLocks: share('readHeartbeatLocks', agesMs.activity),
  }
  const readSlots = shareRead(clock, agesMs.moving, async () => readBudgetSlots((await databases()).ledger))

  return async () => {
    const [ledger, outbox, slots] = await Promise.all([readLedgerHalf(shared), readOutbox(), readSlots()])
    const { uncertain, failed, rejected } = ledger.submissions
    const counts = [uncertain, failed, rejected]
    const needingAttention = counts.some((count) => count > 0) ? await readWaiting(counts.join()) : noneNeedAttention
    return { report: joinStatusHalves(ledger, outbox, config), window: budgetWindow(slots), needingAttention }
  }
}

const noneNeedAttention: NeedingAttention = { causes: [], lookedAt: 0, isCut: false }

const needsAttention: SubmissionFilter = { ...anySubmission, states: statesNeedingAttention }
