import { randomUUID } from 'node:crypto'
import { Claims } from '../ledger/claims.ts'
import { type WrittenOutcomes, writeOutcomes } from '../ledger/outcomes.ts'
import { readPollLoad, readRequestDemand } from '../ledger/snapshot.ts'
import type { ClaimedQuestion, CurrentPause, PollLoad, RequestDemand } from '../model/dispatch.ts'
import { type Answer, isHostFault } from '../model/service.ts'
import type { Submission } from '../model/submission.ts'
import type { SendingReadiness } from '../observe/httpServer.ts'
import { createPauseLog, type PauseLog } from '../observe/pauseLog.ts'
import { classifyDatabaseError } from '../postgres/database.ts'
import { serviceResources } from '../resources.ts'
import { findPauseForGetAnswer, readGetAnswer, readSubmitAnswer, requestOutcomeOf } from '../service/readAnswer.ts'
import { createTokenCache, type TokenCache } from '../service/tokens.ts'
import type { DaemonContext } from './context.ts'
import { createDispatcher, readyRecordsCountedMax } from './dispatch/dispatcher.ts'
import { HostWatch } from './dispatch/hostWatch.ts'
import type { AnsweredQuestion } from './dispatch/interpretAttempt.ts'
import { createOutcomeWriter, type OutcomeWriter } from './dispatch/outcomeWriter.ts'
import { TokenRequests } from './dispatch/tokenRequests.ts'
import type { Heartbeat } from './heartbeat.ts'
import type { PlannerInput, PollPlanner } from './pollPlanner.ts'
import { interpretSubmitAnswer, type SubmitDeps, submit } from './submit/submit.ts'
import { type TrackDeps, track } from './track/track.ts'

export interface DispatchPartOptions {
  planner: PollPlanner
  heartbeat: Pick<Heartbeat, 'mayClaim' | 'watchHeartbeat'>
  outboxWaiting(): number
  onWritten(outcomes: WrittenOutcomes): void
}

type Send = DaemonContext['client']['send']

/** Counting costs as much as a claim. */
const loadEveryWindows = 1 / 12

export type DispatchPart = ReturnType<typeof createDispatchPart>

export function createDispatchPart(daemon: DaemonContext, options: DispatchPartOptions) {
  const { config, clock, metrics, databases } = daemon
  const { planner, heartbeat, outboxWaiting, onWritten } = options
  const claims = new Claims(databases, clock)
  const { requests: limit, windowMs } = config.rateLimit
  const runningMs = clock.stopwatch()
  const pauseLog = createPauseLog(daemon)
  let pauses: SendingReadiness['pauses'] = []
  const outcomeWriter = createWriter(daemon, pauseLog, onWritten)
  let lateRequests = 0
  let load: PollLoad = { tracked: 0, submissionsSent: 0 }
  let loadAgeMs = () => Number.POSITIVE_INFINITY
  const tokenRequests = new TokenRequests(claims, outcomeWriter, limit)
  const host = new HostWatch(clock)
  const tokens = createTokenKeeper(daemon, tokenRequests, host)
  const send: Send = async (...request) => {
    const answer = await daemon.client.send(...request)
    host.note(answer)
    return answer
  }
  const stages = stageDeps(daemon, planner, tokens, send)

  const dispatcher = createDispatcher({
    clock,
    windowMs,
    maxInFlight: config.maxInFlight,
    async countDueRequests(most) {
      const demand = await readRequestDemand(databases.ledger, most)
      const isBusy = demand.submissionsReady + demand.pollsDue + load.tracked + load.submissionsSent > 0
      if (!isBusy || loadAgeMs() < windowMs * loadEveryWindows) return demand
      load = await readPollLoad(databases.ledger)
      loadAgeMs = clock.stopwatch()
      return demand
    },
    onDemand(demand) {
      pauseLog.seen(demand.pauses)
      pauses = inEpochMs(demand.pauses, clock.nowMs())
      tokenRequests.limit = demand.limit
      planner.updatePressure({
        ...toPollPlannerInput(demand, load, config.captureWindow, outboxWaiting()),
        nowMs: runningMs(),
      })
    },
    mayClaim: () => heartbeat.mayClaim() && host.mayClaim(),
    hasHostFault: () => host.fault() !== null,
    watchHeartbeat: heartbeat.watchHeartbeat,
    claims,
    token: () => tokens.ready().finally(() => metrics.tokenExpiry.set(tokens.expiresAtMs())),
    onTokenRefused: tokens.reject,
    submit(submission, accessToken, isValid) {
      metrics.requestWait.observe(submission.waitedMs)
      return submit(stages.submit, submission, accessToken, isValid)
    },
    poll: (submission, accessToken, isValid) => track(stages.track, submission, accessToken, isValid),
    ask: (question, accessToken, isValid) => askForLast(daemon, tokens, send, { question, accessToken, isValid }),
    outcomeOf: requestOutcomeOf,
    writeOutcome: outcomeWriter.add,
    newId: randomUUID,
    onAttempted(submission, attempted, accessToken) {
      if (attempted.answer !== null) tokens.used(accessToken, attempted.answer)
      lateRequests = attempted.answer === null && host.fault() === null ? lateRequests + 1 : 0
      daemon.telemetry.attempted(submission, attempted)
    },
    onRoom: daemon.wakeups.dispatch.wake,
    onFailed: (error) =>
      daemon.log.error(
        'answer to a request could not be processed: the daemon goes on as if the answer had been lost',
        { error },
      ),
  })
  return {
    ...dispatcher,
    lateRequests: () => lateRequests,
    hostFault: () => host.fault(),
    unwritten: outcomeWriter.unwritten,
    interpretAnswer: (submission: Submission, answer: Answer) =>
      interpretSubmitAnswer(stages.submit, submission, answer),
    pauses: () => pauses,
  }
}

