import { type HeartbeatAnswer, type InstanceProblem, writeHeartbeat } from '../ledger/instances.ts'
import { failureMessage } from '../observe/redact.ts'
import { pluralize } from '../plainText.ts'
import { isTextRefused } from '../postgres/sqlState.ts'
import { formatIsoInstant } from '../time.ts'
import type { DaemonContext } from './context.ts'
import type { Dispatch } from './dispatch/dispatch.ts'
import type { LostClaim } from './dispatch/inFlight.ts'
import type { OutcomeWriter, UnwrittenOutcome } from './dispatch/outcomeWriter.ts'
import type { FailingLoop } from './loop.ts'

const beatEveryMs = 1_000

/**
 * An instance whose last heartbeat is older than this begins no request.
 *
 *      0 s   the beat begins; the time that the database stores is later
 *    3.5 s   nothing is claimed any more, and no request begins to leave
 *      5 s   other instances may take the instance for dead (heartbeatSilenceMaxMs in src/ledger/instances.ts)
 *
 * The 1.5 s between are for requeueing unsent claims, and for clocks of different speeds. A beat times out after 2 s, so
 * one beat may be lost.
 */
const mayClaimMs = 3_500

/**
 * After an outage of the database every heartbeat is old, and this instance may be the first to write again. So an
 * instance rescues records of others only if its own heartbeats have had no gap of 2.5 s for 5 s. Other instances miss
 * a beat of 1 s more, and try again after 0.5 s.
 */
const gapMs = 2_500
const withoutGapMs = 5_000

interface HeartbeatContext {
  clock: Pick<DaemonContext['clock'], 'stopwatch' | 'nowMs'>
  config: Pick<DaemonContext['config'], 'service'>
  log: Pick<DaemonContext['log'], 'warn'>
  databases: Pick<DaemonContext['databases'], 'heartbeats' | 'history' | 'instance'>
  wakeups: Pick<DaemonContext['wakeups'], 'history' | 'orphans'>
}

export class Heartbeat {
  readonly #context: HeartbeatContext
  #ageMs = () => Number.POSITIVE_INFINITY
  #sinceGapMs = () => 0
  #silences = 0
  /** True if the database's clock was set back, until the loop `orphans` has moved the times. */
  isClockBack = false
  /** By how much this host's clock is ahead of the database's; 0 if both may be right. */
  clockLeadMs = 0
  /** True if the ledger had the settings of this instance. */
  hasLedgersSettings = false

  constructor(context: HeartbeatContext) {
    this.#context = context
  }

  /**
   * @param problems of this instance, which the heartbeat writes
   * @throws ServiceMismatch if the ledger belongs to a different service. Then this instance claims no more work
   */
  async runOnce(problems: readonly InstanceProblem[]): Promise<number> {
    const { clock, databases, log, wakeups } = this.#context
    const sinceBegunMs = clock.stopwatch()
    const beforeMs = clock.nowMs()
    const { history, beats, hasOrphans, isClockBack, ...seen } = await this.write(problems)
    if (databases.history.note(history, beats)) wakeups.history.wake()
    if (isClockBack && !this.isClockBack)
      log.warn('database clock was set back: waiting work is done now, not only when the clock has caught up')
    this.isClockBack ||= isClockBack
    if (hasOrphans || isClockBack) wakeups.orphans.wake()
    this.clockLeadMs = computeClockLeadMs(beforeMs, clock.nowMs(), seen.dbMs)
    this.hasLedgersSettings = seen.hasLedgersSettings
    if (this.#ageMs() - sinceBegunMs() > gapMs) this.#sinceGapMs = clock.stopwatch()
    if (!this.mayClaim()) this.#silences += 1
    this.#ageMs = sinceBegunMs
    return beatEveryMs
  }

  /** False if other instances may soon take this instance for dead. Then no record may be sent. */
  mayClaim(): boolean {
    return this.#ageMs() < mayClaimMs
  }

  /** The returned function becomes false with `mayClaim`, and stays false, because others may act meanwhile. */
  watchHeartbeat(): () => boolean {
    const before = this.#silences
    return () => this.#silences === before && this.mayClaim()
  }

  mayRescue(): boolean {
    return this.#ageMs() < gapMs && this.#sinceGapMs() > withoutGapMs
  }

  protected async write(problems: readonly InstanceProblem[]): Promise<HeartbeatAnswer> {
    const { config, databases } = this.#context
    const { heartbeats, history, instance } = databases
    const options = { lookedFor: history.lookFor(), service: config.service }
    try {
      return await writeHeartbeat(heartbeats, instance, { ...options, problems })
    } catch (error) {
      if (problems.length === 0 || !isTextRefused(error)) throw error
      // A text that the database's encoding lacks must not stop the heartbeat.
      const plain = problems.map((each) => ({ ...each, detail: each.detail.replace(/[^\x20-\x7e]/g, '?') }))
      return writeHeartbeat(heartbeats, instance, { ...options, problems: plain })
    }
  }
}

const clockToleranceMs = 5_000

/** @param beforeMs the host's time before the database was asked */
export function computeClockLeadMs(beforeMs: number, afterMs: number, dbMs: number): number {
  const leadMs = Math.max(0, beforeMs - dbMs) + Math.min(0, afterMs - dbMs)
  return Math.abs(leadMs) > clockToleranceMs ? leadMs : 0
}

interface TroubleContext {
  clock: Pick<DaemonContext['clock'], 'nowMs' | 'stopwatch'>
  health: Pick<DaemonContext['health'], 'failing'>
  credentials: Pick<DaemonContext['credentials'], 'broken'>
  host: Pick<DaemonContext['host'], 'fault'>
  log: Pick<DaemonContext['log'], 'fault'>
  databases: Pick<DaemonContext['databases'], 'differences'> & { instance: { host: string } }
}

/** The parts of a daemon that know of its problems. */
export interface TroubleSources {
  heartbeat: Pick<Heartbeat, 'clockLeadMs'>
  dispatch: Pick<Dispatch, 'lostClaims' | 'lateRequests'>
  outcomes: Pick<OutcomeWriter, 'unwritten'>
}

/** Finds what is wrong with this daemon, for its heartbeat. */
export class InstanceProblems {
  readonly #context: TroubleContext
  readonly #sources: TroubleSources
  /** The age of each problem that stands, by kind and part. */
  #ages = new Map<string, () => number>()

