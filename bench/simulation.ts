import { allocateSlots, freshBalance } from '../src/daemon/dispatch/allocateSlots.ts'
import { fitProcessingTimes, type Observation, type ProcessingTimes } from '../src/daemon/track/processingTimes.ts'
import { certainty, nextPollMs, type Pressure } from '../src/daemon/track/schedule.ts'

/** One transaction, as the service knows it; only the oracle may look at `doneAtMs`. */
export interface Transaction {
  readonly acceptedAtMs: number
  readonly doneAtMs: number
  polls: number
  notDoneAtMs: number
}

/** A schedule under comparison: when to poll next, and what it learns from a transaction seen done. */
export interface Schedule {
  readonly name: string
  /** Returns the delay of the next poll, milliseconds from `nowMs`. */
  next(transaction: Transaction, nowMs: number, pressure: Pressure, random: number): number
  learn(observation: Observation): void
}

export interface Scenario {
  readonly limit: number
  readonly windowMs: number
  readonly answerMs: number
  readonly maxInFlight: number
  readonly durationMs: number
  /** What happens before is played but not counted. */
  readonly countFromMs: number
  /** Draws a processing time, milliseconds, from a number in (0, 1). */
  readonly processingMs: (random: () => number, nowMs: number) => number
  /** When records arrive; undefined: as many wait as there are slots for. */
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
  readonly finished: readonly { knownAtMs: number; delayMs: number; polls: number }[]
}

/**
 * Plays a scenario under a fake clock: slots that return a window after the answer, the dispatcher's decisions, a
 * service that counts arrivals in a strict sliding window. Nothing real is waited for, so a simulated hour takes a moment.
 */
