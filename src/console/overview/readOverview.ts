import { setTimeout } from 'node:timers/promises'
import { type MinuteOfLastHour, readLastHour } from '../../ledger/lastHour.ts'
import { type LedgerFacts, readLedgerFacts } from '../../ledger/operator/readLedgerFacts.ts'
import { countFailureCauses, type FailureCauses } from '../../ledger/operator/search.ts'
import { anySubmissionFilter } from '../../ledger/operator/selectSubmissions.ts'
import { type BudgetUse, readBudgetUse, readLedgerSnapshot } from '../../ledger/snapshot.ts'
import { statesNeedingAttention } from '../../model/submission.ts'
import { type Databases, readSessionsBlockingOutboxReads } from '../../operations/databases.ts'
import { createStatusReport, type StatusReport } from '../../operations/diagnose.ts'
import {
  type OutboxStatus,
  readLedgerStatus,
  readOutboxStatus,
  readSessionsHoldingUpDaemons,
} from '../../operations/readStatus.ts'
import { type ConsoleParts, type MappingFiles, readMappingFiles, shareRecentRead } from '../parts.ts'

/** How old what is shared may be, so that viewers, however many, cost under five statements a second. */
const agesMs = { budget: 2_900, rest: 9_900 }

const causesOfMax = 1_000

export interface OverviewData {
  report: StatusReport
  budget: BudgetUse
  needingAttention: FailureCauses
  lastHour: MinuteOfLastHour[]
  mappingFiles: MappingFiles
  ledger: LedgerFacts
}

/** Reads at each call the snapshot, and who holds a lock if somebody does: its advice ends a session. */
export function createOverviewReader(parts: Pick<ConsoleParts, 'databases' | 'clock'>): () => Promise<OverviewData> {
  const { databases, clock } = parts
  const sharing = <T>(ageMs: number, read: (databases: Databases) => T | Promise<T>) =>
    shareRecentRead(clock, ageMs, async () => read(await databases()))
  const readOutbox = createLastKnownOutboxStatusReader(parts)
  const readBudget = sharing(agesMs.budget, ({ ledger }) => readBudgetUse(ledger))
  const readRest = sharing(agesMs.rest, async (opened) => {
    const { ledger, config } = opened
    return Promise.all([
      readLedgerStatus(opened),
      countFailureCauses(ledger, needingAttention, causesOfMax),
      readLastHour(ledger),
      readLedgerFacts(ledger),
      readMappingFiles(config),
    ])
  })
  const readPresent = async () => {
    const { ledger } = await databases()
    const snapshot = await readLedgerSnapshot(ledger)
    return { ...snapshot, heldUpBy: await readSessionsHoldingUpDaemons(ledger, snapshot) }
  }
  return async () => {
    const [present, outbox, budget, rest] = await Promise.all([readPresent(), readOutbox(), readBudget(), readRest()])
    const [status, causes, lastHour, ledger, mappingFiles] = rest
    const report = createStatusReport({ ...status, ...present }, outbox)
    return { report, budget, needingAttention: causes, lastHour, mappingFiles, ledger }
  }
}

const needingAttention = { ...anySubmissionFilter, states: statesNeedingAttention }

/** Grows with the duration of the last read, because counting millions of rows is slow. */
const outboxRestMs = (tookMs: number) => Math.max(5_000, tookMs * 40)
/** A page waits no longer for the outbox, whose table may be locked, unless nothing is known yet. */
const patienceMs = { known: 150, unknown: 1_500 }

export function createLastKnownOutboxStatusReader(
  { databases, clock }: Pick<ConsoleParts, 'databases' | 'clock'>,
  ask: typeof readOutboxStatus = readOutboxStatus,
): () => Promise<OutboxStatus> {
  let last: OutboxStatus = { kind: 'awaited' }
  const read = shareRecentRead(clock, outboxRestMs, async () => {
    last = await ask(await databases())
    return last
  })
  return async () => {
    const waitMs = last.kind === 'awaited' ? patienceMs.unknown : patienceMs.known
    const status = await Promise.race([read(), setTimeout(waitMs, undefined, { ref: false }).then(() => last)])
    if (status.kind !== 'locked') return status
    // Whose lock it is may have changed since.
    const by = await readSessionsBlockingOutboxReads(await databases())
    return by.length > 0 ? { kind: 'locked', by } : { kind: 'awaited' }
  }
}