  constructor(context: TroubleContext, sources: TroubleSources) {
    this.#context = context
    this.#sources = sources
  }

  find(): InstanceProblem[] {
    const { clock, health, credentials, host, log, databases } = this.#context
    const { heartbeat, dispatch, outcomes } = this.#sources
    const troubles = {
      failing: health.failing(),
      lostClaims: dispatch.lostClaims(),
      lateRequests: dispatch.lateRequests(),
      unwritten: outcomes.unwritten(),
      differences: databases.differences,
      brokenCredentials: credentials.broken(),
      hostFault: host.fault(),
      clockLeadMs: heartbeat.clockLeadMs,
      host: databases.instance.host,
      logFault: log.fault(),
    }
    const before = this.#ages
    this.#ages = new Map()
    return findInstanceProblems(troubles, clock.nowMs()).map((problem) => {
      const name = `${problem.kind} ${problem.part}`
      const age = before.get(name) ?? clock.stopwatch()
      this.#ages.set(name, age)
      return { ...problem, ageMs: Math.round(age()) }
    })
  }
}

/** Lost claims and unwritten outcomes become a problem after this time, because younger ones usually pass. */
const waitToTellMs = 10_000

const lateToTell = 5

export interface InstanceTroubles {
  failing: readonly FailingLoop[]
  lostClaims: readonly Pick<LostClaim, 'sinceMs'>[]
  /** Consecutive requests whose deadline passed before they could leave. */
  lateRequests: number
  unwritten: readonly UnwrittenOutcome[]
  /** In what this instance's settings differ from the ledger's; '' if in nothing. */
  differences: string
  brokenCredentials: string | null
  /** What requests need and this host lacks; null if it lacks nothing. */
  hostFault: string | null
  /** By how much this host's clock is ahead of the database's; 0 if both may be right. */
  clockLeadMs: number
  host: string
  /** Why lines of the log are lost; null if none are. */
  logFault: string | null
}

export function findInstanceProblems(troubles: InstanceTroubles, nowMs: number): Omit<InstanceProblem, 'ageMs'>[] {
  const isOld = ({ sinceMs }: { sinceMs: number }) => nowMs - sinceMs >= waitToTellMs
  const { failing, lateRequests, differences, brokenCredentials } = troubles
  const problems: Omit<InstanceProblem, 'ageMs'>[] = failing.map(({ loop, error }) => ({
    kind: 'loop_failing',
    part: loop,
    detail: failureMessage(error),
  }))
  const unwritten = troubles.unwritten.filter(isOld)
  const [first] = unwritten
  if (first !== undefined) {
    const why = first.error === null ? 'the database has not answered' : failureMessage(first.error)
    const detail = `${pluralize(unwritten.length, 'outcome')} not written, the oldest (of submission ${first.submissionId}) since ${formatIsoInstant(first.sinceMs)}: ${why}`
    problems.push({ kind: 'loop_failing', part: 'outcomes', detail })
  }
  if (lateRequests >= lateToTell) {
    const detail = 'the deadlines of requests pass before they can leave: the database is far away or slow'
    problems.push({ kind: 'budget_starved', part: 'requests', detail })
  }
  const lost = troubles.lostClaims.filter(isOld)
  if (lost.length > 0) {
    const oldestMs = Math.min(...lost.map(({ sinceMs }) => sinceMs))
    const detail = `the database has not answered a COMMIT since ${formatIsoInstant(oldestMs)}. None of the claimed records was sent. The daemon queues them again when the database says whether the COMMIT took effect`
    problems.push({ kind: 'claim_lost', part: pluralize(lost.length, 'claim'), detail })
  }
  if (differences !== '') problems.push({ kind: 'settings_differ', part: 'settings', detail: differences })
  if (brokenCredentials !== null)
    problems.push({ kind: 'credentials_broken', part: 'credentials', detail: inOneLine(brokenCredentials) })
  if (troubles.clockLeadMs !== 0) {
    const seconds = Math.round(Math.abs(troubles.clockLeadMs) / 100) / 10
    const detail = `the clock of ${troubles.host} is ${seconds} s ${troubles.clockLeadMs > 0 ? 'ahead of' : 'behind'} the database’s`
    problems.push({ kind: 'clock_off', part: 'clock', detail })
  }
  if (troubles.hostFault !== null) problems.push({ kind: 'host_failing', part: 'requests', detail: troubles.hostFault })
  if (troubles.logFault !== null) problems.push({ kind: 'log_failing', part: 'log', detail: troubles.logFault })
  return problems
}

const inOneLine = (text: string) => text.replaceAll('\n', '; ')
