import { randomUUID } from 'node:crypto'
import type { Config } from '../../config.ts'
import type { ClaimedQuestion } from '../../model/dispatch.ts'
import type { EventCause } from '../../model/eventCauses.ts'
import { type Answer, isHostFault } from '../../model/service.ts'
import {
  type AttemptResult,
  type Change,
  mayEarlierHaveArrived,
  type Submission,
  type SubmissionStep,
} from '../../model/submission.ts'
import type { Telemetry } from '../../observe/telemetry.ts'
import { type Resource, serviceResources } from '../../resources.ts'
import type { ServiceClient } from '../../service/client.ts'
import { readGetAnswer } from '../../service/readAnswer.ts'
import type { TokenRefusals } from '../../service/tokens.ts'
import type { AnsweredQuestion } from '../dispatch/interpretAttempt.ts'
import type { PollDelays } from '../pollPlanner.ts'
import { decideTrack, oldTransactionBackoffMaxMs, type TrackVerdict, unknownPollsMin } from './decideTrack.ts'

interface TrackContext {
  config: Pick<Config, 'unavailablePauseMs' | 'stuckAfterMs'>
  client: Pick<ServiceClient, 'send'>
  telemetry: Pick<Telemetry, 'traceparent'>
}

interface Asking {
  accessToken: string
  mayLeave(): boolean
  /** Undefined for a question about no record of ours, or without tracing. */
  traceparent?: string | undefined
}

/** Asks for transactions and decides what the answers mean. Writes nothing. */
export class Track {
  readonly #context: TrackContext
  readonly #tokens: TokenRefusals
  readonly #planner: PollDelays

  constructor(context: TrackContext, tokens: TokenRefusals, planner: PollDelays) {
    this.#context = context
    this.#tokens = tokens
    this.#planner = planner
  }

  /** Polls the transaction of a record once. */
  async poll(submission: Submission, accessToken: string, mayLeave: () => boolean): Promise<AttemptResult> {
    const { stuckAfterMs, unavailablePauseMs } = this.#context.config
    const transactionId = submission.transactionId ?? submission.id
    const traceparent = this.#context.telemetry.traceparent(submission)
    const answer = await this.#get(submission.resource, transactionId, { accessToken, mayLeave, traceparent })
    const isStuck = stuckAfterMs !== null && submission.ageMs >= stuckAfterMs
    const planned = (step: SubmissionStep) => (isStuck ? markPollAsRare(step) : step)
    if (answer === null)
      return { step: planned(stepOfUnsentPoll(submission, 'its deadline had passed')), answer, breach: null }
    if (isHostFault(answer))
      return { step: planned(stepOfUnsentPoll(submission, answer.detail)), answer: null, breach: null }
    const verdict = decideTrack(answer, readGetAnswer(answer, submission.resource), {
      transactionId,
      ageMs: submission.ageMs,
      history: {
        ...submission,
        repeatedAfter401: this.#tokens.isRefusedAgain(accessToken, answer, 'GET', submission.id),
      },
      hasTokenExpired: this.#tokens.isRefusedForAge(accessToken, answer),
      unavailableMs: unavailablePauseMs,
    })
    const plannedMs = this.#planner.nextPollDelayMs(submission.resource, submission.ageMs)
    const step = toTrackStep(submission, verdict, {
      nextPollDelayMs: isStuck ? Math.max(plannedMs, oldTransactionBackoffMaxMs) : plannedMs,
      freshKey: randomUUID(),
      ageAskedMs: submission.ageMs,
      ageAnsweredMs: submission.ageMs + answer.tookMs,
    })
    return { step: planned(step), answer, breach: 'breach' in verdict ? verdict.breach : null }
  }

  /** Asks for a transaction that the service knows, as a trial of the breaker. */
  async ask(
    { resource, transactionId }: ClaimedQuestion,
    accessToken: string,
    mayLeave: () => boolean,
  ): Promise<AnsweredQuestion> {
    const answer = await this.#get(resource, transactionId, { accessToken, mayLeave })
    if (answer === null || isHostFault(answer)) return { answer: null, pause: null, mayTokenBeOld: false }
    const mayTokenBeOld = !this.#tokens.isRefusedAgain(accessToken, answer, 'GET', transactionId)
    const { transaction, pause } = readGetAnswer(answer, resource)
    // A code beside a transaction, such as E003, says why that transaction failed, and that the service works.
    return { answer, pause: transaction === null ? pause : null, mayTokenBeOld }
  }

  async #get(
    resource: Resource,
    transactionId: string,
    { accessToken, mayLeave, traceparent }: Asking,
  ): Promise<Answer | null> {
    if (!mayLeave()) return null
    const request = { endpoint: serviceResources[resource].ask, body: transactionId, idempotencyKey: null, traceparent }
    return this.#context.client.send(request, accessToken, mayLeave)
  }
}

const probeUnknownMs = 60_000

