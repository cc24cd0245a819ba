import { randomUUID } from 'node:crypto'
import type { Clock } from '../clock.ts'
import type { Config } from '../config.ts'
import type { AttemptResult } from '../model.ts'
import type { Log } from '../observe/log.ts'
import type { Metrics } from '../observe/metrics.ts'
import type { Telemetry } from '../observe/telemetry.ts'
import { isLock, isRefusal } from '../postgres/database.ts'
import type { Resource } from '../resources.ts'
import type { ServiceClient } from '../service/client.ts'
import { fingerprintOf } from '../service/fingerprint.ts'
import { harmlessRequest, judgeTrial } from '../service/harmlessCall.ts'
import { readAnswer, readSubmitAnswer } from '../service/reading.ts'
import { createTokens } from '../service/tokens.ts'
import type { Store } from '../store/openStore.ts'
import { createDispatcher, type Dispatcher } from './dispatch/dispatcher.ts'
import { createOutcomeWriter, nothing, type OutcomeWriter } from './dispatch/outcomeWriter.ts'
import { createSlotPool } from './dispatch/slotPool.ts'
import { type StarvationWatch, watchStarvation } from './dispatch/starvation.ts'
import { rescueOrphans } from './maintenance/rescueOrphans.ts'
import { submitLimits } from './submit/decideSubmit.ts'
import { interpretAnswer, submit } from './submit/submit.ts'
import { trackLimits } from './track/decideTrack.ts'
import { createPollPlanner, type PollPlanner } from './track/pollPlanner.ts'
import { track } from './track/track.ts'

export interface DispatchDeps {
  config: Config
  clock: Clock
  log: Log
  metrics: Metrics
  store: Store
  client: ServiceClient
  telemetry: Telemetry
  /** Whether others still believe that this instance lives. */
  mayClaim(): boolean
  /** Which half of the service a question about nothing may go to: one that is used. */
  resource(): Resource
}

/** Everything between a slot and a written outcome, put together. */
export interface Dispatch extends Dispatcher, Pick<StarvationWatch, 'starving'>, Pick<OutcomeWriter, 'unwritten'> {
  planner: PollPlanner
  /** Settles what nobody has in hand any more. @returns how many */
  rescueOrphans(): Promise<number>
}

/** Below this limit a token is fetched only where the budget has a request left to use it for. */
const smallCapacity = 10
const permitsForToken = (capacity: number) => (capacity < smallCapacity ? Math.min(2, capacity) : 1)

