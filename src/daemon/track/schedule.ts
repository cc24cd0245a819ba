import { ageMsAtFractionalBin, fractionalBinOfAge, type ProcessingTimes } from './processingTimes.ts'

/**
 * Returns how long to wait before the next poll, in milliseconds after the transaction was seen pending at
 * `notDoneAgeMs`. Minimises the expected delay plus the price of the polls.
 *
 * @param notDoneAgeMs age since acceptance; 0 before the first poll
 * @param pollPriceMs price of a poll in milliseconds of delay; see docs/why/schedule.md
 * @param random in [0, 1), new for each call: mixes neighbouring plans, and lets 2 % of first polls explore
 * @returns at least 1/240 and at most 10 windows: 250 ms to 10 minutes at a window of 60 s
 */
export function pollDelayAfterNotDoneMs(
  model: ProcessingTimes,
  notDoneAgeMs: number,
  pollPriceMs: number,
  random: number,
): number {
  const ageMs = Math.max(0, notDoneAgeMs)
  const explores = ageMs === 0 && random < EXPLORING_SHARE
  const pollsLeast = Math.max(POLLS_LEAST + POLLS_UNLEARNED / (1 + model.observations), explores ? EXPLORING_POLLS : 0)
  const step = Math.min(stepOf(pollPriceMs, model), stepFor(model, pollsLeast))
  const plan = planFor(model, Math.floor(step + random))
  const position = fractionalBinOfAge(ageMs, model.windowMs)
  const bin = Math.min(plan.next.length - 1, Math.floor(position))
  const low = plan.next[bin] ?? 0
  const high = plan.next[bin + 1] ?? low + 1
  const dueMs = ageMsAtFractionalBin(model, low + (position - bin) * (high - low))
  return Math.min(gapMaxMs(model), Math.max(gapMinMs(model), dueMs - ageMs))
}

export function expectedPollCount(model: ProcessingTimes, notDoneAgeMs: number, pollPriceMs: number): number {
  const plan = planFor(model, Math.round(stepOf(pollPriceMs, model)))
  const bin = Math.min(plan.polls.length - 2, Math.floor(fractionalBinOfAge(Math.max(0, notDoneAgeMs), model.windowMs)))
  return plan.polls[bin] ?? 1
}

/** The fewest polls per record. Fewer would rely on the prior's tail, which was not measured. */
const POLLS_LEAST = 1.03
/** Further polls while there are few observations, because polls then teach more than they cost. */
const POLLS_UNLEARNED = 1.5
const EXPLORING_SHARE = 0.02
const EXPLORING_POLLS = 2

interface Plan {
  /** For each bin, the expected number of polls of a record that is not done at the bin's lower edge. */
  readonly polls: readonly number[]
  /** For each bin, the index of the edge at which a record that is not done at the bin's lower edge is polled next. */
  readonly next: readonly number[]
}

const plansByModel = new WeakMap<ProcessingTimes, (Plan | undefined)[]>()

/** Computes each plan of a model once, so that all polls share the plan. */
function planFor(model: ProcessingTimes, step: number): Plan {
  const plans = plansByModel.get(model) ?? []
  plansByModel.set(model, plans)
  const index = Math.min(STEPS - 1, Math.max(0, step))
  const plan = plans[index] ?? planAt(model, model.windowMs * PRICE_MIN_WINDOWS * 2 ** (index / STEPS_PER_DOUBLING))
  plans[index] = plan
  return plan
}

function stepOf(priceMs: number, { windowMs }: ProcessingTimes): number {
  const windows = Math.max(priceMs / windowMs, PRICE_MIN_WINDOWS)
  return Math.min(STEPS - 1, STEPS_PER_DOUBLING * Math.log2(windows / PRICE_MIN_WINDOWS))
}

function stepFor(model: ProcessingTimes, pollsPerRecord: number): number {
  let [low, high] = [0, STEPS - 1]
  while (low < high) {
    const middle = Math.floor((low + high) / 2)
    if ((planFor(model, middle).polls[0] ?? 1) <= pollsPerRecord) high = middle
    else low = middle + 1
  }
  return low
}

const PRICE_MIN_WINDOWS = 2 ** -14
const STEPS_PER_DOUBLING = 2
const STEPS = 25 * STEPS_PER_DOUBLING + 1

/**
 * Computes the schedule with the least expected sum of delay and `priceMs` per poll, by dynamic programming from the
 * last edge back.
 *
 * cost(i) = the least over j > i of  priceMs * P(not done at i) + E[delay of those done between i and j] + cost(j)
 *
 * The best j never falls as i rises (the delay term is a Monge array), so the search for i ends at the answer for i +
 * 1.
 */
function planAt(model: ProcessingTimes, priceMs: number): Plan {
  const { edgesMs, mass } = model
  const bins = mass.length
  const cost = new Float64Array(bins + 1)
  const pollsOfAll = new Float64Array(bins + 1)
  const polls = new Array<number>(bins + 1).fill(0)
  const next = new Array<number>(bins + 1).fill(bins + 1)
  next[bins] = bins
  let notDone = 0
  for (let i = bins - 1; i >= 0; i--) {
    const startMs = edgesMs[i] ?? 0
    notDone += mass[i] ?? 0
    let best = Number.POSITIVE_INFINITY
    let done = 0
    let doneTimesAge = 0
    const last = Math.min(bins, next[i + 1] ?? bins)
    for (let j = i + 1; j <= last; j++) {
      const share = mass[j - 1] ?? 0
      const edge = edgesMs[j] ?? 0
      done += share
      doneTimesAge += (share * ((edgesMs[j - 1] ?? 0) + edge)) / 2
      const tooEarly = edge - startMs < gapMinMs(model) && j < last
      if (tooEarly) continue
      if (edge - startMs > gapMaxMs(model) && best < Number.POSITIVE_INFINITY) break
      const candidate = done * edge - doneTimesAge + (cost[j] ?? 0)
      if (candidate < best) {
        best = candidate
        next[i] = j
      }
    }
    cost[i] = best + priceMs * notDone
    pollsOfAll[i] = notDone + (pollsOfAll[next[i] ?? bins] ?? 0)
    polls[i] = notDone > 0 ? (pollsOfAll[i] ?? 0) / notDone : 1
  }
  return { polls, next }
}

function gapMinMs({ windowMs }: ProcessingTimes): number {
  return windowMs / 240
}

function gapMaxMs({ windowMs }: ProcessingTimes): number {
  return windowMs * 10
}