export function simulate(scenario: Scenario): Outcome {
  const { limit, windowMs, answerMs, schedule, durationMs } = scenario
  const random = randomFrom(scenario.seed)
  const events = new Timeline<() => void>()
  const due = new Timeline<Transaction>()
  const waitingSinceMs: number[] = []
  const submitWaitsMs: number[] = []
  const arrivals: number[] = []
  const finished: { knownAtMs: number; delayMs: number; polls: number }[] = []
  let nowMs = 0
  let [slotsFree, onWire, accepted, slotsOnSubmissions, refused] = [limit, 0, 0, 0, 0]
  let balance = freshBalance(limit, nowMs)
  let againAtMs = 0

  const submissionsReady = () => (scenario.arrivalsAtMs ? waitingSinceMs.length : 1000)
  const pressure = (): Pressure => ({
    capacity: limit,
    slotsOnSubmissions,
    submissionsReady: submissionsReady(),
    accepted,
  })
  const request = (isSubmission: boolean, answered: () => void) => {
    slotsFree--
    onWire++
    if (isSubmission) slotsOnSubmissions++
    arrivals.push(nowMs + answerMs / 2)
    if ((arrivals.at(-1 - limit) ?? Number.NEGATIVE_INFINITY) > nowMs + answerMs / 2 - windowMs) refused++
    events.add(nowMs + answerMs, () => {
      onWire--
      events.add(nowMs + windowMs, () => {
        slotsFree++
        if (isSubmission) slotsOnSubmissions--
      })
      answered()
    })
  }
  const pollLater = (transaction: Transaction) => {
    const atMs = nowMs + Math.max(0, schedule.next(transaction, nowMs, pressure(), random()))
    due.add(atMs, transaction)
    events.add(atMs, () => {})
  }
  const submit = () => {
    submitWaitsMs.push(nowMs - (waitingSinceMs.shift() ?? nowMs))
    request(true, () => {
      accepted++
      const doneAtMs = nowMs + scenario.processingMs(random, nowMs)
      pollLater({ acceptedAtMs: nowMs, doneAtMs, polls: 0, notDoneAtMs: nowMs })
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
      const { acceptedAtMs, notDoneAtMs, doneAtMs, polls } = transaction
      finished.push({ knownAtMs: nowMs, delayMs: nowMs - doneAtMs, polls })
      schedule.learn({ afterMs: notDoneAtMs - acceptedAtMs, untilMs: nowMs - acceptedAtMs })
    })
  }
  const dispatch = () => {
    const spending = allocateSlots({
      nowMs,
      capacity: limit,
      slotsFree,
      wireRoom: scenario.maxInFlight - onWire,
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
  for (let atMs = 0; atMs < durationMs; atMs += windowMs / 60) events.add(atMs, () => {})
  while (events.firstAtMs <= durationMs) {
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

/** The daemon's own: fitted anew after every tenth answer, starting from no data. */
export function learned(windowMs: number): Schedule {
  const observations: Observation[] = []
  let model: ProcessingTimes = fitProcessingTimes([], windowMs)
  return {
    name: 'learned',
    next: ({ acceptedAtMs, notDoneAtMs }, _nowMs, pressure, random) =>
      nextPollMs(model, notDoneAtMs - acceptedAtMs, certainty(pressure, model), random),
    learn: (observation) => {
      observations.push(observation)
      if (observations.length <= 20 || observations.length % 10 === 0)
        model = fitProcessingTimes(observations.slice(-300), windowMs)
    },
  }
}

export function every(intervalMs: number, name: string): Schedule {
  return { name, next: () => intervalMs, learn: () => {} }
}

export function doubling(firstMs: number, maxMs: number, name: string): Schedule {
  return { name, next: ({ polls }) => Math.min(maxMs, firstMs * 2 ** polls), learn: () => {} }
}

/** Polls the moment it is done: what nobody can do, and so the bound. */
export const oracle: Schedule = {
  name: 'oracle',
  next: ({ doneAtMs }, nowMs) => doneAtMs - nowMs,
  learn: () => {},
}

/** Processing times of issue 5, for a window of `windowMs`: they scale with it. */
export function distributions(windowMs: number): Record<string, (random: () => number) => number> {
  const secondMs = windowMs / 60
  return {
    'constant 30 s ± 10 %': (random) => secondMs * 30 * (0.9 + 0.2 * random()),
    'log-normal 20 s, σ 0.6': (random) => secondMs * 20 * Math.exp(0.6 * normal(random)),
    'humps 2-5 s, 120-300 s': (random) => secondMs * (random() < 0.8 ? 2 + 3 * random() : 120 + 180 * random()),
    'exponential 20 s': (random) => secondMs * -20 * Math.log(1 - random()),
  }
}

/** Arrivals at random, `perWindow` in a window on average. */
export function arrivals(perWindow: number, windowMs: number, durationMs: number, seed: number): number[] {
  const random = randomFrom(seed)
  const times: number[] = []
  let atMs = 0
  while (atMs < durationMs) {
    atMs += (-Math.log(1 - random()) * windowMs) / perWindow
    times.push(atMs)
  }
  return times
}

export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN
}

/** Returns numbers in [0, 1), the same for the same seed (mulberry32). */
export function randomFrom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

function normal(random: () => number): number {
  return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random())
}

/** Items in order of time, first added first among equals: a binary heap, and a count of those that are due. */
class Timeline<T> {
  #heap: { atMs: number; order: number; item: T }[] = []
  #added = 0

  get firstAtMs(): number {
    return this.#heap[0]?.atMs ?? Number.POSITIVE_INFINITY
  }

  countUntil(nowMs: number): number {
    return this.#count(0, nowMs)
  }

  #count(i: number, nowMs: number): number {
    const entry = this.#heap[i]
    if (entry === undefined || entry.atMs > nowMs) return 0
    return 1 + this.#count(2 * i + 1, nowMs) + this.#count(2 * i + 2, nowMs)
  }

  add(atMs: number, item: T): void {
    const heap = this.#heap
    heap.push({ atMs, order: this.#added++, item })
    for (let i = heap.length - 1; i > 0; ) {
      const parent = (i - 1) >> 1
      if (!this.#before(i, parent)) break
      this.#swap(i, parent)
      i = parent
    }
  }

  take(): T {
    const heap = this.#heap
    this.#swap(0, heap.length - 1)
    const taken = heap.pop()
    if (taken === undefined) throw new Error('took from an empty timeline')
    for (let i = 0; ; ) {
      let least = i
      for (const child of [2 * i + 1, 2 * i + 2]) if (child < heap.length && this.#before(child, least)) least = child
      if (least === i) return taken.item
      this.#swap(i, least)
      i = least
    }
  }

  #before(i: number, j: number): boolean {
    const [a, b] = [this.#heap[i], this.#heap[j]]
    if (a === undefined || b === undefined) return false
    return a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order)
  }

  #swap(i: number, j: number): void {
    const [a, b] = [this.#heap[i], this.#heap[j]]
    if (a === undefined || b === undefined) return
    this.#heap[i] = b
    this.#heap[j] = a
  }
}
