import type { Contract } from '../config.ts'
import type { ClaimedSubmission, WrittenStep } from '../model/dispatch.ts'
import type { CapturedRecord, ReportResult } from '../model/outbox.ts'
import { type Answer, type Breach, isSuccessStatus, type Outcome } from '../model/service.ts'
import { type AttemptResult, type EndState, isEndState, type Submission } from '../model/submission.ts'
import { type Endpoint, type ResourceEndpoint, serviceResources } from '../resources.ts'
import type { Log, LogFields } from './log.ts'
import { countedErrorCodes } from './metricRows.ts'
import type { Metrics } from './metrics.ts'
import type { Tracing } from './tracing.ts'

type Captured = Pick<
  CapturedRecord,
  'id' | 'outboxId' | 'type' | 'error' | 'fieldErrors' | 'changedAfterSent' | 'discarded' | 'createdAt'
>

export interface Pruned {
  submissions: number
  /** Submissions that stay without their contents. */
  emptied: number
}

export interface TelemetryDeps {
  log: Log
  metrics: Metrics
  outcomeOf(answer: Answer): Outcome
  contract: Contract | null
  /** Null if no collector is named: no trace is made. */
  tracing: Tracing | null
}

const serviceCodes: readonly string[] = countedErrorCodes.filter((code) => code !== 'other')

/** Turns what happens to records and requests into metrics, lines of the log and spans. */
export class Telemetry {
  readonly #log: Log
  readonly #metrics: Metrics
  readonly #outcomeOf: (answer: Answer) => Outcome
  readonly #contract: Contract | null
  readonly #tracing: Tracing | null

  constructor({ log, metrics, outcomeOf, contract, tracing }: TelemetryDeps) {
    this.#log = log
    this.#metrics = metrics
    this.#outcomeOf = outcomeOf
    this.#contract = contract
    this.#tracing = tracing
  }

