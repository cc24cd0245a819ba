import type { Contract } from '../config.ts'
import type { ClaimedSubmission, WrittenStep } from '../model/dispatch.ts'
import type { CapturedRecord, ReportResult } from '../model/outbox.ts'
import { type Answer, type Breach, isSuccessStatus, type Outcome } from '../model/service.ts'
import { type AttemptResult, type EndState, endStates, type State, type Submission } from '../model/submission.ts'
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
const isEnd = (state: State): state is EndState => endStates.some((end) => end === state)

export type Telemetry = ReturnType<typeof createTelemetry>

export function createTelemetry({ log, metrics, outcomeOf, contract, tracing }: TelemetryDeps) {
  const countBreach = (kind: Breach) => metrics.breaches.add(1, { kind })

  function requestDone(endpoint: Endpoint, answer: Answer): void {
    const labels = { endpoint, outcome: outcomeOf(answer) }
    metrics.requests.add(1, labels)
    metrics.requestDuration.observe(answer.tookMs, labels)
    for (const kind of findContractBreaches(contract, endpoint, answer)) countBreach(kind)
    if (answer.kind === 'response' && answer.hasRepeatedJsonKey) countBreach('duplicate_key')
    // A token issuer has its own codes (RFC 6749, 5.2), so a wrong secret does not break the contract.
    if (answer.kind !== 'response' || answer.code === null || endpoint === 'token') return
    metrics.serviceErrors.add(1, { code: answer.code })
    if (!serviceCodes.includes(answer.code)) countBreach('unknown_code')
  }

  /** @param lifetimeMs null if the table has no creation time */
  function finished(outcome: EndState, lifetimeMs: number | null, type: string): void {
    metrics.finished.add(1, { outcome })
    metrics.finishedByType.add(1, { type, outcome })
    metrics.submissionDuration.observe(lifetimeMs, { outcome })
  }

  return {
    requestDone,
    breached: countBreach,
    /** The header `traceparent` of the record's next request; undefined without tracing. */
    traceparent: (submission: Submission): string | undefined => tracing?.traceparent(submission),
    captured(records: readonly Captured[]) {
      log.info('captured', { count: records.length })
      for (const record of records) tracing?.captured(record)
      for (const { id, outboxId, type, error, fieldErrors, changedAfterSent } of records) {
        if (error === null) continue
        const fields = { submissionId: id, outboxId, type, state: 'rejected' as const }
        if (changedAfterSent) {
          // Not counted as rejected, because an alert says that records fail.
          log.warn('document changed after it was sent, and the change was not sent', fields)
          continue
        }
        finished('rejected', null, type)
        log.warn('record does not fit its mapping and was rejected', { ...fields, fieldErrors })
      }
    },
    claimed(submission: ClaimedSubmission) {
      metrics.requestWait.observe(submission.waitedMs)
      tracing?.claimed(submission)
    },
    attempted(submission: Submission, { step, answer, breach }: AttemptResult) {
      const endpoint = endpointOf(submission)
      if (answer) requestDone(endpoint, answer)
      if (breach) countBreach(breach)
      const { state } = step.change
      const fields: LogFields = {
        submissionId: submission.id,
        outboxId: submission.outboxId,
        attempt: submission.attempt,
        transactionId: step.change.transactionId ?? submission.transactionId,
        endpoint,
        state,
        outcome: answer ? outcomeOf(answer) : undefined,
        status: answer?.kind === 'response' ? answer.status : undefined,
        code: 'errorCode' in step.change ? step.change.errorCode : undefined,
        reason: step.pause?.reason,
        detail: answer?.kind === 'no-answer' ? answer.detail : undefined,
        durationMs: answer ? Math.round(answer.tookMs) : undefined,
      }
      if (answer) tracing?.answered(submission, endpoint, answer, fields)
      if (state === submission.state && !step.pause) return
      const level = isEnd(state) && state !== 'completed' ? 'warn' : 'info'
      log[level](submission.state === 'sending' ? 'submitted' : 'tracked', fields)
    },
    outcomesWritten({ written, heldBack }: { written: readonly WrittenStep[]; heldBack: number }) {
      for (const { submissionId, type, state, lifetimeMs, polls, breach } of written) {
        if (breach) {
          countBreach(breach)
          log.warn('service gave a transaction id that belongs to another record', { submissionId, state })
        }
        if (!isEnd(state)) continue
        finished(state, lifetimeMs, type)
        if (polls > 0) metrics.pollsPerTransaction.observe(polls)
      }
      if (heldBack > 0) {
        countBreach('rate_limit_lower')
        log.warn('another client spends from the same budget: requests are held back', { count: heldBack })
      }
    },
    /** @param tookMs of the transaction that wrote them back */
    reported(told: readonly ReportResult[], tookMs: number) {
      for (const result of told) tracing?.reported(result, tookMs)
      for (const { report, code, problem } of told.filter(({ problem }) => problem !== null))
        log.warn('outcome could not be written back: the daemon tries again', {
          submissionId: report.submissionId,
          outboxId: report.outboxId,
          reason: problem?.kind,
          code,
        })
    },
    operatorActed({ replays, discards }: { replays: number; discards: readonly string[] }) {
      metrics.replays.add(replays)
      for (const type of discards) finished('discarded', null, type)
    },
    orphansRescued(count: number) {
      if (count > 0) log.warn('records that a dead instance was sending were settled', { count })
    },
    pruned({ submissions, emptied }: Pruned) {
      metrics.pruned.add(submissions, { what: 'submission' })
      metrics.pruned.add(emptied, { what: 'contents' })
      if (submissions > 0) log.info('records were pruned from the ledger', { count: submissions })
      if (emptied > 0) log.info('payloads, bodies and results of old records were deleted', { count: emptied })
    },
    missingPollsInserted(count: number) {
      if (count > 0) log.warn('accepted records had no planned poll: the daemon planned new polls', { count })
    },
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
