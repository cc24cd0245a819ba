import { setTimeout } from 'node:timers/promises'
import { countFailureCauses } from '../../ledger/operator/search.ts'
import { anySubmissionFilter } from '../../ledger/operator/selectSubmissions.ts'
import { type BudgetUse, readBudgetUse, readLedgerSnapshot } from '../../ledger/snapshot.ts'
import { statesNeedingAttention } from '../../model/submission.ts'
import { createStatusReport, type StatusReport } from '../../operations/diagnose.ts'
import { type OutboxStatus, readLedgerStatus, readOutboxStatus } from '../../operations/readStatus.ts'
import { type ConsoleParts, shareRecentRead } from '../parts.ts'

/** The longest age of each part, so that viewers, however many, cost under five statements a second. */
const agesMs = { budget: 1_900, ledger: 7_900, causes: 9_900 }

const causesOfMax = 1_000

export interface NowPageData {
  report: StatusReport
  budget: BudgetUse
  needingAttention: Awaited<ReturnType<typeof countFailureCauses>>
}

/** Reads at each call only the snapshot. */
export function createNowPageReader({
  databases,
  clock,
}: Pick<ConsoleParts, 'databases' | 'clock'>): () => Promise<NowPageData> {
  const readOutbox = createLastKnownOutboxStatusReader({ databases, clock })
  const readLedger = shareRecentRead(clock, agesMs.ledger, async () => readLedgerStatus(await databases()))
  const readBudget = shareRecentRead(clock, agesMs.budget, async () => readBudgetUse((await databases()).ledger))
  const readCauses = shareRecentRead(clock, agesMs.causes, async () =>
    countFailureCauses(
      (await databases()).ledger,
      { ...anySubmissionFilter, states: statesNeedingAttention },
      causesOfMax,
    ),
  )
  return async () => {
    const [ledger, snapshot, outbox, budget, needingAttention] = await Promise.all([
      readLedger(),
      databases().then((opened) => readLedgerSnapshot(opened.ledger)),
      readOutbox(),
      readBudget(),
      readCauses(),
    ])
    const report = createStatusReport({ ...ledger, ...snapshot }, outbox)
    return { report, budget, needingAttention }
  }
}

/** Grows with the duration of the last read, because counting millions of rows is slow. */
const outboxRestMs = (tookMs: number) => Math.max(5_000, tookMs * 40)
/** A page waits no longer for the outbox, whose table may be locked. */
const patienceMs = 150

export function createLastKnownOutboxStatusReader(
  { databases, clock }: Pick<ConsoleParts, 'databases' | 'clock'>,
  ask: typeof readOutboxStatus = readOutboxStatus,
): () => Promise<OutboxStatus> {
  let last: OutboxStatus = { kind: 'awaited' }
  const read = shareRecentRead(clock, outboxRestMs, async () => {
    last = await ask(await databases())
    return last
  })
  return () => Promise.race([read(), setTimeout(patienceMs, undefined, { ref: false }).then(() => last)])
}