  requestDone(endpoint: Endpoint, answer: Answer): void {
    const labels = { endpoint, outcome: this.#outcomeOf(answer) }
    this.#metrics.requests.add(1, labels)
    this.#metrics.requestDuration.observe(answer.tookMs, labels)
    for (const kind of findContractBreaches(this.#contract, endpoint, answer)) this.breached(kind)
    // A token issuer has its own codes (RFC 6749, 5.2), so a wrong secret does not break the contract.
    if (answer.kind !== 'response' || answer.code === null || endpoint === 'token') return
    this.#metrics.serviceErrors.add(1, { code: answer.code })
    if (!serviceCodes.includes(answer.code)) this.breached('unknown_code')
  }

  breached(kind: Breach): void {
    this.#metrics.breaches.add(1, { kind })
  }

  /** The header `traceparent` of the record's next request; undefined without tracing. */
  traceparent(submission: Submission): string | undefined {
    return this.#tracing?.traceparent(submission)
  }

  captured(records: readonly Captured[]): void {
    this.#log.info('captured', { count: records.length })
    for (const record of records) this.#tracing?.captured(record)
    for (const { id, outboxId, type, error, fieldErrors, changedAfterSent } of records) {
      if (error === null) continue
      const fields = { submissionId: id, outboxId, type, state: 'rejected' as const }
      if (changedAfterSent) {
        // Not counted as rejected, because an alert says that records fail.
        this.#log.warn('document changed after it was sent, and the change was not sent', fields)
        continue
      }
      this.#finished('rejected', null, type)
      this.#log.warn('record does not fit its mapping and was rejected', { ...fields, fieldErrors })
    }
  }

  claimed(submission: ClaimedSubmission): void {
    this.#metrics.requestWait.observe(submission.waitedMs)
    this.#tracing?.claimed(submission)
  }

  attempted(submission: Submission, { step, answer, breach }: AttemptResult): void {
    const endpoint = endpointOf(submission)
    if (answer) this.requestDone(endpoint, answer)
    if (breach) this.breached(breach)
    const { state } = step.change
    const fields: LogFields = {
      submissionId: submission.id,
      outboxId: submission.outboxId,
      attempt: submission.attempt,
      transactionId: step.change.transactionId ?? submission.transactionId,
      endpoint,
      state,
      outcome: answer ? this.#outcomeOf(answer) : undefined,
      status: answer?.kind === 'response' ? answer.status : undefined,
      code: 'errorCode' in step.change ? step.change.errorCode : undefined,
      reason: step.pause?.reason,
      detail: answer?.kind === 'no-answer' ? answer.detail : undefined,
      durationMs: answer ? Math.round(answer.tookMs) : undefined,
    }
    if (answer) this.#tracing?.answered(submission, endpoint, answer, fields)
    if (state === submission.state && !step.pause) return
    const level = isEndState(state) && state !== 'completed' ? 'warn' : 'info'
    this.#log[level](submission.state === 'sending' ? 'submitted' : 'tracked', fields)
  }

  outcomesWritten({ written, heldBack }: { written: readonly WrittenStep[]; heldBack: number }): void {
    for (const { submissionId, type, state, lifetimeMs, polls, breach } of written) {
      if (breach) {
        this.breached(breach)
        this.#log.warn('service gave a transaction id that belongs to another record', { submissionId, state })
      }
      if (!isEndState(state)) continue
      this.#finished(state, lifetimeMs, type)
      if (polls > 0) this.#metrics.pollsPerTransaction.observe(polls)
    }
    if (heldBack > 0) {
      this.breached('rate_limit_lower')
      this.#log.warn('another client spends from the same budget: requests are held back', { count: heldBack })
    }
  }

  /** @param tookMs of the transaction that wrote them back */
  reported(told: readonly ReportResult[], tookMs: number): void {
    for (const result of told) this.#tracing?.reported(result, tookMs)
    for (const { report, code, problem } of told.filter(({ problem }) => problem !== null))
      this.#log.warn('outcome could not be written back: the daemon tries again', {
        submissionId: report.submissionId,
        outboxId: report.outboxId,
        reason: problem?.kind,
        code,
      })
  }

  operatorActed({ replays, discards }: { replays: number; discards: readonly string[] }): void {
    this.#metrics.replays.add(replays)
    for (const type of discards) this.#finished('discarded', null, type)
  }

  orphansRescued(count: number): void {
    if (count > 0) this.#log.warn('records that a dead instance was sending were settled', { count })
  }

  pruned({ submissions, emptied }: Pruned): void {
    this.#metrics.pruned.add(submissions, { what: 'submission' })
    this.#metrics.pruned.add(emptied, { what: 'contents' })
    if (submissions > 0) this.#log.info('records were pruned from the ledger', { count: submissions })
    if (emptied > 0) this.#log.info('payloads, bodies and results of old records were deleted', { count: emptied })
  }

  missingPollsInserted(count: number): void {
    if (count > 0) this.#log.warn('accepted records had no planned poll: the daemon planned new polls', { count })
  }

  /** @param lifetimeMs null if the table has no creation time */
  #finished(outcome: EndState, lifetimeMs: number | null, type: string): void {
    this.#metrics.finished.add(1, { outcome })
    this.#metrics.finishedByType.add(1, { type, outcome })
    this.#metrics.submissionDuration.observe(lifetimeMs, { outcome })
  }
}

/** Where the next request of a record goes. */
export function endpointOf({ state, probing, resource }: Submission): ResourceEndpoint {
  return serviceResources[resource][state === 'accepted' || probing ? 'ask' : 'submit']
}

export function findContractBreaches(contract: Contract | null, endpoint: Endpoint, answer: Answer): Breach[] {
  if (contract === null || answer.kind === 'no-answer' || endpoint === 'token') return []
  const { status, code, rateRemaining } = answer
  const expected = (name: string): string => contract[name as keyof Contract] ?? String(status)
  const isOther = (name: string) => expected(name) !== String(status)
  const breaches: Breach[] = []
  if (isSuccessStatus(status) && isOther(`${endpoint}_ok`)) breaches.push('other_success_status')
  if (!isSuccessStatus(status) && code !== null && isOther(code.toLowerCase())) breaches.push('other_error_status')
  if (polls.has(endpoint) && code === null && isRefusal(status) && isOther(`${endpoint}_unknown`))
    breaches.push('other_unknown_status')
  if (contract.rate_remaining === 'all' && rateRemaining === null && status < 500) breaches.push('no_rate_remaining')
  return breaches
}

const polls: ReadonlySet<Endpoint> = new Set(Object.values(serviceResources).map(({ ask }) => ask))

/** True for statuses that refuse this request. Other 4xx refuse the token, the rate or the proxy. */
const isRefusal = (status: number) => status >= 400 && status < 500 && ![401, 403, 407, 408, 429].includes(status)
