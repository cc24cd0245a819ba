import type { Clock } from '../clock.ts'
import type { InstanceProblem } from '../ledger/instances.ts'
import { failureMessage } from '../observe/redact.ts'
import { pluralize } from '../plainText.ts'
import { formatIsoInstant } from '../time.ts'
import type { LostClaim } from './dispatch/inFlight.ts'
import type { UnwrittenOutcome } from './dispatch/outcomeWriter.ts'
import type { FailingLoop } from './loop.ts'

export type Heartbeat = ReturnType<typeof createHeartbeat>

export interface HeartbeatDeps {
  clock: Pick<Clock, 'stopwatch'>
  beat(): Promise<void>
}

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

export function createHeartbeat({ clock, beat }: HeartbeatDeps) {
  let ageMs = () => Number.POSITIVE_INFINITY
  let sinceGapMs = () => 0
  let silences = 0
  const mayClaim = (): boolean => ageMs() < mayClaimMs

  return {
    async runOnce(): Promise<number> {
      const sinceBegunMs = clock.stopwatch()
      await beat()
      if (ageMs() - sinceBegunMs() > gapMs) sinceGapMs = clock.stopwatch()
      if (!mayClaim()) silences += 1
      ageMs = sinceBegunMs
      return beatEveryMs
    },
    /** False if other instances may soon take this instance for dead. Then no record may be sent. */
    mayClaim,
    /** The returned function becomes false with `mayClaim`, and stays false, because others may act meanwhile. */
    watchHeartbeat(): () => boolean {
      const before = silences
      return () => silences === before && mayClaim()
    },
    mayRescue: (): boolean => ageMs() < gapMs && sinceGapMs() > withoutGapMs,
  }
}

export interface ProblemReporterDeps<Problem> {
  problems(): readonly Problem[]
  replaceProblems(problems: readonly Problem[]): Promise<void>
  onFailed(error: unknown): void
}

export type ProblemReporter = ReturnType<typeof createProblemReporter>

/** Never throws, because the next round tries again. */
export function createProblemReporter<Problem>({ problems, replaceProblems, onFailed }: ProblemReporterDeps<Problem>) {
  let underWay: Promise<void> | null = null
  let areNoneWritten = false

  async function write(): Promise<void> {
    const standing = problems()
    if (standing.length === 0 && areNoneWritten) return
    areNoneWritten = false
    await replaceProblems(standing)
    areNoneWritten = standing.length === 0
  }

  return {
    /** Joins a write that is under way, because a slow write must not overwrite the problems of a later one. */
    runOnce(): Promise<void> {
      underWay ??= write()
        .catch(onFailed)
        .finally(() => {
          underWay = null
        })
      return underWay
    },
    async clear(): Promise<void> {
      await underWay
      await replaceProblems([]).catch(onFailed)
    },
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
  /** Why lines of the log are lost; null if none are. */
  logFault: string | null
}

export function findInstanceProblems(troubles: InstanceTroubles, nowMs: number): InstanceProblem[] {
  const isOld = ({ sinceMs }: { sinceMs: number }) => nowMs - sinceMs >= waitToTellMs
  const { failing, lateRequests, differences, brokenCredentials } = troubles
  const problems: InstanceProblem[] = failing.map(({ loop, error }) => ({
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
  if (troubles.hostFault !== null) problems.push({ kind: 'host_failing', part: 'requests', detail: troubles.hostFault })
  if (troubles.logFault !== null) problems.push({ kind: 'log_failing', part: 'log', detail: troubles.logFault })
  return problems
}

const inOneLine = (text: string) => text.replaceAll('\n', '; ')
