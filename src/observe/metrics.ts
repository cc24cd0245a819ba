import { Registry } from 'prom-client'
import type { Clock } from '../clock.ts'
import {
  type Breach,
  type Outcome,
  type PauseReason,
  type ProblemKind,
  pauseReasons,
  problemKinds,
  type State,
  states,
} from '../model.ts'
import type { Endpoint } from '../resources.ts'
import { createAges } from './ages.ts'
import {
  type certificates,
  countedCodes,
  createInstruments,
  databases,
  finishes,
  type Instruments,
  type loops,
  otherType,
} from './instruments.ts'

/** How a submission ended. */
export type Finish = (typeof finishes)[number]

export type LoopName = (typeof loops)[number]

export type DatabaseName = (typeof databases)[number]

export type CertificateName = (typeof certificates)[number]

/** What the databases say now; a loop reads it and hands it over, so that a scrape never waits for a database. */
export interface Snapshot {
  /** The ledger's clock: what waits is as old as it says, whatever the clock of a host. */
  nowMs: number
  submissions: Record<State, number>
  /** Outbox rows that nobody has taken yet. */
  outboxWaiting: number
  /** Creation of the oldest row that is to be sent, epoch ms; also behind a pause or in backoff. */
  oldestUnsentMs: number | null
  /** Acceptance of the oldest transaction that is still processing, epoch ms. */
  oldestAcceptedMs: number | null
  /** End of the failed or rejected record that has waited longest for a person, epoch ms. */
  oldestForPersonMs: number | null
  pauses: readonly PauseReason[]
  /** How many of each kind stand; a kind that is left out has none. */
  problems: Partial<Record<ProblemKind, number>>
  /** Outcomes that the outbox's rows have yet to be told. */
  reportsDue: number
  /** When the oldest of those came about, epoch ms. */
  oldestReportDueMs: number | null
  rateCapacity: number
  rateAvailable: number
}

/**
 * What operators see through Prometheus (docs/runbook.md says what to do about it). Parts declare the one method that they need.
 *
 * No method throws; a duration that is not a finite number is not observed, and a negative one, from two clocks that
 * disagree, counts as 0.
 */
export interface Metrics {
  requestDone(endpoint: Endpoint, outcome: Outcome, tookMs: number): void
  /** The service sent an error code; codes outside the interface count as `other`. */
  serviceError(code: string): void
  breach(kind: Breach): void
  /** A submission ended. `durationMs` runs from the row's creation; null where the table does not say when that was. */
  finished(outcome: Finish, durationMs: number | null, type: string): void
  /** A transaction ended after this many polls. */
  transactionPolled(polls: number): void
  waitedForSlot(waitMs: number): void
  /** Slots that are left unused because someone else spends from the same budget. */
  heldBack(slots: number): void
  tokenExpires(atMs: number): void
  replayed(count: number): void
  loopSucceeded(loop: LoopName, atMs: number): void
  setSnapshot(snapshot: Snapshot): void
  /** Whether each database answers. */
  setDatabases(up: Record<DatabaseName, boolean>): void
  /** When a certificate ends, epoch ms; null where there is none. */
  certificateExpires(certificate: CertificateName, atMs: number | null): void
  /** The mapping files were read and are in force from now on; their record types are told apart. */
  mappingsLoaded(types: Iterable<string>, atMs: number): void
  /** The mapping files were read and cannot be used: those before stay in force. */
  mappingsBroken(): void
  /** What was let go of the ledger. */
  pruned(pruned: Pruned): void
  /** For how long the oldest that should have gone has been due, milliseconds. */
  pruneOverdue(overdueMs: number): void
  /** For how long the oldest entry has waited that is not in the logs' chain. */
  chainBehind(behindMs: number): void
  /** The text of one scrape, in Prometheus' text format 0.0.4. */
  render(): Promise<string>
}

export interface Pruned {
  submissions: number
  /** Of these the rest is kept. */
  emptied: number
  /** Ids that need not be known any more. */
  forgotten: number
}

export interface MetricsDeps {
  version: string
  clock: Pick<Clock, 'stopwatch'>
}

