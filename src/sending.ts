import { randomUUID } from 'node:crypto'
import type { Clock } from './clock.ts'
import type { Config } from './config.ts'
import { createDispatcher, type Dispatcher } from './dispatch/dispatcher.ts'
import { createPurse } from './dispatch/purse.ts'
import { createSettler, nothing, type Settler } from './dispatch/settler.ts'
import { type StarvationWatch, watchStarvation } from './dispatch/starvation.ts'
import { takeOver } from './dispatch/takeOver.ts'
import type { Log } from './observe/log.ts'
import type { Metrics } from './observe/metrics.ts'
import type { Witness } from './observe/witness.ts'
import type { Resource, Worked } from './record.ts'
import type { ServiceClient } from './service/client.ts'
import { fingerprintOf } from './service/fingerprint.ts'
import { harmlessRequest, judgeTrial } from './service/harmlessCall.ts'
import { readAnswer, readSubmitAnswer } from './service/reading.ts'
import { createTokens } from './service/tokens.ts'
import { isLock, isRefusal } from './store/database.ts'
import type { Store } from './store/store.ts'
import { submitLimits } from './submit/decide.ts'
import { judge, submit } from './submit/submit.ts'
import { trackLimits } from './track/decide.ts'
import { createPollPlanner, type PollPlanner } from './track/pollPlanner.ts'
import { track } from './track/track.ts'

export interface SendingDeps {
  config: Config
  clock: Clock
  log: Log
  metrics: Metrics
  store: Store
  client: ServiceClient
  witness: Witness
  /** Whether others still believe that this instance lives. */
  mayClaim(): boolean
  /** Which half of the service a question about nothing may go to: one that is used. */
  resource(): Resource
}

/** Everything between a slot and a written outcome, put together. */
export interface Sending extends Dispatcher, Pick<StarvationWatch, 'starving'>, Pick<Settler, 'unwritten'> {
  planner: PollPlanner
  /** Settles what nobody has in hand any more. @returns how many */
  takeOver(): Promise<number>
}

/** Below this limit a token is fetched only where the budget has a request left to use it for. */
const smallCapacity = 10
const permitsForToken = (capacity: number) => (capacity < smallCapacity ? Math.min(2, capacity) : 1)

/** Puts together what submits and polls: token, budget, stages, and the writing of what came of it. */
export function createSending(deps: SendingDeps): Sending {
  const { config, clock, log, metrics, store, client, witness, mayClaim } = deps
  const { windowMs } = config.rateLimit
  /** What the limit in force allows, which another instance may have made smaller. */
  let capacity = config.rateLimit.requests
  const purse = createPurse(windowMs)
  const tokenPurse = createPurse(windowMs)
  const planner = createPollPlanner(windowMs, capacity, Math.random)

  const settler = createSettler({
    nowMs: clock.nowMs,
    settle: store.work.settle,
    takeSpent: () => [...purse.takeSpent(), ...tokenPurse.takeSpent()],
    isRefusal,
    isLock,
    settled: witness.settled,
    failed: (error, { transitions }) =>
      log.error('an outcome could not be written; it is tried again', {
        error,
        submissionId: transitions[0]?.submission.id,
        outboxId: transitions[0]?.submission.outboxId,
        count: transitions.length,
      }),
    gaveUp: (error, { transitions }) =>
      log.error('the database refuses an outcome: it will be taken over as if nobody knew it', {
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
      if (answered !== null) witness.requested('token', answered.answer)
      return answered
    },
    isOneAtATime: () => capacity === 1,
    onOutlived: starvation.sawOutlived,
    async spendSlot(request, need) {
      const permits = permitsForToken(capacity)
      if (need === 'renewal' && capacity === 1) return 'no-slot'
      const ageMs = clock.stopwatch()
      tokenPurse.add(await store.work.takeSlots(permits), ageMs)
      const permit = tokenPurse.available() >= permits ? tokenPurse.draw('poll') : null
      void settler.add(nothing) // gives back what it does not use, at once
      if (permit === null) return 'no-slot'
      const answered = await request(permit.isGood).finally(() => {
        permit.done()
        void settler.add(nothing)
      })
      if (answered?.token) starvation.sawToken(answered.token.lifetimeMs, { requests: capacity, windowMs })
      return answered ?? 'no-slot'
    },
  })

  /** Follows a request until it is known whether it left. */
  async function followed(working: Promise<Worked>, accessToken: string): Promise<Worked> {
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
    purse,
    async readDemand(most) {
      const demand = await store.readDemand(most)
      capacity = demand.capacity
      const { spentOnSubmissions: slotsOnSubmissions, submissionsReady, tracked: accepted } = demand
      planner.press({ capacity, slotsOnSubmissions, submissionsReady, accepted })
      return demand
    },
    mayClaim,
    claim: store.work.claim,
    unclaim: store.work.unclaim,
    claimTrial: store.work.claimTrial,
    async token() {
      const verdict = await tokens.ready()
      metrics.tokenExpires(tokens.expiresAtMs() ?? 0)
      return verdict
    },
    refused: tokens.reject,
    isRefusedForAge: tokens.isRefusedForAge,
    submit: (submission, accessToken, isGood) =>
      followed(submit(submitDeps, submission, accessToken, isGood), accessToken),
    async ask(accessToken, isGood) {
      const question = harmlessRequest(deps.resource())
      const answer = await client.send(question, accessToken, isGood)
      if (answer !== null) {
        tokens.used(accessToken, answer)
        witness.requested(question.endpoint, answer)
      }
      return answer
    },
    judgeTrial,
    fingerprint: fingerprintOf,
    poll: (submission, accessToken, isGood) => followed(track(trackDeps, submission, accessToken, isGood), accessToken),
    settle: settler.add,
    newId: randomUUID,
    waited: metrics.waitedForSlot,
    worked: witness.worked,
    failed: (error) => log.error('the outcome of a request could not be worked out', { error }),
  })

  return {
    ...dispatcher,
    planner,
    starving: starvation.starving,
    unwritten: settler.unwritten,
    takeOver: () =>
      takeOver({
        readAbandoned: store.upkeep.readAbandoned,
        readOverdue: store.upkeep.readOverdue,
        holds: dispatcher.holds,
        judge: (submission, answer) => judge(submitDeps, submission, answer),
        async writeSteps(transitions) {
          const written = await store.upkeep.writeSteps(transitions)
          witness.settled({ written, heldBack: 0 })
          return written
        },
      }),
  }
}
