import { randomUUID } from 'node:crypto'
import type { ClaimedQuestion, ClaimedSubmission } from '../model/dispatch.ts'
import { type Answer, isHostFault, type ServiceRequest } from '../model/service.ts'
import type { AttemptResult, Submission, SubmissionStep } from '../model/submission.ts'
import { type Resource, serviceResources } from '../resources.ts'
import { readGetAnswer, readSubmitAnswer } from '../service/readAnswer.ts'
import type { TokenRefusals } from '../service/tokens.ts'
import type { DaemonContext } from './context.ts'
import { decideSubmit, stepOfUnsentAttempt, toSubmitStep } from './decideSubmit.ts'
import { decideTrack, oldTransactionBackoffMaxMs, stepOfUnsentPoll, toTrackStep } from './decideTrack.ts'
import type { AnsweredQuestion } from './dispatch/interpretAttempt.ts'
import type { PollDelays } from './pollPlanner.ts'

/** How a request may be sent. `mayLeave` is called just before the first byte leaves. */
interface Permission {
  accessToken: string
  mayLeave(): boolean
}

/** Sends one request and decides what its answer means for the record. Writes nothing. */
export class Attempts {
  readonly #daemon: DaemonContext
  readonly #tokens: TokenRefusals
  readonly #planner: PollDelays

  constructor(daemon: DaemonContext, tokens: TokenRefusals, planner: PollDelays) {
    this.#daemon = daemon
    this.#tokens = tokens
    this.#planner = planner
  }

  /** Sends a claimed record (stage `submit`). */
  async submit(submission: Submission & Pick<ClaimedSubmission, 'body'>, may: Permission): Promise<AttemptResult> {
    const request: ServiceRequest = {
      endpoint: serviceResources[submission.resource].submit,
      body: submission.body,
      idempotencyKey: submission.idempotencyKey,
      traceparent: this.#daemon.telemetry.traceparent(submission),
    }
    const sent = await this.#send(request, may)
    if (sent.answer === null) return unsent(stepOfUnsentAttempt(sent.why))
    const { answer } = sent
    return this.interpretAnswer(submission, answer, {
      outlived: this.#tokens.isRefusedForAge(may.accessToken, answer),
      refusedAgain: this.#tokens.isRefusedAgain(may.accessToken, answer, 'POST', submission.id),
    })
  }

  interpretAnswer(
    submission: Submission,
    answer: Answer,
    token = { outlived: false, refusedAgain: submission.repeatedAfter401 },
  ): AttemptResult {
    const { uncertainPolicy, serverErrorPolicy } = this.#daemon.config
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

  /** Polls the transaction of a record (stage `track`). */
  async poll(submission: Submission, may: Permission): Promise<AttemptResult> {
    const { stuckAfterMs, unavailablePauseMs } = this.#daemon.config
    const transactionId = submission.transactionId ?? submission.id
    const traceparent = this.#daemon.telemetry.traceparent(submission)
    const sent = await this.#send(questionFor(submission.resource, transactionId, traceparent), may)
    const isStuck = stuckAfterMs !== null && submission.ageMs >= stuckAfterMs
    const planned = (step: SubmissionStep) => (isStuck ? markPollAsRare(step) : step)
    if (sent.answer === null) return unsent(planned(stepOfUnsentPoll(submission, sent.why)))
    const { answer } = sent
    const verdict = decideTrack(answer, readGetAnswer(answer, submission.resource), {
      transactionId,
      ageMs: submission.ageMs,
      history: {
        ...submission,
        repeatedAfter401: this.#tokens.isRefusedAgain(may.accessToken, answer, 'GET', submission.id),
      },
      hasTokenExpired: this.#tokens.isRefusedForAge(may.accessToken, answer),
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
  async ask({ resource, transactionId }: ClaimedQuestion, may: Permission): Promise<AnsweredQuestion> {
    const { answer } = await this.#send(questionFor(resource, transactionId), may)
    if (answer === null) return { answer, pause: null, mayTokenBeOld: false }
    const mayTokenBeOld = !this.#tokens.isRefusedAgain(may.accessToken, answer, 'GET', transactionId)
    const { transaction, pause } = readGetAnswer(answer, resource)
    // A code beside a transaction, such as E003, says why that transaction failed, and that the service works.
    return { answer, pause: transaction === null ? pause : null, mayTokenBeOld }
  }

  async #send(
    request: ServiceRequest,
    { accessToken, mayLeave }: Permission,
  ): Promise<{ answer: Answer } | { answer: null; why: string }> {
    const answer = mayLeave() ? await this.#daemon.client.send(request, accessToken, mayLeave) : null
    if (answer === null) return { answer, why: 'its deadline had passed' }
    return isHostFault(answer) ? { answer: null, why: answer.detail } : { answer }
  }
}

const unsent = (step: SubmissionStep): AttemptResult => ({ step, answer: null, breach: null })

const questionFor = (resource: Resource, transactionId: string, traceparent?: string): ServiceRequest => ({
  endpoint: serviceResources[resource].ask,
  body: transactionId,
  idempotencyKey: null,
  traceparent,
})

const markPollAsRare = (step: SubmissionStep): SubmissionStep =>
  'pollInMs' in step.change ? { ...step, change: { ...step.change, polledRarely: true } } : step
