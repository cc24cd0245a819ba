import { setTimeout } from 'node:timers/promises'
import {
  joinHalves,
  type LedgerReads,
  type OutboxHalf,
  readLedgerHalf,
  readOutboxHalf,
  type StatusReport,
} from '../../cli/readStatus.ts'
import type { SubmissionFilter } from '../../ledger/operator/selectSubmissions.ts'
import type { LedgerSnapshot } from '../../ledger/snapshot.ts'
import type { OperatorStore } from '../../store/operatorStore.ts'
import type { ConsoleParts } from '../parts.ts'
import { type BudgetWindow, budgetWindow } from './budgetWindow.ts'
import type { ForPerson } from './personHtml.ts'

/** All that the page shows of this moment. */
export interface NowView {
  report: StatusReport
  window: BudgetWindow
  forPerson: ForPerson
}

/** How old what is shown may be, whoever looks and however many: fewer than five statements a second. */
const agesMs = {
  /** Whether it is paused, what moves: read anew for each view. */
  moving: 300,
  /** What problems say of themselves; a new one is seen at once. */
  problems: 4_900,
  activity: 3_900,
  readOnly: 9_900,
  counts: 10_000,
  causes: 10_000,
  served: 60_000,
}

/** The causes of so many are told apart: a few milliseconds. */
const causesOfMax = 1_000

/**
 * Makes what reads the page's view, each part of it as often as what it tells changes; with the functions that `status` is made
 * of. To be asked once a second for all viewers.
 */
export function createNowReading(
  { store, live, config }: ConsoleParts,
  readOutbox: () => Promise<OutboxHalf>,
): () => Promise<NowView> {
  const every = <T>(forMs: number, read: (store: OperatorStore) => Promise<T>) =>
    live.share(async () => read(await store()), forMs)
  const readSnapshot = every(agesMs.moving, (all) => all.readSnapshot())
  const ledgerReads: LedgerReads = {
    readSnapshot,
    readActivity: every(agesMs.activity, (all) => all.readActivity()),
    readProblems: createProblemsReading(readSnapshot, () =>
      every(agesMs.problems, (all) => all.readProblems(problemsMax)),
    ),
    readServedOutbox: every(agesMs.served, (all) => all.readServedOutbox()),
    readReadOnly: every(agesMs.readOnly, (all) => all.readReadOnly('ledger')),
    readRecentCounts: every(agesMs.counts, (all) => all.readRecentCounts()),
    readHeartbeatLocks: every(agesMs.activity, (all) => all.readHeartbeatLocks()),
  }
  const readSlots = every(agesMs.moving, (all) => all.readBudgetSlots())
  const readCauses = every(agesMs.causes, (all) => all.readCauses(waitsForPerson, causesOfMax))

  return async () => {
    const [ledger, outbox, slots] = await Promise.all([readLedgerHalf(ledgerReads), readOutbox(), readSlots()])
    const { uncertain, failed, rejected } = ledger.submissions
    const forPerson = uncertain + failed + rejected > 0 ? await readCauses() : nobodyWaits
    return { report: joinHalves(ledger, outbox, config), window: budgetWindow(slots), forPerson }
  }
}

/** Reads the problems now and then, and at once where the snapshot counts others. @param anew makes a reading that knows nothing yet */
function createProblemsReading<Problems>(
  readSnapshot: () => Promise<Pick<LedgerSnapshot, 'problems'>>,
  anew: () => () => Promise<Problems>,
): () => Promise<Problems> {
  let counted = ''
  let read = anew()
  return async () => {
    const counts = JSON.stringify((await readSnapshot()).problems)
    if (counts !== counted) read = anew()
    counted = counts
    return read()
  }
}

/** As many as `status` reads. */
const problemsMax = 200

const nobodyWaits: ForPerson = { causes: [], lookedAt: 0, isCut: false }

const waitsForPerson: SubmissionFilter = {
  states: ['uncertain', 'failed', 'rejected'],
  code: null,
  type: null,
  key: null,
  sinceMs: null,
  untilMs: null,
  mayHaveArrived: null,
  transactionId: null,
  cause: null,
  among: null,
}

const outboxAgeMs = 5_000
/** An outbox that could not be read, or is locked, is asked again sooner. */
const troubledAgeMs = 4_000
/** To count a million rows takes its time: the outbox's database spends a fortieth of a core on it at most. */
const restTimes = 40
/** The page does not wait longer for what may be locked. */
const patienceMs = 150

/**
 * Makes what reads the outbox's half: now and then, and never so that the page waits for it. Meanwhile it is what it was before.
 */
export function createOutboxReading(
  { store, clock }: Pick<ConsoleParts, 'store' | 'clock'>,
  ask: (store: OperatorStore) => Promise<OutboxHalf> = readOutboxHalf,
): () => Promise<OutboxHalf> {
  let last: OutboxHalf = { kind: 'awaited' }
  let asking: Promise<OutboxHalf> | null = null
  let rests: { ageMs: () => number; forMs: number } | null = null

  async function askAnew(): Promise<OutboxHalf> {
    const tookMs = clock.stopwatch()
    try {
      last = await ask(await store())
      const forMs = last.kind === 'read' ? Math.max(outboxAgeMs, tookMs() * restTimes) : troubledAgeMs
      rests = { ageMs: clock.stopwatch(), forMs }
      return last
    } finally {
      asking = null
    }
  }

  return () => {
    if (asking === null && rests !== null && rests.ageMs() < rests.forMs) return Promise.resolve(last)
    asking ??= askAnew()
    return Promise.race([asking, setTimeout(patienceMs, undefined, { ref: false }).then(() => last)])
  }
}
