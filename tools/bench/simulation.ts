import { allocateRequests, initialAllocationBalance } from '../../src/daemon/dispatch/planRound.ts'
import type { PollCompetitors } from '../../src/daemon/pollPlanner.ts'
import type { PollLoad } from '../../src/model/dispatch.ts'
import { Timeline } from './harness/timeline.ts'
import { randomFrom } from './harness/workloads.ts'

/** A transaction as the service knows it. Only the oracle may read `doneAtMs`. */
export interface Transaction {
  readonly committedAtMs: number
  readonly acceptedAtMs: number
  readonly doneAtMs: number
  polls: number
  notDoneAtMs: number
}

/** A poll that is not due yet. */
export interface Planned {
  readonly transaction: Transaction
  readonly atMs: number
}

/** A schedule to compare: it decides when to poll next, learns from finished transactions, and moves polls. */
export interface Schedule {
  readonly name: string
  /** Gets what the dispatcher sees, at each tick. */
  press(seen: PollCompetitors & PollLoad, nowMs: number): void
  /** Returns the delay of the next poll, milliseconds from `nowMs`. */
  next(transaction: Transaction, nowMs: number): number
  /** @param processingTimeMs the middle between last seen pending and first seen done */
  learn(processingTimeMs: number): void
  /** Returns the polls with a changed time. Called sixty times a window. @param planned the next poll first */
  replan(planned: readonly Planned[], nowMs: number): Planned[]
}

export interface Scenario {
  readonly limit: number
  readonly windowMs: number
  readonly answerMs: number
  readonly maxInFlight: number
  readonly durationMs: number
  /** What happens before this time is simulated but not counted. */
  readonly countFromMs: number
  /** Draws a processing time, milliseconds, from random numbers in (0, 1). */
  readonly processingMs: (random: () => number, nowMs: number) => number
  /** When records arrive; undefined if there are always as many as free requests. */
  readonly arrivalsAtMs: readonly number[] | undefined
  readonly schedule: Schedule
  readonly seed: number
}

export interface Outcome {
  readonly recordsPerWindow: number
  readonly pollsPerRecord: number
  readonly delaysMs: readonly number[]
  readonly submitWaitsMs: readonly number[]
  /** Requests that a strict sliding window at the service would have refused. */
  readonly refused: number
  readonly finished: readonly Finished[]
}

/** A transaction whose end the daemon knows. */
export interface Finished {
  readonly committedAtMs: number
  readonly knownAtMs: number
  /** Time from the end at the service until the daemon knows it. */
  readonly delayMs: number
  readonly polls: number
}

/** Number of waiting records if there is always one more. */
const ENDLESS = 100_000

/**
 * Simulates a scenario with a fake clock: requests that count until a window after the answer, the dispatcher's
 * decisions, and a service that counts arrivals in a strict sliding window. It never waits, so a simulated hour takes a
 * moment.
 */