/** Puts together what submits and polls: token, budget, stages, and the writing of what came of it. */
export function createDispatch(deps: DispatchDeps): Dispatch {
  const { config, clock, log, metrics, store, client, telemetry, mayClaim } = deps
  const { windowMs } = config.rateLimit
  /** What the limit in force allows, which another instance may have made smaller. */
  let capacity = config.rateLimit.requests
  const slotPool = createSlotPool(windowMs)
  const tokenSlotPool = createSlotPool(windowMs)
  const planner = createPollPlanner(windowMs, capacity, Math.random)

  const outcomeWriter = createOutcomeWriter({
    nowMs: clock.nowMs,
    writeOutcomes: store.dispatch.writeOutcomes,
    takeReturnable: () => [...slotPool.takeReturnable(), ...tokenSlotPool.takeReturnable()],
    isRefusal,
    isLock,
    onWritten: telemetry.outcomesWritten,
    onFailed: (error, { transitions }) =>
      log.error('an outcome could not be written; it is tried again', {
        error,
        submissionId: transitions[0]?.submission.id,
        outboxId: transitions[0]?.submission.outboxId,
        count: transitions.length,
      }),
    onAbandoned: (error, { transitions }) =>
      log.error('the database refuses an outcome: it is settled as if nobody had seen the answer', {
        error,
        submissionId: transitions[0]?.submission.id,
      }),
    waitMs: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
  })

  const starvation = watchStarvation()

  const tokens = createTokens({
    clock,
    refreshMs: config.service.tokenRefreshMs,
    breached: metrics.breach,
    async requestToken(mayLeave) {
      const answered = await client.requestToken(mayLeave)
      if (answered !== null) telemetry.requestDone('token', answered.answer)
      return answered
    },
    isOneAtATime: () => capacity === 1,
    onOutlived: starvation.sawOutlived,
    async spendSlot(request, need) {
      const permits = permitsForToken(capacity)
      if (need === 'renewal' && capacity === 1) return 'no-slot'
      const ageMs = clock.stopwatch()
      tokenSlotPool.add(await store.dispatch.takeSlots(permits), ageMs)
      const permit = tokenSlotPool.available() >= permits ? tokenSlotPool.acquire('poll') : null
      void outcomeWriter.add(nothing) // gives back what it does not use, at once
      if (permit === null) return 'no-slot'
      const answered = await request(permit.isValid).finally(() => {
        permit.release()
        void outcomeWriter.add(nothing)
      })
      if (answered?.token) starvation.sawToken(answered.token.lifetimeMs, { requests: capacity, windowMs })
      return answered ?? 'no-slot'
    },
  })

  /** Follows a request until it is known whether it left. */
  async function followed(working: Promise<AttemptResult>, accessToken: string): Promise<AttemptResult> {
    const worked = await working
    if (worked.answer !== null) tokens.used(accessToken, worked.answer)
    starvation.sawPermit(worked.answer !== null)
    return worked
  }

  const submitDeps = {
    policy: config.uncertainPolicy,
    limits: submitLimits,
    send: client.send,
    isRefusedForAge: tokens.isRefusedForAge,
    read: readSubmitAnswer,
    firstPollMs: (resource: Resource) => planner.nextPollMs(resource, 0),
    newKey: randomUUID,
  }
  const trackDeps = {
    limits: { ...trackLimits, unavailableMs: config.unavailablePauseMs, stuckAfterMs: config.stuckAfterMs },
    send: client.send,
    isRefusedForAge: tokens.isRefusedForAge,
    read: readAnswer,
    nextPollMs: planner.nextPollMs,
    newKey: randomUUID,
  }

  const dispatcher = createDispatcher({
    clock,
    capacity: config.rateLimit.requests,
    windowMs,
    maxInFlight: config.maxInFlight,
    slotPool,
    async readDemand(most) {
      const demand = await store.readDemand(most)
      capacity = demand.capacity
      const { spentOnSubmissions: slotsOnSubmissions, submissionsReady, tracked: accepted } = demand
      planner.press({ capacity, slotsOnSubmissions, submissionsReady, accepted })
      return demand
    },
    mayClaim,
    claim: store.dispatch.claim,
    unclaim: store.dispatch.unclaim,
    claimTrial: store.dispatch.claimTrial,
    async token() {
      const verdict = await tokens.ready()
      metrics.tokenExpires(tokens.expiresAtMs() ?? 0)
      return verdict
    },
    onTokenRefused: tokens.reject,
    isRefusedForAge: tokens.isRefusedForAge,
    submit: (submission, accessToken, isGood) =>
      followed(submit(submitDeps, submission, accessToken, isGood), accessToken),
    async ask(accessToken, isGood) {
      const question = harmlessRequest(deps.resource())
      const answer = await client.send(question, accessToken, isGood)
      if (answer !== null) {
        tokens.used(accessToken, answer)
        telemetry.requestDone(question.endpoint, answer)
      }
      return answer
    },
    judgeTrial,
    fingerprint: fingerprintOf,
    poll: (submission, accessToken, isGood) => followed(track(trackDeps, submission, accessToken, isGood), accessToken),
    writeOutcome: outcomeWriter.add,
    newId: randomUUID,
    onWaited: metrics.waitedForSlot,
    onAttempted: telemetry.attempted,
    onFailed: (error) => log.error('the outcome of a request could not be worked out', { error }),
  })

  return {
    ...dispatcher,
    planner,
    starving: starvation.starving,
    unwritten: outcomeWriter.unwritten,
    rescueOrphans: () =>
      rescueOrphans({
        readOrphaned: store.maintenance.readOrphaned,
        readOverdue: store.maintenance.readOverdue,
        holds: dispatcher.holds,
        interpretAnswer: (submission, answer) => interpretAnswer(submitDeps, submission, answer),
        async writeSteps(transitions) {
          const written = await store.maintenance.writeSteps(transitions)
          telemetry.outcomesWritten({ written, heldBack: 0 })
          return written
        },
      }),
  }
}
