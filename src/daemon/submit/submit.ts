import type { Answer, AttemptResult, ServiceRequest, Submission, UncertainPolicy } from '../../model.ts'
import { type Resource, resources } from '../../resources.ts'
import { advanceSubmit, neverSent } from './advanceSubmit.ts'
import { decideSubmit, type SubmitLimits, type SubmitReading } from './decideSubmit.ts'

export interface SubmitDeps {
  policy: UncertainPolicy
  limits: SubmitLimits
  /** @returns null where it was not to leave any more */
  send(request: ServiceRequest, accessToken: string, mayLeave: () => boolean): Promise<Answer | null>
  /** Whether a 401 to this token says no more than that its time was up. */
  isRefusedForAge(accessToken: string, answer: Answer): boolean
  /** Whether a 401 says that a new token did not help, whichever request was made with it first. */
  isRefusedAgain(accessToken: string, answer: Answer): boolean
  read(answer: Answer, resource: Resource): SubmitReading
  firstPollMs(resource: Resource): number
  newKey(): string
}

/**
 * Sends one submission that is committed to the wire, and works out what its answer means. Writes nothing.
 *
 * @param isValid whether its slot may still be used: a process that was stopped in between, or a connection that took too
 * long to come about, must not send
 */
export async function submit(
  deps: SubmitDeps,
  submission: Submission,
  accessToken: string,
  isValid: () => boolean,
): Promise<AttemptResult> {
  const request: ServiceRequest = {
    endpoint: resources[submission.resource].submit,
    body: submission.body,
    idempotencyKey: submission.idempotencyKey,
  }
  const answer = isValid() ? await deps.send(request, accessToken, isValid) : null
  if (answer === null) return { step: neverSent('its slot’s time had run out'), answer, breach: null }
  return interpretAnswer(deps, submission, answer, {
    outlived: deps.isRefusedForAge(accessToken, answer),
    refusedAgain: deps.isRefusedAgain(accessToken, answer),
  })
}

/** Works out what an answer to a submission's POST means. */
export function interpretAnswer(
  deps: Omit<SubmitDeps, 'send' | 'isRefusedForAge' | 'isRefusedAgain'>,
  submission: Submission,
  answer: Answer,
  token = { outlived: false, refusedAgain: false },
): AttemptResult {
  const reading = deps.read(answer, submission.resource)
  const verdict = decideSubmit(answer, reading, {
    history: {
      serverErrors: submission.serverErrors,
      renewedKeys: submission.renewedKeys,
      earlierInDoubt: submission.inDoubt,
      repeatedAfter401: submission.repeatedAfter401 || token.refusedAgain,
      met: submission.met,
    },
    // Only a mapping that sends its own id can be asked about by it.
    policy: deps.policy === 'probe' && !submission.sendsOwnId ? 'hold' : deps.policy,
    tracked: submission.tracked,
    attempt: submission.attempt,
    tokenOutlived: token.outlived,
    limits: deps.limits,
  })
  const step = advanceSubmit(submission, verdict, {
    firstPollMs: deps.firstPollMs(submission.resource),
    freshKey: deps.newKey(),
  })
  return { step, answer, breach: 'breach' in verdict ? verdict.breach : null }
}
