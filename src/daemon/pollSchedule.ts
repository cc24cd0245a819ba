/** What a poll competes with. */
export interface BudgetPressure {
  /** Requests that a window has room for. */
  readonly limit: number
  readonly submissionsWaiting: number
  /** Transactions that are not known to be done. */
  readonly accepted: number
  /** Submissions that are sent in a window, on average. */
  readonly submissionsPerWindow: number
}

interface ProcessingTime {
  readonly ms: number
  readonly weight: number
}

/**
 * When to poll the transactions of one resource (docs/why/budget.md).
 *
 * The last processing times are the distribution of the next ones. A plan polls at some of these times: those with the
 * least sum of delay, from done to known, and price of all polls. The price is how long a poll delays other records.
 */
export class PollSchedule {
  readonly #windowMs: number
  readonly #meanMs: number
  /** The longest first. Empty if too few are known for a plan. */
  readonly #times: readonly ProcessingTime[]
  /** By step of the price, so that many polls share a plan. */
  readonly #plans = new Map<number, PollPlan>()

  /** @param timesMs processing times, the newest last */
  constructor(timesMs: readonly number[], windowMs: number) {
    const known = timesMs.toReversed().map((ms, newer) => ({ ms, weight: 0.5 ** (newer / HALF_LIFE_RECORDS) }))
    const weight = sum(known.map((time) => time.weight))
    this.#windowMs = windowMs
    this.#meanMs = sum(known.map((time) => time.ms * time.weight)) / weight
    const times = [...known, ...imaginaryTimes(timesMs, weight * IMAGINARY_SHARE, windowMs / 60)]
    this.#times = known.length < KNOWN_LEAST ? [] : times.sort((a, b) => b.ms - a.ms)
  }

  /**
   * @param notDoneAgeMs age since acceptance at which the transaction was not done; 0 before the first poll
   * @returns milliseconds from that age to the next poll: at least 1/240 of a window, at most 60 windows
   */
  nextPollDelayMs(notDoneAgeMs: number, pressure: BudgetPressure): number {
    const delayMs = this.#nextPollAgeMs(notDoneAgeMs, pressure) - notDoneAgeMs
    return Math.min(this.#windowMs * DELAY_MAX_WINDOWS, Math.max(this.#windowMs / 240, delayMs))
  }

  #nextPollAgeMs(notDoneAgeMs: number, pressure: BudgetPressure): number {
    if (this.#times.length === 0) return Math.max(this.#windowMs / 12, notDoneAgeMs * AGE_FACTOR)
    const { shortest } = this.#plan(this.#priceStep(pressure))
    let time = shortest
    while (time !== null && time.ms <= notDoneAgeMs) time = time.longer
    return time === null ? notDoneAgeMs * AGE_FACTOR : time.pollAtMs
  }

  /**
   * A poll delays each waiting record by window / limit, and in part the polls of transactions that end within a window.
   * The price rises until the limit has room for the submissions and all polls.
   */
  #priceStep({ limit, submissionsWaiting, accepted, submissionsPerWindow }: BudgetPressure): number {
    const endingSoon = accepted * Math.min(1, this.#windowMs / this.#meanMs)
    const delayed = Math.min(submissionsWaiting, limit * WAITING_MAX_WINDOWS) + endingSoon * ACCEPTED_SHARE
    const pollsMost = Math.max(POLLS_LEAST, (limit * LOAD_MAX) / submissionsPerWindow - 1)
    let step = Math.max(0, Math.round(Math.log(delayed / limit / PRICE_LEAST_WINDOWS) / Math.log(PRICE_STEP)))
    while (step < PRICE_STEPS && this.#plan(step).pollsPerRecord > pollsMost) step++
    return step
  }

  #plan(step: number): PollPlan {
    const known = this.#plans.get(step)
    if (known !== undefined) return known
    const plan = planPolls(this.#times, this.#windowMs * PRICE_LEAST_WINDOWS * PRICE_STEP ** step)
    this.#plans.set(step, plan)
    return plan
  }
}

/** Returns times that make a plan look early if that costs little, so that a service that became faster is noticed. */
function imaginaryTimes(timesMs: readonly number[], weight: number, shortestMs: number): ProcessingTime[] {
  const ratio = Math.max(1, ...timesMs.map((ms) => ms / shortestMs))
  const most = IMAGINARY_TIMES - 1
  return Array.from({ length: IMAGINARY_TIMES }, (_, i) => ({ ms: shortestMs * ratio ** (i / most), weight }))
}

export interface PollPlan {
  readonly shortest: PlannedTime | null
  readonly pollsPerRecord: number
}

/** A processing time in a plan. The plan's fields are for transactions that are not done before this time. */
interface PlannedTime extends ProcessingTime {
  readonly longer: PlannedTime | null
  readonly weightNotDone: number
  pollAtMs: number
  cost: number
  polls: number
}

/**
 * Plans the polls with the least cost, by dynamic programming from the longest time back:
 *
 *     cost(i) = price × weight not done before i + the least over j ≥ i of (delay of i … j until j + cost(j + 1))
 *
 * A longer i never has a shorter best j, so the search for i ends at the best j of i + 1.
 *
 * @param times the longest first
 */
export function planPolls(times: readonly ProcessingTime[], priceMs: number): PollPlan {
  let longer: PlannedTime | null = null
  for (const { ms, weight } of times) {
    const weightNotDone: number = weight + (longer?.weightNotDone ?? 0)
    const time: PlannedTime = {
      ms,
      weight,
      longer,
      weightNotDone,
      pollAtMs: ms,
      cost: Number.POSITIVE_INFINITY,
      polls: 0,
    }
    const lastMs: number = longer?.pollAtMs ?? ms
    let [done, delay, beforeMs] = [0, 0, ms]
    for (let at: PlannedTime | null = time; at !== null && at.ms <= lastMs && delay < time.cost; at = at.longer) {
      delay += done * (at.ms - beforeMs)
      done += at.weight
      beforeMs = at.ms
      const cost = delay + (at.longer?.cost ?? 0)
      if (cost < time.cost) {
        time.cost = cost
        time.pollAtMs = at.ms
        time.polls = at.longer?.polls ?? 0
      }
    }
    time.cost += priceMs * weightNotDone
    time.polls += weightNotDone
    longer = time
  }
  return { shortest: longer, pollsPerRecord: longer === null ? 1 : longer.polls / longer.weightNotDone }
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}

/** A time weighs half as much as one that is this many records newer. */
const HALF_LIFE_RECORDS = 80
/** With fewer known times there is no plan. */
const KNOWN_LEAST = 5
const IMAGINARY_TIMES = 5
const IMAGINARY_SHARE = 0.01
/** Without a plan, a poll comes at this multiple of the age. */
const AGE_FACTOR = 1.5
const DELAY_MAX_WINDOWS = 60

/** 0.24 s at a window of 60 s. */
const PRICE_LEAST_WINDOWS = 1 / 250
const PRICE_STEP = 1.25
const WAITING_MAX_WINDOWS = 30
/** Up to the price of the most waiting records. Beyond it, polls would stop although requests are free. */
const PRICE_STEPS = Math.round(Math.log(WAITING_MAX_WINDOWS / PRICE_LEAST_WINDOWS) / Math.log(PRICE_STEP))
const ACCEPTED_SHARE = 1 / 5
const LOAD_MAX = 0.95
/** Fewer polls than this are not worth their delay: a price that is too high makes the waiting records wait. */
const POLLS_LEAST = 1.05
