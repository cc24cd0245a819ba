import type { Answer, AttemptResult, Breach, Outcome, State, Submission } from '../model.ts'
import { ended } from '../model.ts'
import { type Endpoint, type ResourceEndpoint, resources } from '../resources.ts'
import type { Log } from './log.ts'
import type { Finish, Metrics } from './metrics.ts'

interface Written {
  submissionId: string
  state: State
  lifetimeMs: number
  polls: number
  /** What the writing of it found wrong with the answer. */
  breach: Breach | null
}

/** Turns what happens to records into log lines and metrics. It observes: nothing waits for it or is steered by it. */
export interface Telemetry {
  captured(count: number): void
  requestDone(endpoint: Endpoint, answer: Answer): void
  attempted(submission: Submission, attempted: AttemptResult): void
  outcomesWritten(result: { written: readonly Written[]; heldBack: number }): void
  orphansRescued(count: number): void
  /** Operators gave commands: another process did the work, the daemon counts it. */
  operatorActed(acts: { replays: number; discards: number }): void
  jobsRecreated(count: number): void
}

export interface TelemetryDeps {
  log: Log
  metrics: Metrics
  outcomeOf(answer: Answer): Outcome
}

/** docs/interface.md, 7.2. */
const knownCodes = new Set(['E001', 'E002', 'E003'])

const finishes: ReadonlySet<State> = new Set(ended)

export function createTelemetry({ log, metrics, outcomeOf }: TelemetryDeps): Telemetry {
  function requestDone(endpoint: Endpoint, answer: Answer): void {
    metrics.requestDone(endpoint, outcomeOf(answer), answer.tookMs)
    if (answer.kind !== 'response' || answer.code === null) return
    metrics.serviceError(answer.code)
    if (!knownCodes.has(answer.code)) metrics.breach('unknown_code')
  }

  return {
    requestDone,
    captured(count) {
      log.info('captured', { count })
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
        code: 'errorCode' in step.change ? step.change.errorCode : undefined,
        reason: step.pause?.reason,
        durationMs: answer ? Math.round(answer.tookMs) : undefined,
      })
    },
    outcomesWritten({ written, heldBack }) {
      for (const { submissionId, state, lifetimeMs, polls, breach } of written) {
        if (breach) {
          metrics.breach(breach)
          log.warn('the service gave a transaction id that is another record’s', { submissionId, state })
        }
        if (!finishes.has(state)) continue
        metrics.finished(state as Finish, lifetimeMs)
        if (polls > 0) metrics.transactionPolled(polls)
      }
      metrics.heldBack(heldBack)
      if (heldBack > 0) {
        metrics.breach('rate_limit_lower')
        log.warn('someone else spends from the same budget: holding back', { count: heldBack })
      }
    },
    operatorActed({ replays, discards }) {
      metrics.replayed(replays)
      for (let i = 0; i < discards; i++) metrics.finished('discarded', null)
    },
    orphansRescued(count) {
      if (count > 0) log.warn('rescued what a dead instance was sending', { count })
    },
    jobsRecreated(count) {
      if (count > 0) log.warn('tracked submissions had lost their jobs and got new ones', { count })
    },
  }
}

function endpointOf({ state, probing, resource }: Submission): ResourceEndpoint {
  return resources[resource][state === 'accepted' || probing ? 'ask' : 'submit']
}
