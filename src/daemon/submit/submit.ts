import { randomUUID } from 'node:crypto'
import type { Config } from '../../config.ts'
import type { ClaimedSubmission } from '../../model/dispatch.ts'
import type { EventCause } from '../../model/eventCauses.ts'
import { type Answer, isHostFault, isSameId, type ServiceRequest } from '../../model/service.ts'
import {
  type AttemptResult,
  type Change,
  mayEarlierHaveArrived,
  type Submission,
  type SubmissionStep,
} from '../../model/submission.ts'
import type { Telemetry } from '../../observe/telemetry.ts'
import { serviceResources } from '../../resources.ts'
import type { ServiceClient } from '../../service/client.ts'
import { readSubmitAnswer } from '../../service/readAnswer.ts'
import type { TokenRefusals } from '../../service/tokens.ts'
import type { PollDelays } from '../pollPlanner.ts'
import { decideSubmit, type SubmitVerdict } from './decideSubmit.ts'

interface SubmitContext {
  config: Pick<Config, 'uncertainPolicy' | 'serverErrorPolicy'>
  client: Pick<ServiceClient, 'send'>
  telemetry: Pick<Telemetry, 'traceparent'>
}

/** Sends claimed submissions and decides what the answers mean. Writes nothing. */
export class Submit {
  readonly #context: SubmitContext
  readonly #tokens: TokenRefusals
  readonly #planner: PollDelays

  constructor(context: SubmitContext, tokens: TokenRefusals, planner: PollDelays) {
    this.#context = context
    this.#tokens = tokens
    this.#planner = planner
  }

  /** @param mayLeave called just before the first byte leaves */
  async send(
    submission: Submission & Pick<ClaimedSubmission, 'body'>,
    accessToken: string,
    mayLeave: () => boolean,
  ): Promise<AttemptResult> {
    const request: ServiceRequest = {
      endpoint: serviceResources[submission.resource].submit,
      body: submission.body,
      idempotencyKey: submission.idempotencyKey,
      traceparent: this.#context.telemetry.traceparent(submission),
    }
    const answer = mayLeave() ? await this.#context.client.send(request, accessToken, mayLeave) : null
    if (answer === null) return { step: stepOfUnsentAttempt('its deadline had passed'), answer, breach: null }
    if (isHostFault(answer)) return { step: stepOfUnsentAttempt(answer.detail), answer: null, breach: null }
    return this.interpretAnswer(submission, answer, {
      outlived: this.#tokens.isRefusedForAge(accessToken, answer),
      refusedAgain: this.#tokens.isRefusedAgain(accessToken, answer, 'POST', submission.id),
    })
  }

  interpretAnswer(
    submission: Submission,
    answer: Answer,
    token = { outlived: false, refusedAgain: submission.repeatedAfter401 },
  ): AttemptResult {
    const { uncertainPolicy, serverErrorPolicy } = this.#context.config
    const verdict = decideSubmit(answer, readSubmitAnswer(answer, submission.resource), {
      history: { ...submission, repeatedAfter401: token.refusedAgain },
      // `probe` asks for the submission's own id, which the service knows only if the mapping sends that id.
      policy: uncertainPolicy === 'probe' && !submission.sendsOwnId ? 'hold' : uncertainPolicy,
      serverErrorPolicy,
      tracked: submission.tracked,
      attempt: submission.attempt,
      hasTokenExpired: token.outlived,
    })
    const step = toSubmitStep(submission, verdict, {
      firstPollMs: this.#planner.nextPollDelayMs(submission.resource, 0),
      freshKey: randomUUID(),
    })
    return { step, answer, breach: 'breach' in verdict ? verdict.breach : null }
  }
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
  const earlierMay = mayEarlierHaveArrived(submission)
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
      const renewed = {
        idempotencyKey: freshKey,
        ...(verdict.gaveId
          ? { resubmissions: submission.resubmissions + 1 }
          : { renewedKeys: submission.renewedKeys + 1 }),
        ...(verdict.pause?.reason === 'unavailable' && { answeredUnavailable: true }),
      }
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
          // Counts once: a pause uses up none of the tries.
          ...(verdict.gaveId && { resubmissions: Math.max(submission.resubmissions, 1) }),
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