const inEpochMs = (pauses: readonly CurrentPause[], nowMs: number): SendingReadiness['pauses'] =>
  pauses.map(({ reason, leftMs, forMs }) => ({
    reason,
    sinceMs: nowMs - forMs,
    untilMs: leftMs === null ? null : nowMs + leftMs,
  }))

function createWriter(
  { clock, log, databases }: DaemonContext,
  pauseLog: PauseLog,
  onWritten: DispatchPartOptions['onWritten'],
): OutcomeWriter {
  return createOutcomeWriter({
    nowMs: clock.nowMs,
    writeOutcomes: (batch) => writeOutcomes(databases, batch),
    classifyDatabaseError: (error) => classifyDatabaseError(error, 'outcome'),
    onWritten(outcomes, { answers }) {
      pauseLog.raised(answers.flatMap(({ sign }) => (sign.kind === 'fails' ? [sign.pause] : [])))
      onWritten(outcomes)
    },
    onFailed: (error, { transitions }) =>
      log.error('outcome could not be written: the daemon tries again', {
        error,
        submissionId: transitions[0]?.submission.id,
        outboxId: transitions[0]?.submission.outboxId,
        count: transitions.length,
      }),
    onTextsLeftOut: (error, { transitions }) =>
      log.error('database refused an outcome: the daemon writes it without the texts of the answer', {
        error,
        submissionId: transitions[0]?.submission.id,
      }),
    onAbandoned: (error, { transitions }) =>
      log.error('database refused an outcome twice: the daemon settles the record as if the answer had been lost', {
        error,
        submissionId: transitions[0]?.submission.id,
      }),
    waitMs: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
  })
}

function createTokenKeeper(
  { config, clock, client, credentials, telemetry }: DaemonContext,
  tokenRequests: TokenRequests,
  host: HostWatch,
): TokenCache {
  return createTokenCache({
    clock,
    refreshMs: config.service.tokenRefreshMs,
    breached: telemetry.breached,
    async requestToken(mayLeave) {
      const answered = await client.requestToken(mayLeave)
      if (answered === null) return null
      host.note(answered.answer)
      telemetry.requestDone('token', answered.answer)
      return isHostFault(answered.answer) ? null : answered
    },
    renewSecret: () => credentials.renew(['secret']),
    isOneAtATime: () => tokenRequests.isOneAtATime(),
    spendRequest: (request, need) => tokenRequests.spend(request, need),
  })
}

function stageDeps(
  { config }: DaemonContext,
  planner: PollPlanner,
  { isRefusedForAge, isRefusedAgain }: TokenCache,
  send: Send,
): { submit: SubmitDeps; track: TrackDeps } {
  const shared = { send, isRefusedForAge, newKey: randomUUID }
  return {
    submit: {
      ...shared,
      isRefusedAgain: (accessToken, answer, id) => isRefusedAgain(accessToken, answer, 'POST', id),
      policy: config.uncertainPolicy,
      serverErrorPolicy: config.serverErrorPolicy,
      read: readSubmitAnswer,
      firstPollMs: (resource) => planner.nextPollDelayMs(resource, 0),
    },
    track: {
      ...shared,
      isRefusedAgain: (accessToken, answer, id) => isRefusedAgain(accessToken, answer, 'GET', id),
      unavailableMs: config.unavailablePauseMs,
      stuckAfterMs: config.stuckAfterMs,
      read: readGetAnswer,
      nextPollDelayMs: (resource, notDoneAgeMs) => planner.nextPollDelayMs(resource, notDoneAgeMs),
    },
  }
}

async function askForLast(
  { telemetry }: DaemonContext,
  tokens: TokenCache,
  send: Send,
  request: { question: ClaimedQuestion; accessToken: string; isValid: () => boolean },
): Promise<AnsweredQuestion> {
  const { question, accessToken, isValid } = request
  const { resource, transactionId } = question
  const endpoint = serviceResources[resource].ask
  const answer = await send({ endpoint, body: transactionId, idempotencyKey: null }, accessToken, isValid)
  if (answer === null || isHostFault(answer)) return { answer: null, pause: null, mayTokenBeOld: false }
  tokens.used(accessToken, answer)
  telemetry.requestDone(endpoint, answer)
  return {
    answer,
    pause: findPauseForGetAnswer(answer),
    mayTokenBeOld: !tokens.isRefusedAgain(accessToken, answer, 'GET', transactionId),
  }
}

/**
 * Adds the outbox's waiting rows only while the ledger holds many queued records. Otherwise these rows may have been
 * captured since they were counted, and would count twice.
 */
export function toPollPlannerInput(
  { limit, submissionsReady }: RequestDemand,
  { submissionsSent, tracked }: PollLoad,
  captureWindow: number,
  outboxRowsWaiting: number,
): Omit<PlannerInput, 'nowMs'> {
  const isFull = submissionsReady >= Math.min(captureWindow, readyRecordsCountedMax) / 2
  return {
    limit,
    submissionsWaiting: submissionsReady + (isFull ? outboxRowsWaiting : 0),
    submissionsSent,
    accepted: tracked,
  }
}
