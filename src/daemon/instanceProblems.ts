import type { InstanceProblem } from '../ledger/problems.ts'
import { failureMessage } from '../observe/redact.ts'
import type { LostClaim } from './dispatch/inHand.ts'
import type { UnwrittenOutcome } from './dispatch/outcomeWriter.ts'
import type { Starvation } from './dispatch/starvation.ts'
import type { FailingLoop } from './loopHealth.ts'

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