/** Builds every metric on a registry of its own. */
export function createMetrics({ version, clock }: MetricsDeps): Metrics {
  const registry = new Registry()
  const to = createInstruments(registry)
  to.buildInfo.set({ version }, 1)
  const ages = createAges(clock, to)
  const knownTypes = new Set<string>()
  return {
    requestDone(endpoint, outcome, tookMs) {
      to.requests.inc({ endpoint, outcome })
      ifFinite(tookMs, (ms) => to.requestSeconds.observe({ endpoint, outcome }, ms / 1000))
    },
    serviceError: (code) => to.serviceErrors.inc({ code: countedCodes.find((known) => known === code) ?? 'other' }),
    breach: (kind) => to.contractBreaches.inc({ kind }),
    finished(outcome, durationMs, type) {
      to.finished.inc({ outcome })
      to.finishedByType.inc({ type: knownTypes.has(type) ? type : otherType, outcome })
      ifFinite(durationMs, (ms) => to.submissionSeconds.observe({ outcome }, ms / 1000))
    },
    transactionPolled: (polls) => ifFinite(polls, (count) => to.pollsPerTransaction.observe(count)),
    waitedForSlot: (waitMs) => ifFinite(waitMs, (ms) => to.slotWaitSeconds.observe(ms / 1000)),
    heldBack: (slots) => ifFinite(slots, (count) => to.rateHeldBack.set(count)),
    tokenExpires: (atMs) => ifFinite(atMs, (ms) => to.tokenExpiry.set(ms / 1000)),
    replayed: (count) => ifFinite(count, (replays) => to.replays.inc(replays)),
    loopSucceeded(loop, atMs) {
      ages.loopSucceeded(loop)
      ifFinite(atMs, (ms) => to.loopLastSuccess.set({ loop }, ms / 1000))
    },
    setSnapshot(snapshot) {
      ages.snapshotTaken(snapshot)
      show(to, snapshot)
    },
    setDatabases(up) {
      for (const database of databases) to.databaseUp.set({ database }, up[database] ? 1 : 0)
    },
    certificateExpires: (certificate, atMs) =>
      ifFinite(atMs ?? 0, (ms) => to.certificateExpiry.set({ certificate }, ms / 1000)),
    mappingsLoaded(types, atMs) {
      for (const type of types) {
        knownTypes.add(type)
        for (const outcome of finishes) to.finishedByType.inc({ type, outcome }, 0)
      }
      to.mappingsReloadSuccessful.set(1)
      ifFinite(atMs, (ms) => to.mappingsReloadTime.set(ms / 1000))
    },
    pruned({ submissions, emptied, forgotten }) {
      to.pruned.inc({ what: 'submission' }, submissions)
      to.pruned.inc({ what: 'contents' }, emptied)
      to.pruned.inc({ what: 'id' }, forgotten)
    },
    chainBehind: (behindMs) => ifFinite(behindMs, (ms) => to.chainBehind.set(ms / 1000)),
    pruneOverdue: (overdueMs) => ifFinite(overdueMs, (ms) => to.pruneOverdue.set(ms / 1000)),
    mappingsBroken: () => to.mappingsReloadSuccessful.set(0),
    render() {
      ages.show()
      return registry.metrics()
    },
  }
}

function show(to: Instruments, snapshot: Snapshot): void {
  for (const state of states) ifFinite(snapshot.submissions[state], (count) => to.submissions.set({ state }, count))
  for (const reason of pauseReasons) to.paused.set({ reason }, snapshot.pauses.includes(reason) ? 1 : 0)
  for (const kind of problemKinds) ifFinite(snapshot.problems[kind] ?? 0, (count) => to.problems.set({ kind }, count))
  ifFinite(snapshot.outboxWaiting, (count) => to.outboxWaiting.set(count))
  ifFinite(snapshot.oldestUnsentMs ?? 0, (ms) => to.oldestUnsent.set(ms / 1000))
  ifFinite(snapshot.oldestAcceptedMs ?? 0, (ms) => to.oldestAccepted.set(ms / 1000))
  ifFinite(snapshot.oldestForPersonMs ?? 0, (ms) => to.oldestForPerson.set(ms / 1000))
  ifFinite(snapshot.reportsDue, (count) => to.reportsDue.set(count))
  ifFinite(snapshot.oldestReportDueMs ?? 0, (ms) => to.oldestReportDue.set(ms / 1000))
  ifFinite(snapshot.rateCapacity, (count) => to.rateCapacity.set(count))
  ifFinite(snapshot.rateAvailable, (count) => to.rateAvailable.set(count))
}

/** prom-client throws on what is not a finite number and on counters that go down; a metric is not worth a crash. */
function ifFinite(value: number | null | undefined, use: (atLeastZero: number) => void): void {
  if (typeof value === 'number' && Number.isFinite(value)) use(Math.max(0, value))
}
