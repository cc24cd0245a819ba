import type { Contract } from '../config.ts'
import type {
  Answer,
  AttemptResult,
  CapturedRecord,
  Outcome,
  State,
  Submission,
  ToldReport,
  WrittenStep,
} from '../model.ts'
import { ended } from '../model.ts'
import { type Endpoint, type ResourceEndpoint, resources } from '../resources.ts'
import { contradictions } from './contradictions.ts'
import type { Log } from './log.ts'
import type { Finish, Metrics, Pruned } from './metrics.ts'

type Captured = Pick<CapturedRecord, 'id' | 'outboxId' | 'type' | 'error' | 'fieldErrors'>

/** Turns what happens to records into log lines and metrics. It observes: nothing waits for it or is steered by it. */
export interface Telemetry {
  /** Records are in the ledger; those that did not map came to their end there. */
  captured(records: readonly Captured[]): void
  requestDone(endpoint: Endpoint, answer: Answer): void
  attempted(submission: Submission, attempted: AttemptResult): void
  /** Rows were told their outcomes, or could not be. */
  reported(told: readonly ToldReport[]): void
  outcomesWritten(result: { written: readonly WrittenStep[]; heldBack: number }): void
  orphansRescued(count: number): void
  /** Operators gave commands: another process did the work, the daemon counts it. `discards`: the record type of each. */
  operatorActed(acts: { replays: number; discards: readonly string[] }): void
  jobsRecreated(count: number): void
  /** The ledger let go what it need not keep. */
  pruned(pruned: Pruned): void
  /** A day is over: where the logs' chain stood. */
  chainStood(head: { number: string; hash: string }): void
}

export interface TelemetryDeps {
  log: Log
  metrics: Metrics
  outcomeOf(answer: Answer): Outcome
  /** What the service was seen to answer; null where nobody has looked. */
  contract: Contract | null
}

/** docs/interface.md, 7.2. */
const knownCodes = new Set(['E001', 'E002', 'E003'])

const finishes: ReadonlySet<State> = new Set(ended)

export function createTelemetry({ log, metrics, outcomeOf, contract }: TelemetryDeps): Telemetry {
  function requestDone(endpoint: Endpoint, answer: Answer): void {
    metrics.requestDone(endpoint, outcomeOf(answer), answer.tookMs)
    for (const kind of contradictions(contract, endpoint, answer)) metrics.breach(kind)
    if (answer.kind === 'response' && answer.repeatsKey) metrics.breach('duplicate_key')
    // A token issuer has codes of its own (RFC 6749, 5.2): a wrong secret breaks no contract.
    if (answer.kind !== 'response' || answer.code === null || endpoint === 'token') return
    metrics.serviceError(answer.code)
    if (!knownCodes.has(answer.code)) metrics.breach('unknown_code')
  }

  return {
    requestDone,
    captured(records) {
      log.info('captured', { count: records.length })
      for (const { id, outboxId, type, fieldErrors } of records.filter(({ error }) => error !== null)) {
        metrics.finished('rejected', null, type)
        log.warn('a record does not map', { submissionId: id, outboxId, type, state: 'rejected', fieldErrors })
      }
    },
    attempted(submission, { step, answer, breach }) {
      const endpoint = endpointOf(submission)
      if (answer) requestDone(endpoint, answer)
      if (breach) metrics.breach(breach)
      const { state } = step.change
      if (state === submission.state && !step.pause) return
      const level = finishes.has(state) && state !== 'completed' ? 'warn' : 'info'
      log[level](submission.state === 'sending' ? 'submitted' : 'tracked', {
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
      })
    },
    outcomesWritten({ written, heldBack }) {
      for (const { submissionId, type, state, lifetimeMs, polls, breach } of written) {
        if (breach) {
          metrics.breach(breach)
          log.warn('the service gave a transaction id that is another record’s', { submissionId, state })
        }
        if (!finishes.has(state)) continue
        metrics.finished(state as Finish, lifetimeMs, type)
        if (polls > 0) metrics.transactionPolled(polls)
      }
      metrics.heldBack(heldBack)
      if (heldBack > 0) {
        metrics.breach('rate_limit_lower')
        log.warn('someone else spends from the same budget: holding back', { count: heldBack })
      }
    },
    reported(told) {
      for (const { report, code, problem } of told.filter(({ problem }) => problem !== null))
        log.warn('a row could not be told its outcome; it is tried again', {
          submissionId: report.submissionId,
          outboxId: report.outboxId,
          reason: problem?.kind,
          code,
        })
    },
    operatorActed({ replays, discards }) {
      metrics.replayed(replays)
      for (const type of discards) metrics.finished('discarded', null, type)
    },
    orphansRescued(count) {
      if (count > 0) log.warn('rescued what a dead instance was sending', { count })
    },
    chainStood({ number, hash }) {
      log.info('a day of the audit chain is over', { detail: `outboxd audit --verify --noted ${number}:${hash}` })
    },
    pruned(pruned) {
      metrics.pruned(pruned)
      if (pruned.submissions > 0) log.info('records were pruned from the ledger', { count: pruned.submissions })
      if (pruned.forgotten > 0) log.info('ids of rows that are gone were forgotten', { count: pruned.forgotten })
      if (pruned.emptied > 0) log.info('payloads, bodies and results were emptied', { count: pruned.emptied })
    },
    jobsRecreated(count) {
      if (count > 0) log.warn('tracked submissions had lost their jobs and got new ones', { count })
    },
  }
}

function endpointOf({ state, probing, resource }: Submission): ResourceEndpoint {
  return resources[resource][state === 'accepted' || probing ? 'ask' : 'submit']
}