export function toTrackStep(
  submission: Submission,
  verdict: TrackVerdict,
  now: { nextPollDelayMs: number; freshKey: string; ageAskedMs: number; ageAnsweredMs: number },
): SubmissionStep {
  const polled = { polls: submission.polls + 1, fruitless: 0, repeatedAfter401: false }
  const stay = stayAsked(submission)
  const answered = { ...polled, openedTimes: 0 }
  const done = { ...answered, doneMs: Math.round(now.ageAnsweredMs) }
  const step = (change: Change, cause: EventCause, message: string | null = null): SubmissionStep => ({
    change,
    cause,
    message,
    pause: null,
  })
  switch (verdict.kind) {
    case 'completed':
      return step({ ...done, state: 'completed', result: verdict.result }, 'completed')
    case 'failed':
      return step(
        {
          ...done,
          state: 'failed',
          errorCode: verdict.code,
          error: verdict.reason,
          // If an operator named the transaction, it may be another record's.
          mayHaveArrived: mayEarlierHaveArrived(submission) || submission.idByPerson,
        },
        'failed',
        verdict.reason,
      )
    case 'lost': {
      if (submission.probing) return notKnown(submission)
      const lost = { doneMs: null, errorCode: null, error: verdict.reason }
      return step(
        verdict.idByPerson
          ? { ...polled, ...lost, state: 'uncertain', transactionId: null }
          : { ...polled, ...lost, state: 'failed', mayHaveArrived: true },
        'lost',
        verdict.reason,
      )
    }
    case 'uncertain':
      return step(
        { ...done, state: 'uncertain', errorCode: verdict.code, error: verdict.reason },
        'uncertain',
        verdict.reason,
      )
    case 'pending':
      return step(
        {
          ...answered,
          ...stay,
          state: 'accepted',
          unknown: false,
          pollInMs: now.nextPollDelayMs,
          notDoneMs: Math.round(now.ageAskedMs),
        },
        submission.probing ? 'had_arrived' : 'pending',
        submission.probing ? 'the service knows the record, so it had arrived' : null,
      )
    case 'ask-again':
      if (submission.probing && verdict.unknown && isLongUnknown(submission)) return notKnown(submission)
      return step(
        {
          ...polled,
          ...stay,
          ...(verdict.foreignStatus !== undefined && { foreignStatus: verdict.foreignStatus }),
          pollInMs: verdict.afterMs,
          unknown: verdict.unknown,
          // Counts 404s in a row from 1.
          fruitless: verdict.unknown && submission.unknownForMs === null ? 1 : submission.fruitless + 1,
        },
        'asked_again',
        verdict.reason,
      )
    case 'resubmit':
      return step(
        {
          ...answered,
          state: 'queued',
          dueInMs: verdict.afterMs,
          resubmissions: submission.resubmissions + 1,
          ...(verdict.code === 'E003' && { answeredUnavailable: true }),
          transactionId: null,
          errorCode: verdict.code,
          error: verdict.reason,
          notDoneMs: null,
          idempotencyKey: now.freshKey,
        },
        'resubmitted',
        verdict.reason,
      )
    case 'new-token':
      return step(
        {
          ...stay,
          ...(!verdict.ofAge && { repeatedAfter401: true }),
        },
        'new_token',
        verdict.reason,
      )
    case 'pause':
      return {
        // While polls go on, one that is refused is not asked again at once.
        change: { ...stay, pollInMs: refusedAgainMs, repeatedAfter401: false },
        cause: 'paused',
        message: `pause ${verdict.pause.reason}: ${verdict.pause.detail}`,
        pause: verdict.pause,
      }
    default:
      return verdict satisfies never
  }
}

/** What opens the breaker is put off for longer. */
const refusedAgainMs = 5_000

const isLongUnknown = ({ unknownForMs, fruitless }: Submission) =>
  unknownForMs !== null && unknownForMs > probeUnknownMs && fruitless >= unknownPollsMin

/**
 * Ends a probe for an unknown id. If the id is our own, the request never arrived. If the id is from Location, the
 * request was performed.
 */
function notKnown(submission: Submission): SubmissionStep {
  const { id, transactionId } = submission
  const polls = submission.polls + 1
  if (transactionId === null || transactionId === id)
    return {
      change: { state: 'queued', dueInMs: 0, transactionId: null, polls },
      cause: 'had_not_arrived',
      message: 'the service does not know the record, so it had not arrived',
      pause: null,
    }
  const error = `the service answered that it performed the request, but does not know ${transactionId}, which its Location named`
  return {
    change: { state: 'uncertain', transactionId: null, polls, doneMs: null, errorCode: null, error },
    cause: 'lost',
    message: error,
    pause: null,
  }
}

function markPollAsRare(step: SubmissionStep): SubmissionStep {
  return 'pollInMs' in step.change ? { ...step, change: { ...step.change, polledRarely: true } } : step
}

export function stepOfUnsentPoll(submission: Submission, why: string): SubmissionStep {
  return {
    change: stayAsked(submission),
    cause: 'never_asked',
    message: `never asked: ${why}`,
    pause: null,
  }
}

function stayAsked(submission: Submission): Change & { state: 'accepted' | 'sending' } {
  return {
    state: submission.probing ? 'sending' : 'accepted',
    transactionId: submission.transactionId ?? submission.id,
    pollInMs: 0,
    polledRarely: false,
    unknown: submission.unknownForMs !== null,
  }
}
