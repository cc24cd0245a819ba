import type { LostClaim } from './dispatch/lostClaims.ts'
import type { Starvation } from './dispatch/starvation.ts'
import type { FailingLoop } from './loopHealth.ts'
import { failureWords } from './observe/failureWords.ts'
import type { InstanceProblem } from './store/ledger/instanceProblems.ts'

/** A claim's COMMIT may take as long as this without anybody being told. */
const lostToTellMs = 10_000

/** What is wrong in this instance, as `outboxd status` tells it. Pure. */
export function instanceProblems(
  failing: readonly FailingLoop[],
  claims: readonly LostClaim[],
  starving: readonly Starvation[],
  nowMs: number,
): InstanceProblem[] {
  const lost = claims.filter(({ sinceMs }) => nowMs - sinceMs >= lostToTellMs)
  const oldestMs = Math.min(...lost.map(({ sinceMs }) => sinceMs))
  return [
    ...failing.map(({ loop, error }) => ({ kind: 'loop_failing' as const, part: loop, detail: failureWords(error) })),
    ...starving.map((starvation) => ({ kind: 'budget_starved' as const, ...starvation })),
    ...(lost.length === 0
      ? []
      : [
          {
            kind: 'claim_lost' as const,
            part: lost.length === 1 ? 'a claim' : `${lost.length} claims`,
            detail: `the COMMIT has gone without an answer since ${new Date(oldestMs).toISOString()}; nothing of it was sent, and what it took is given back as soon as the database says what became of it`,
          },
        ]),
  ]
}
