import type { Answer, AttemptResult, ServiceRequest, Submission } from '../../model.ts'
import { type Resource, resources } from '../../resources.ts'
import { advanceTrack, neverAsked, rarely } from './advanceTrack.ts'
import { decideTrack, type TrackLimits, type TrackReading } from './decideTrack.ts'

export interface TrackDeps {
  limits: TrackLimits
  /** @returns null where it was not to leave any more */
  send(request: ServiceRequest, accessToken: string, mayLeave: () => boolean): Promise<Answer | null>
  /** Whether a 401 to this token says no more than that its time was up. */
  isRefusedForAge(accessToken: string, answer: Answer): boolean
  /** Whether a 401 says that a new token did not help, whichever request was made with it first. */
  isRefusedAgain(accessToken: string, answer: Answer): boolean
  read(answer: Answer, resource: Resource): TrackReading
  /** When to ask next for a transaction that was seen pending at that age, milliseconds from now. */
  nextPollMs(resource: Resource, notDoneAgeMs: number): number
  newKey(): string
}

/** Asks once for a transaction, and works out what the answer means. Writes nothing. */
export async function track(
  deps: TrackDeps,
  submission: Submission,
  accessToken: string,
  isValid: () => boolean,
): Promise<AttemptResult> {
  const transactionId = submission.transactionId ?? submission.id
  const request: ServiceRequest = {
    endpoint: resources[submission.resource].ask,
    body: transactionId,
    idempotencyKey: null,
  }
  const answer = isValid() ? await deps.send(request, accessToken, isValid) : null
  if (answer === null) return { step: neverAsked(submission, 'its slot’s time had run out'), answer, breach: null }
  const verdict = decideTrack(answer, deps.read(answer, submission.resource), {
    transactionId,
    ageMs: submission.ageMs,
    history: {
      unknownForMs: submission.unknownForMs,
      resubmissions: submission.resubmissions,
      fruitless: submission.fruitless,
      repeatedAfter401: submission.repeatedAfter401 || deps.isRefusedAgain(accessToken, answer),
      earlierInDoubt: submission.inDoubt,
      idByPerson: submission.idByPerson,
      refusedPolls: submission.refusedPolls,
    },
    tokenOutlived: deps.isRefusedForAge(accessToken, answer),
    limits: deps.limits,
  })
  const { stuckAfterMs, backoffOldMaxMs } = deps.limits
  const isStuck = stuckAfterMs !== null && submission.ageMs >= stuckAfterMs
  const plannedMs = deps.nextPollMs(submission.resource, submission.ageMs)
  const step = advanceTrack(submission, verdict, {
    nextPollMs: isStuck ? Math.max(plannedMs, backoffOldMaxMs) : plannedMs,
    freshKey: deps.newKey(),
    askedMs: submission.ageMs,
    answeredMs: submission.ageMs + answer.tookMs,
  })
  return { step: isStuck ? rarely(step) : step, answer, breach: 'breach' in verdict ? verdict.breach : null }
}
