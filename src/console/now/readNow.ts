import { anySubmission, type SubmissionFilter } from '../../ledger/operator/selectSubmissions.ts'
import { waitingForPerson } from '../../model.ts'
import { joinHalves, type LedgerReads, type OutboxHalf, readLedgerHalf } from '../../operations/readStatus.ts'
import type { OperatorStore } from '../../store/operatorStore.ts'
import type { ConsoleParts } from '../parts.ts'
import { budgetWindow } from './budgetHtml.ts'
import type { ForPerson, NowView } from './nowHtml.ts'
import { readWhenCountDiffers, shareReading } from './readings.ts'

/** How old what is shown may be, whoever looks and however many: fewer than five statements a second. */
const agesMs = {
  /** Whether it is paused, what moves: read anew for each view. */
  moving: 300,
  activity: 3_900,
  readOnly: 9_900,
  counts: 10_000,
  served: 60_000,
}

/** What the snapshot counts is read again when it counts otherwise, and now and then. */
const problemsAge = { minMs: 0, maxMs: 4_900 }
const causesAge = { minMs: 1_900, maxMs: 10_000 }

/** The causes of so many are told apart: a few milliseconds. */
const causesOfMax = 1_000

/**
 * Makes what reads the page's view, each part of it as often as what it tells changes; with the functions that `status` is made
 * of. To be asked once a second for all viewers.
 */
export function createNowReading(
  { store, config, clock }: Pick<ConsoleParts, 'store' | 'config' | 'clock'>,
  readOutbox: () => Promise<OutboxHalf>,
): () => Promise<NowView> {
  const every = <T>(forMs: number, read: (store: OperatorStore) => Promise<T>) =>
    shareReading(clock, forMs, async () => read(await store()))
  const readSnapshot = every(agesMs.moving, (all) => all.readSnapshot())
  const readProblems = readWhenCountDiffers(clock, problemsAge, async () => (await store()).readProblems(problemsMax))
  const readCauses = readWhenCountDiffers(clock, causesAge, async () =>
    (await store()).readCauses(waitsForPerson, causesOfMax),
  )
  const ledgerReads: LedgerReads = {
    readSnapshot,
    readActivity: every(agesMs.activity, (all) => all.readActivity()),
    readProblems: async () => readProblems(JSON.stringify((await readSnapshot()).problems)),
    readServedOutbox: every(agesMs.served, (all) => all.readServedOutbox()),
    readReadOnly: every(agesMs.readOnly, (all) => all.readReadOnly('ledger')),
    readRecentCounts: every(agesMs.counts, (all) => all.readRecentCounts()),
    readHeartbeatLocks: every(agesMs.activity, (all) => all.readHeartbeatLocks()),
  }
  const readSlots = every(agesMs.moving, (all) => all.readBudgetSlots())

  return async () => {
    const [ledger, outbox, slots] = await Promise.all([readLedgerHalf(ledgerReads), readOutbox(), readSlots()])
    const { uncertain, failed, rejected } = ledger.submissions
    const counts = [uncertain, failed, rejected]
    const forPerson = counts.some((count) => count > 0) ? await readCauses(counts.join()) : nobodyWaits
    return { report: joinHalves(ledger, outbox, config), window: budgetWindow(slots), forPerson }
  }
}

/** As many as `status` reads. */
const problemsMax = 200

const nobodyWaits: ForPerson = { causes: [], lookedAt: 0, isCut: false }

const waitsForPerson: SubmissionFilter = { ...anySubmission, states: waitingForPerson }