export function simulate(scenario: Scenario): Outcome {
  const { limit, windowMs, answerMs, schedule, durationMs } = scenario
  /** A separate random stream, so that the n-th record takes equally long under every schedule. */
  const random = randomFrom(scenario.seed)
  const events = new Timeline<() => void>()
  const due = new Timeline<Transaction>()
  const waitingSinceMs: number[] = []
  const submitWaitsMs: number[] = []
  const arrivals: number[] = []
  const finished: Finished[] = []
  let nowMs = 0
  let [free, onWire, accepted, submissionsSent, refused] = [limit, 0, 0, 0, 0]
  let balance = initialAllocationBalance(limit, nowMs)
  let againAtMs = 0

  const submissionsReady = () => (scenario.arrivalsAtMs ? waitingSinceMs.length : ENDLESS)
  const seen = () => ({
    limit,
    submissionsReady: submissionsReady(),
    pollsDue: due.countUntil(nowMs),
    submissionsSent,
    tracked: accepted,
  })
  const request = (isSubmission: boolean, answered: () => void) => {
    free--
    onWire++
    if (isSubmission) submissionsSent++
    arrivals.push(nowMs + answerMs / 2)
    if ((arrivals.at(-1 - limit) ?? Number.NEGATIVE_INFINITY) > nowMs + answerMs / 2 - windowMs) refused++
    events.add(nowMs + answerMs, () => {
      onWire--
      events.add(nowMs + windowMs, () => {
        free++
        if (isSubmission) submissionsSent--
      })
      answered()
    })
  }
  const pollLater = (transaction: Transaction) => {
    const atMs = nowMs + Math.max(0, schedule.next(transaction, nowMs))
    due.add(atMs, transaction)
    events.add(atMs, () => {})
  }
  const submit = () => {
    const committedAtMs = waitingSinceMs.shift() ?? nowMs
    submitWaitsMs.push(nowMs - committedAtMs)
    request(true, () => {
      accepted++
      const doneAtMs = nowMs + scenario.processingMs(random, nowMs)
      pollLater({ committedAtMs, acceptedAtMs: nowMs, doneAtMs, polls: 0, notDoneAtMs: nowMs })
    })
  }
  const poll = (transaction: Transaction) => {
    const askedAtMs = nowMs + answerMs / 2
    transaction.polls++
    request(false, () => {
      if (transaction.doneAtMs > askedAtMs) {
        transaction.notDoneAtMs = nowMs
        return pollLater(transaction)
      }
      accepted--
      const { committedAtMs, acceptedAtMs, notDoneAtMs, doneAtMs, polls } = transaction
      finished.push({ committedAtMs, knownAtMs: nowMs, delayMs: nowMs - doneAtMs, polls })
      schedule.learn((notDoneAtMs + nowMs) / 2 - acceptedAtMs)
    })
  }
  const replan = () => {
    const planned = due.after(nowMs).map(({ item: transaction, atMs }) => ({ transaction, atMs }))
    const moved = schedule.replan(planned, nowMs)
    if (moved.length > 0) due.move(new Map(moved.map(({ transaction, atMs }) => [transaction, atMs])))
    for (const { atMs } of moved) events.add(Math.max(nowMs, atMs), () => {})
  }
  const dispatch = () => {
    schedule.press(seen(), nowMs)
    const spending = allocateRequests({
      nowMs,
      limit,
      free,
      inFlightRoom: scenario.maxInFlight - onWire,
      submissionsReady: submissionsReady(),
      pollsDue: due.countUntil(nowMs),
      rarePollsDue: 0,
      oldestPollOverdueMs: Math.max(0, nowMs - due.firstAtMs),
      windowMs,
      balance,
    })
    balance = spending.balance
    if (spending.againInMs !== undefined && !(againAtMs > nowMs && againAtMs <= nowMs + spending.againInMs + 1)) {
      againAtMs = nowMs + spending.againInMs
      events.add(againAtMs, () => {})
    }
    for (let n = 0; n < spending.polls; n++) poll(due.take())
    for (let n = 0; n < spending.submissions; n++) submit()
  }

  for (const atMs of scenario.arrivalsAtMs ?? []) events.add(atMs, () => waitingSinceMs.push(nowMs))
  for (let atMs = 0; atMs < durationMs; atMs += windowMs / 60) events.add(atMs, replan)
  const records = scenario.arrivalsAtMs?.length ?? Number.POSITIVE_INFINITY
  while (events.firstAtMs <= durationMs && finished.length < records) {
    nowMs = events.firstAtMs
    events.take()()
    dispatch()
  }
  const counted = finished.filter(({ knownAtMs }) => knownAtMs >= scenario.countFromMs)
  return {
    recordsPerWindow: (counted.length * windowMs) / (durationMs - scenario.countFromMs),
    pollsPerRecord: counted.reduce((sum, { polls }) => sum + polls, 0) / counted.length,
    delaysMs: counted.map(({ delayMs }) => delayMs),
    submitWaitsMs,
    refused,
    finished,
  }
}
