import type { ClaimedSubmission } from '../../model/dispatch.ts'
import type { EventCause } from '../../model/eventCauses.ts'
import { type Answer, isHostFault, isSameId, type RequestDeps, type ServiceRequest } from '../../model/service.ts'
import type {
  AttemptResult,
  Change,
  ServerErrorPolicy,
  Submission,
  SubmissionStep,
  UncertainPolicy,
} from '../../model/submission.ts'
import { type Resource, serviceResources } from '../../resources.ts'
import { decideSubmit, type SubmitVerdict } from './decideSubmit.ts'

export interface SubmitDeps extends RequestDeps {
  policy: UncertainPolicy
  serverErrorPolicy: ServerErrorPolicy
  firstPollMs(resource: Resource): number
}

/** Sends one claimed submission and decides what its answer means. Writes nothing. */
export async function submit(
  deps: SubmitDeps,
  submission: Submission & Pick<ClaimedSubmission, 'body'>,
  accessToken: string,
  isValid: () => boolean,
): Promise<AttemptResult> {
  const request: ServiceRequest = {
    endpoint: serviceResources[submission.resource].submit,
    body: submission.body,
    idempotencyKey: submission.idempotencyKey,
  }
  const answer = isValid() ? await deps.send(request, accessToken, isValid) : null
  if (answer === null) return { step: stepOfUnsentAttempt('its deadline had passed'), answer, breach: null }
  if (isHostFault(answer)) return { step: stepOfUnsentAttempt(answer.detail), answer: null, breach: null }
  return interpretSubmitAnswer(deps, submission, answer, {
    outlived: deps.isRefusedForAge(accessToken, answer),
    refusedAgain: deps.isRefusedAgain(accessToken, answer, submission.id),
  })
}

export function interpretSubmitAnswer(
  deps: Omit<SubmitDeps, 'send' | 'isRefusedForAge' | 'isRefusedAgain'>,
  submission: Submission,
  answer: Answer,
  token = { outlived: false, refusedAgain: submission.repeatedAfter401 },
): AttemptResult {
  const reading = deps.read(answer, submission.resource)
  const verdict = decideSubmit(answer, reading, {
    history: {
      ...submission,
      earlierInDoubt: submission.inDoubt,
      repeatedAfter401: token.refusedAgain,
    },
    // `probe` asks for the submission's own id, which the service knows only if the mapping sends that id.
    policy: deps.policy === 'probe' && !submission.sendsOwnId ? 'hold' : deps.policy,
    serverErrorPolicy: deps.serverErrorPolicy,
    tracked: submission.tracked,
    attempt: submission.attempt,
    hasTokenExpired: token.outlived,
  })
  const step = toSubmitStep(submission, verdict, {
    firstPollMs: deps.firstPollMs(submission.resource),
    freshKey: deps.newKey(),
  })
  return { step, answer, breach: 'breach' in verdict ? verdict.breach : null }
}

/** The wait before a probe, because the request may still be on its way. */
const probeAfterMs = 5_000

export function toSubmitStep(
  submission: Submission,
  verdict: SubmitVerdict,
  { firstPollMs, freshKey }: { firstPollMs: number; freshKey: string },
): SubmissionStep {
  const step = (change: Change, cause: EventCause, message: string | null = null): SubmissionStep => ({
    change,
    cause,
    message,
    pause: null,
  })
  const answered = { repeatedAfter401: false }
  const earlierMay = submission.inDoubt || submission.serverErrors > 0
  const neverPolled = { polls: 0, fruitless: 0, openedTimes: 0, notDoneMs: null }
  const accepted = (transactionId: string) => {
    const known = { ...answered, transactionId }
    if (!submission.tracked)
      return step({ ...known, state: 'completed', doneMs: null, result: null }, 'accepted', 'accepted, not tracked')
    const poll = { pollInMs: firstPollMs, polledRarely: false, unknown: false }
    return step({ ...known, ...neverPolled, state: 'accepted', ...poll }, 'accepted')
  }
  switch (verdict.kind) {
    case 'accepted':
      return accepted(verdict.transactionId)
    case 'rejected':
      return step(
        { ...answered, ...toldFields(verdict), state: 'rejected', mayHaveArrived: verdict.leftTrace || earlierMay },
        'rejected',
        verdict.reason,
      )
    case 'failed':
      return step(
        { ...answered, ...toldFields(verdict), state: 'failed', doneMs: null, mayHaveArrived: earlierMay },
        'failed',
        verdict.reason,
      )
    case 'uncertain':
      return {
        ...step({ ...answered, ...toldFields(verdict), state: 'uncertain', doneMs: null }, 'uncertain', verdict.reason),
        pause: verdict.pause ?? null,
      }
    case 'renew-key': {
      const renewed = { idempotencyKey: freshKey, renewedKeys: submission.renewedKeys + 1 }
      return {
        ...step({ ...answered, ...renewed, state: 'queued', dueInMs: 0 }, 'new_key', verdict.reason),
        pause: verdict.pause,
      }
    }
    case 'retry': {
      // The server may have stored the record before it failed, so a later E002 must not get a new key.
      const tried = { serverErrors: submission.serverErrors + 1, inDoubt: true }
      return step({ ...answered, ...tried, state: 'queued', dueInMs: verdict.afterMs }, 'retried', verdict.reason)
    }
    case 'resend':
      return step({ ...answered, state: 'queued', dueInMs: verdict.afterMs, inDoubt: true }, 'resent', verdict.reason)
    case 'probe':
      // Location has the submission's own id. The record counts as accepted, because a probe could lead to another
      // send.
      if (verdict.transactionId !== null && isSameId(verdict.transactionId, submission.id))
        return accepted(verdict.transactionId)
      return step(
        {
          ...answered,
          state: 'sending',
          transactionId: verdict.transactionId ?? submission.id,
          pollInMs: verdict.transactionId === null ? probeAfterMs : firstPollMs,
          polledRarely: false,
          unknown: false,
          inDoubt: true,
        },
        'probed',
        verdict.reason,
      )
    case 'new-token':
      return step(
        { state: 'queued', dueInMs: 0, ...(!verdict.ofAge && { repeatedAfter401: true }) },
        'new_token',
        verdict.reason,
      )
    case 'pause':
      return {
        change: {
          ...answered,
          state: 'queued',
          dueInMs: 0,
          ...(verdict.mayHaveArrived && { inDoubt: true }),
          ...(verdict.pause.reason === 'unavailable' && { answeredUnavailable: true }),
        },
        cause: 'paused',
        message: `pause ${verdict.pause.reason}: ${verdict.pause.detail}`,
        pause: verdict.pause,
      }
    default:
      return verdict satisfies never
  }
}

const toldFields = ({ code, reason }: { code: string | null; reason: string }) => ({ errorCode: code, error: reason })

export function stepOfUnsentAttempt(why: string): SubmissionStep {
  return { change: { state: 'queued', dueInMs: 0 }, cause: 'never_sent', message: `never sent: ${why}`, pause: null }
}
