import type { Clock } from '../clock.ts'
import type { InstanceProblem } from '../ledger/instances.ts'
import { failureMessage } from '../observe/redact.ts'
import type { LostClaim } from './dispatch/inFlight.ts'
import type { UnwrittenOutcome } from './dispatch/outcomeWriter.ts'
import type { FailingLoop } from './loop.ts'

export interface Heartbeat {
  runOnce(): Promise<number>
  /** False when other instances may call this one dead, so that no request may leave. */
  mayClaim(): boolean
}

export interface HeartbeatDeps {
  clock: Pick<Clock, 'stopwatch'>
  /** @returns the number of the reload that waits for an answer */
  beat(): Promise<number | null>
  onReloadAsked(asked: number): void
}

const beatEveryMs = 3_000

/**
 * The maximum age of the last heartbeat for an instance to begin sending.
 *
 *      0 s   the beat begins; the database reads its clock later, so others see no earlier time
 *      8 s   nothing is claimed any more, and no request begins to leave
 *     12 s   the others may take the instance for dead (heartbeatSilenceMaxMs in src/ledger/instances.ts)
 *
 * The 4 s between are for writing what was not sent, and for clocks of different speeds. A beat times out after 5 s, so
 * one may be lost.
 */
const mayClaimMs = 8_000

export function createHeartbeat({ clock, beat, onReloadAsked }: HeartbeatDeps): Heartbeat {
  let ageMs = () => Number.POSITIVE_INFINITY
  return {
    async runOnce() {
      const sinceBegunMs = clock.stopwatch()
      const reloadAsked = await beat()
      ageMs = sinceBegunMs
      if (reloadAsked !== null) onReloadAsked(reloadAsked)
      return beatEveryMs
    },
    mayClaim: () => ageMs() < mayClaimMs,
  }
}

export interface ProblemReporterDeps<Problem> {
  waitsLong(): boolean
  readBlockers(): Promise<number[]>
  problems(blockers: readonly number[]): readonly Problem[]
  tell(problems: readonly Problem[]): Promise<void>
  onFailed(error: unknown): void
}

export type ProblemReporter = ReturnType<typeof createProblemReporter>

/** Writes the problems that `outboxd status` shows. Never throws, because the next round tries again. */
export function createProblemReporter<Problem>(deps: ProblemReporterDeps<Problem>) {
  /** Kept while an outcome waits, because between two tries Postgres shows no blocking session. */
  let blockers: number[] = []
  let underWay: Promise<void> | null = null

  async function tellOnce(): Promise<void> {
    const isLong = deps.waitsLong()
    const seen = isLong ? await deps.readBlockers().catch(() => []) : []
    if (!isLong || seen.length > 0) blockers = seen
    await deps.tell(deps.problems(blockers)).catch(deps.onFailed)
  }

  return {
    /** Skips a round while one runs, because a slow round must not overwrite a later one. */
    runOnce(): Promise<void> {
      underWay ??= tellOnce().finally(() => {
        underWay = null
      })
      return underWay
    },
    async clear(): Promise<void> {
      await underWay
      await deps.tell([]).catch(deps.onFailed)
    },
  }
}

export interface ReloadResponderDeps {
  reload(): Promise<string | null>
  answer(answer: { asked: number; problem: string | null }): Promise<void>
  onFailed(error: unknown): void
}

export function createReloadResponder({ reload, answer, onFailed }: ReloadResponderDeps) {
  let isUnderWay = false
  return async (asked: number): Promise<void> => {
    if (isUnderWay) return
    isUnderWay = true
    await reload()
      .then((problem) => answer({ asked, problem }))
      .catch(onFailed)
    isUnderWay = false
  }
}

const lostToTellMs = 10_000

const unwrittenToTellMs = 10_000

export const isOutcomeUnwrittenLong = ({ sinceMs }: UnwrittenOutcome, nowMs: number): boolean =>
  nowMs - sinceMs >= unwrittenToTellMs

const lapsedToTell = 5

const permitsLapse: InstanceProblem = {
  kind: 'budget_starved',
  part: 'permits',
  detail: 'slots expire before their requests can leave: the ledger’s database is far away or slow',
}

export function instanceProblems(
  failing: readonly FailingLoop[],
  claims: readonly LostClaim[],
  lapsedPermits: number,
  outcomes: { unwritten: readonly UnwrittenOutcome[]; blockers: readonly number[] },
  nowMs: number,
): InstanceProblem[] {
  const lost = claims.filter(({ sinceMs }) => nowMs - sinceMs >= lostToTellMs)
  const oldestMs = Math.min(...lost.map(({ sinceMs }) => sinceMs))
  return [
    ...failing.map(({ loop, error }) => ({ kind: 'loop_failing' as const, part: loop, detail: failureMessage(error) })),
    ...unwrittenProblem(outcomes, nowMs),
    ...(lapsedPermits < lapsedToTell ? [] : [permitsLapse]),
    ...(lost.length === 0
      ? []
      : [
          {
            kind: 'claim_lost' as const,
            part: lost.length === 1 ? 'a claim' : `${lost.length} claims`,
            detail: `the COMMIT has had no answer since ${new Date(oldestMs).toISOString()}. None of the records was sent: the daemon gives them back as soon as the database says whether the COMMIT took effect`,
          },
        ]),
  ]
}

export function brokenFilesProblem(broken: string | null): InstanceProblem[] {
  return broken === null ? [] : [{ kind: 'files_broken', part: 'files', detail: broken.replaceAll('\n', '; ') }]
}

export function brokenCredentialsProblem(broken: string | null): InstanceProblem[] {
  if (broken === null) return []
  return [{ kind: 'credentials_broken', part: 'credentials', detail: broken.replaceAll('\n', '; ') }]
}

function unwrittenProblem(
  { unwritten, blockers }: { unwritten: readonly UnwrittenOutcome[]; blockers: readonly number[] },
  nowMs: number,
): InstanceProblem[] {
  const waiting = unwritten.filter((outcome) => isOutcomeUnwrittenLong(outcome, nowMs))
  const [first] = waiting
  if (first === undefined) return []
  const why = first.error === null ? 'the database has not answered' : failureMessage(first.error)
  const whose =
    waiting.length === 1 ? `that of ${first.submissionId}` : `${waiting.length}, first that of ${first.submissionId}`
  const blocked = blockers.length === 0 ? '' : `; blocked by the database’s process ${blockers.join(', ')}`
  const detail = `not written since ${new Date(first.sinceMs).toISOString()} (${whose}): ${why}${blocked}`
  return [{ kind: 'loop_failing', part: 'outcomes', detail }]
}
