import { randomUUID } from 'node:crypto'
import type { Clock } from '../clock.ts'
import type { Config } from '../config.ts'
import type { WrittenOutcomes } from '../ledger/outcomes.ts'
import type { Answer, AttemptResult, PauseView, Submission } from '../model.ts'
import type { SendingReadiness } from '../observe/httpServer.ts'
import type { Log } from '../observe/log.ts'
import type { Metrics } from '../observe/metrics.ts'
import { createPauseLog, type PauseLog } from '../observe/pauseLog.ts'
import type { Telemetry } from '../observe/telemetry.ts'
import { blameFor } from '../postgres/database.ts'
import type { Resource } from '../resources.ts'
import type { ServiceClient, TokenAnswer } from '../service/client.ts'
import type { CredentialsInForce } from '../service/credentialsInForce.ts'
import { fingerprintOf } from '../service/errorCode.ts'
import { harmlessRequest, judgeTrial, outcomeOf, readAnswer, readSubmitAnswer } from '../service/readAnswer.ts'
import { createTokens, type Tokens } from '../service/tokens.ts'
import type { Store } from '../store/openStore.ts'
import { budgetSeen } from './budgetSeen.ts'
import { createDispatcher, type Dispatcher } from './dispatch/dispatcher.ts'
import { createOutcomeWriter, nothing, type OutcomeWriter } from './dispatch/outcomeWriter.ts'
import { createSlotPool, createTokenSlot, type SlotPool, type TokenSlot } from './dispatch/slotPool.ts'
import { type StarvationWatch, watchStarvation } from './dispatch/starvation.ts'
import { submitLimits } from './submit/decideSubmit.ts'
import { interpretAnswer, type SubmitDeps, submit } from './submit/submit.ts'
import { trackLimits } from './track/decideTrack.ts'
import type { PollPlanner } from './track/pollPlanner.ts'
import { type TrackDeps, track } from './track/track.ts'

export interface DispatchDeps {
  config: Config
  clock: Clock
  log: Log
  metrics: Metrics
  store: Store
  client: ServiceClient
  credentials: Pick<CredentialsInForce, 'renew'>
  telemetry: Telemetry
  planner: PollPlanner
  /** Whether others still believe that this instance lives. */
  mayClaim(): boolean
  /** Which half of the service a question about nothing may go to: one that is used. */
  resource(): Resource
  /** How many rows waited in the outbox when it was last looked at. */
  outboxWaiting(): number
  /** Outcomes are in the ledger. */
  onWritten(outcomes: WrittenOutcomes): void
  /** A piece of work is through: there is room for another. */
  onRoom(): void
}

/** Everything between a slot and a written outcome, put together. */
export interface Dispatch extends Dispatcher, Pick<StarvationWatch, 'starving'>, Pick<OutcomeWriter, 'unwritten'> {
  /** Works out what an answer to a submission's POST means. */
  interpretAnswer(submission: Submission, answer: Answer): AttemptResult
  /** The pauses in force, as the last round saw them. */
  pauses(): SendingReadiness['pauses']
}

/** Puts together what submits and polls: token, budget, stages, and the writing of what came of it. Decides nothing. */
export function createDispatch(deps: DispatchDeps): Dispatch {
  const { config, clock, metrics, store, planner, mayClaim, onRoom } = deps
  const { requests: capacity, windowMs } = config.rateLimit
  const runningMs = clock.stopwatch()
  const slotPool = createSlotPool(windowMs)
  const tokenSlotPool = createSlotPool(windowMs)
  const pauseLog = createPauseLog(deps)
  let pauses: SendingReadiness['pauses'] = []
  const outcomeWriter = createWriter(deps, [slotPool, tokenSlotPool], pauseLog)
  const starvation = watchStarvation()
  const tokenSlot = createTokenSlot<TokenAnswer>({
    slotPool: tokenSlotPool,
    capacity,
    stopwatch: clock.stopwatch,
    takeSlots: store.claims.takeSlots,
    onReturnable: () => void outcomeWriter.add(nothing),
    onAnswered: ({ token }, requests) => token && starvation.sawToken(token.lifetimeMs, { requests, windowMs }),
  })
  const tokens = createTokenKeeper(deps, tokenSlot, starvation)
  const stages = stageDeps(deps, tokens)

  const dispatcher = createDispatcher({
    clock,
    capacity,
    windowMs,
    maxInFlight: config.maxInFlight,
    slotPool,
    readDemand: store.readDemand,
    onDemand(demand) {
      pauseLog.seen(demand.pauses)
      pauses = inEpochMs(demand.pauses, clock.nowMs())
      tokenSlot.sawCapacity(demand.capacity)
      planner.press({ ...budgetSeen(demand, config.captureWindow, deps.outboxWaiting()), nowMs: runningMs() })
    },
    mayClaim,
    claim: store.claims.claim,
    unclaim: store.claims.unclaim,
    claimTrial: store.claims.claimTrial,
    token: () => tokens.ready().finally(() => metrics.tokenExpiry.set(tokens.expiresAtMs())),
    onTokenRefused: tokens.reject,
    isRefusedForAge: tokens.isRefusedForAge,
    submit: (submission, accessToken, isValid) => submit(stages.submit, submission, accessToken, isValid),
    poll: (submission, accessToken, isValid) => track(stages.track, submission, accessToken, isValid),
    ask: (accessToken, isValid) => askHarmlessly(deps, tokens, accessToken, isValid),
    judgeTrial,
    fingerprint: fingerprintOf,
    outcomeOf,
    writeOutcome: outcomeWriter.add,
    newId: randomUUID,
    onWaited: metrics.slotWait.observe,
    onAttempted: attemptListener(deps, tokens, starvation),
    onRoom,
    onFailed: (error) => deps.log.error('the outcome of a request could not be worked out', { error }),
  })
  const { starving } = starvation
  const { unwritten } = outcomeWriter
  return {
    ...dispatcher,
    starving,
    unwritten,
    interpretAnswer: (...of) => interpretAnswer(stages.submit, ...of),
    pauses: () => pauses,
  }
}

