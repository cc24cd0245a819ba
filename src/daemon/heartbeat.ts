import type { Clock } from '../clock.ts'
import type { InstanceProblem } from '../ledger/problems.ts'
import { failureMessage } from '../observe/redact.ts'
import type { LostClaim } from './dispatch/inHand.ts'
import type { UnwrittenOutcome } from './dispatch/outcomeWriter.ts'
import type { Starvation } from './dispatch/starvation.ts'
import type { FailingLoop } from './loop.ts'

/** Says again and again that this instance lives, and knows for how long others will believe it. */
export interface Heartbeat {
  /** One sign of life. @returns after how many milliseconds to give the next */
  runOnce(): Promise<number>
  /**
   * Whether this instance may take on work and begin to send it. Not so long before others may call it dead that what it
   * has claimed could still be on its way to the wire by then.
   */
  mayClaim(): boolean
}

export interface HeartbeatDeps {
  clock: Pick<Clock, 'stopwatch'>
  /** Says that it lives. @returns the number of the reload that an operator has asked for; null where none waits for an answer */
  beat(): Promise<number | null>
  /** Told with each beat until it is answered. */
  onReloadAsked(asked: number): void
}

const beatEveryMs = 3_000

/**
 * How old the last sign of life may be for an instance to begin sending.
 *
 *     0 s   the beat begins: the stopwatch is started. The database reads its clock after that, so others hear of a
 *           moment no earlier than this
 *     8 s   nothing is claimed any more, and no request begins to leave: this is asked as the first byte is written
 *    12 s   others may take the instance for dead (silentMaxMs in src/ledger/instances.ts)
 *
 * The 4 s between are for writing that the rest was never sent, and for clocks that run at different speeds. Beats come
 * every 3 s and give up after 5 s, so that one may be lost without anything standing still.
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

export interface ProblemTellingDeps<Problem> {
  /** Whether an outcome has waited to be written for so long that it matters who holds it up. */
  waitsLong(): boolean
  /** The server's processes of others that are waited for just now. */
  readBlockers(): Promise<number[]>
  /** What is wrong in this instance. */
  problems(blockers: readonly number[]): readonly Problem[]
  /** Says that exactly these stand. */
  tell(problems: readonly Problem[]): Promise<void>
  /** They could not be told; the next round tells them. */
  onFailed(error: unknown): void
}

/** Says where `outboxd status` finds it what is wrong in this instance. Never throws. */
export interface ProblemTelling {
  runOnce(): Promise<void>
  /** Says that nothing is wrong any more: the instance leaves. */
  clear(): Promise<void>
}

export function createProblemTelling<Problem>(deps: ProblemTellingDeps<Problem>): ProblemTelling {
  /** A lock is waited for again and again: in between nobody is seen to hold it. */
  let blockers: number[] = []

  async function look(): Promise<void> {
    const isLong = deps.waitsLong()
    const seen = isLong ? await deps.readBlockers().catch(() => []) : []
    if (!isLong || seen.length > 0) blockers = seen
  }

  return {
    async runOnce() {
      await look()
      await deps.tell(deps.problems(blockers)).catch(deps.onFailed)
    },
    clear: () => deps.tell([]).catch(deps.onFailed),
  }
}

export interface ReloadAnsweringDeps {
  /** Reads the files again, and takes them into force where that is possible. @returns what keeps them from that */
  reload(): Promise<string | null>
  answer(answer: { asked: number; problem: string | null }): Promise<void>
  /** It is asked for again. */
  onFailed(error: unknown): void
}

/** Does what `outboxd reload` asks for, and says what came of it. Never throws. */
export interface ReloadAnswering {
  /** @param asked the number of the question; those that come while one is answered are asked again */
  asked(asked: number): Promise<void>
}

export function createReloadAnswering(deps: ReloadAnsweringDeps): ReloadAnswering {
  let isUnderWay = false

  async function answer(asked: number): Promise<void> {
    await deps.answer({ asked, problem: await deps.reload() })
  }

  return {
    async asked(asked) {
      if (isUnderWay) return
      isUnderWay = true
      await answer(asked).catch(deps.onFailed)
      isUnderWay = false
    },
  }
}

/** A claim's COMMIT may take as long as this without anybody being told. */
const lostToTellMs = 10_000

/** Outcomes are written at once; those that have waited for longer are told. */
const unwrittenToTellMs = 10_000

/** Whether an outcome has waited to be written for so long that somebody is told. Pure. */
export const waitsLong = ({ sinceMs }: UnwrittenOutcome, nowMs: number): boolean => nowMs - sinceMs >= unwrittenToTellMs

/** What is wrong in this instance, as `outboxd status` tells it. Pure. */
export function instanceProblems(
  failing: readonly FailingLoop[],
  claims: readonly LostClaim[],
  starving: readonly Starvation[],
  outcomes: { unwritten: readonly UnwrittenOutcome[]; blockers: readonly number[] },
  nowMs: number,
): InstanceProblem[] {
  const lost = claims.filter(({ sinceMs }) => nowMs - sinceMs >= lostToTellMs)
  const oldestMs = Math.min(...lost.map(({ sinceMs }) => sinceMs))
  return [
    ...failing.map(({ loop, error }) => ({ kind: 'loop_failing' as const, part: loop, detail: failureMessage(error) })),
    ...unwrittenProblem(outcomes, nowMs),
    ...starving.map((starvation) => ({ kind: 'budget_starved' as const, ...starvation })),
    ...(lost.length === 0
      ? []
      : [
          {
            kind: 'claim_lost' as const,
            part: lost.length === 1 ? 'a claim' : `${lost.length} claims`,
            detail: `the COMMIT has gone without an answer since ${new Date(oldestMs).toISOString()}; we have sent none of its records, and give back what it took as soon as the database says what became of it`,
          },
        ]),
  ]
}

/** What the next start would meet. Pure. */
export function filesProblem(broken: string | null): InstanceProblem[] {
  return broken === null ? [] : [{ kind: 'files_broken', part: 'files', detail: broken.replaceAll('\n', '; ') }]
}

/** The files of secrets and certificates as they lie there: those read before are in force. Pure. */
export function credentialsProblem(broken: string | null): InstanceProblem[] {
  if (broken === null) return []
  return [{ kind: 'credentials_broken', part: 'credentials', detail: broken.replaceAll('\n', '; ') }]
}

function unwrittenProblem(
  { unwritten, blockers }: { unwritten: readonly UnwrittenOutcome[]; blockers: readonly number[] },
  nowMs: number,
): InstanceProblem[] {
  const waiting = unwritten.filter((outcome) => waitsLong(outcome, nowMs))
  const [first] = waiting
  if (first === undefined) return []
  const why = first.error === null ? 'the database has not answered' : failureMessage(first.error)
  const whose =
    waiting.length === 1 ? `that of ${first.submissionId}` : `${waiting.length}, first that of ${first.submissionId}`
  const blocked = blockers.length === 0 ? '' : `; held up by the database’s process ${blockers.join(', ')}`
  const detail = `not written since ${new Date(first.sinceMs).toISOString()} (${whose}): ${why}${blocked}`
  return [{ kind: 'loop_failing', part: 'outcomes', detail }]
}