const inEpochMs = (pauses: readonly PauseView[], nowMs: number): SendingReadiness['pauses'] =>
  pauses.map(({ reason, leftMs, forMs }) => ({
    reason,
    sinceMs: nowMs - forMs,
    untilMs: leftMs === null ? null : nowMs + leftMs,
  }))

function createWriter(
  { clock, log, store, onWritten }: DispatchDeps,
  pools: readonly SlotPool[],
  pauseLog: PauseLog,
): OutcomeWriter {
  return createOutcomeWriter({
    nowMs: clock.nowMs,
    writeOutcomes: store.writeOutcomes,
    takeReturnable: () => pools.flatMap((pool) => pool.takeReturnable()),
    blameFor: (error) => blameFor(error, 'outcome'),
    onWritten(outcomes, { pauses }) {
      pauseLog.raised(pauses)
      onWritten(outcomes)
    },
    onFailed: (error, { transitions }) =>
      log.error('an outcome could not be written; it is tried again', {
        error,
        submissionId: transitions[0]?.submission.id,
        outboxId: transitions[0]?.submission.outboxId,
        count: transitions.length,
      }),
    onBared: (error, { transitions }) =>
      log.error('the database refused an outcome 3 times: it is written without the words of the answer', {
        error,
        submissionId: transitions[0]?.submission.id,
      }),
    onAbandoned: (error, { transitions }) =>
      log.error('the database refuses an outcome: it is settled as if nobody had seen the answer', {
        error,
        submissionId: transitions[0]?.submission.id,
      }),
    waitMs: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
  })
}

function createTokenKeeper(
  { config, clock, client, credentials, telemetry }: DispatchDeps,
  tokenSlot: TokenSlot<TokenAnswer>,
  starvation: StarvationWatch,
): Tokens {
  return createTokens({
    clock,
    refreshMs: config.service.tokenRefreshMs,
    breached: telemetry.breached,
    async requestToken(mayLeave) {
      const answered = await client.requestToken(mayLeave)
      if (answered !== null) telemetry.requestDone('token', answered.answer)
      return answered
    },
    renewSecret: () => credentials.renew(['secret']),
    isOneAtATime: tokenSlot.isOneAtATime,
    onOutlived: starvation.sawOutlived,
    spendSlot: tokenSlot.spend,
  })
}

function stageDeps(
  { config, client, planner }: DispatchDeps,
  { isRefusedForAge, isRefusedAgain }: Tokens,
): { submit: SubmitDeps; track: TrackDeps } {
  const shared = { send: client.send, isRefusedForAge, newKey: randomUUID }
  return {
    submit: {
      ...shared,
      isRefusedAgain: (accessToken, answer) => isRefusedAgain(accessToken, answer, 'POST'),
      policy: config.uncertainPolicy,
      limits: submitLimits,
      read: readSubmitAnswer,
      firstPollMs: (resource) => planner.nextPollMs(resource, 0),
    },
    track: {
      ...shared,
      isRefusedAgain: (accessToken, answer) => isRefusedAgain(accessToken, answer, 'GET'),
      limits: { ...trackLimits, unavailableMs: config.unavailablePauseMs, stuckAfterMs: config.stuckAfterMs },
      read: readAnswer,
      nextPollMs: planner.nextPollMs,
    },
  }
}

/** Asks the service about something that does not exist. @returns null where the question never left */
async function askHarmlessly(
  { client, telemetry, resource }: DispatchDeps,
  tokens: Tokens,
  accessToken: string,
  isValid: () => boolean,
): Promise<Answer | null> {
  const question = harmlessRequest(resource())
  const answer = await client.send(question, accessToken, isValid)
  if (answer === null) return null
  tokens.used(accessToken, answer)
  telemetry.requestDone(question.endpoint, answer)
  return answer
}

/** Who hears of it when it is known whether a request left, and how it was answered. */
function attemptListener({ telemetry }: DispatchDeps, tokens: Tokens, starvation: StarvationWatch) {
  return (submission: Submission, attempted: AttemptResult, accessToken: string): void => {
    if (attempted.answer !== null) tokens.used(accessToken, attempted.answer)
    starvation.sawPermit(attempted.answer !== null)
    telemetry.attempted(submission, attempted)
  }
}
