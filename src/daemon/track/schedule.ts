import { ageAtPosition, binPosition, meanMs, type ProcessingTimes } from './processingTimes.ts'

/**
 * How long to wait before asking for this transaction next, in milliseconds after it was seen pending at `notDoneAgeMs`.
 *
 * `certainty` is the share of polls that shall find the transaction done, so a record costs 1 / `certainty` polls.
 * Within that budget the schedule keeps the mean delay between done and known as short as it can: it weighs a poll
 * against waiting at one price for all ages, instead of aiming at the same probability at each. Where most are done
 * in seconds and a few in minutes, it asks early of as many as the budget allows, and late of the others.
 *
 * @param model processing times as weighted intervals, milliseconds
 * @param notDoneAgeMs age since acceptance at which it was last seen pending; 0 if it has not been asked for yet
 * @param certainty between 0 and 1: high when slots are short, low when they are idle; see {@link certainty}
 * @param random in [0, 1), fresh for each call: mixes neighbouring plans, and makes 2 % of first polls explore
 * @returns at least 1/240 and at most 10 windows: 250 ms to 10 minutes at a window of 60 s
 * @see docs/interface.md, 3.1: how often to ask is the client’s to choose
 */
export function nextPollMs(model: ProcessingTimes, notDoneAgeMs: number, certainty: number, random: number): number {
  const ageMs = Math.max(0, notDoneAgeMs)
  const explores = ageMs === 0 && random < EXPLORING_SHARE
  const pollsPerRecord = Math.max(1 / certainty, explores ? EXPLORING_POLLS : 1)
  const plan = chosenPlan(plansFor(model), pollsPerRecord, random)
  const position = binPosition(ageMs, model.windowMs)
  const bin = Math.min(plan.next.length - 1, Math.floor(position))
  const low = plan.next[bin] ?? 0
  const high = plan.next[bin + 1] ?? low + 1
  const dueMs = ageAtPosition(model, low + (position - bin) * (high - low))
  return Math.min(gapMaxMs(model), Math.max(gapMinMs(model), dueMs - ageMs))
}

/** What the budget looks like at the moment, over all instances. */
export interface Pressure {
  /** Requests that the limit allows in a window. */
  readonly capacity: number
  /** Slots that submissions have taken and that are not free again yet: about the submissions of the last window. */
  readonly slotsOnSubmissions: number
  /** Submissions that only wait for a slot. */
  readonly submissionsReady: number
  /** Transactions accepted and not yet seen to their end. */
  readonly accepted: number
}

/**
 * How sure a poll should be to find its transaction done: 1 / the polls per record that the budget has room for.
 *
 * A window's slots, less the submissions' and a reserve, are shared among the records that pass in a window. While
 * submissions wait there is nothing to share and it is at its highest; when they stop, it falls within a window.
 *
 * @param model the endpoint's processing times: where they are longer than the window, fewer of the accepted are due in it
 */
export function certainty(pressure: Pressure, model: ProcessingTimes): number {
  const { capacity, slotsOnSubmissions, submissionsReady, accepted } = pressure
  const dueShare = Math.min(1, model.windowMs / meanMs(model))
  const submissions = Math.max(slotsOnSubmissions, submissionsReady)
  const records = Math.max(slotsOnSubmissions, accepted * dueShare, 1)
  const pollsPerRecord = (capacity * (1 - RESERVE_SHARE) - submissions) / records
  const pollsToLearn = POLLS_UNLEARNED / (1 + model.observations)
  return 1 / Math.min(POLLS_MAX, Math.max(POLLS_SATURATED + pollsToLearn, pollsPerRecord))
}

/**
 * 100 / 2.03 is 49 records a minute, and a real daemon loses some of that. Fewer polls would be worse: what is certain to be
 * done is so only minutes later, in the prior's tail, and a burst after an idle time would wait for it.
 */
const POLLS_SATURATED = 1.03
/** With no data the first polls teach more than they cost: more than twice as many, fading as observations come. */
const POLLS_UNLEARNED = 1.5
/** More would shorten the wait by tenths of a second, and be missed when records come in a bunch. */
const POLLS_MAX = 12
const RESERVE_SHARE = 0.25
const EXPLORING_SHARE = 0.02
const EXPLORING_POLLS = 2

/** A price per poll and the schedule that is cheapest at it: from each bin's lower edge, the edge to poll at next. */
interface Plan {
  readonly pollsPerRecord: number
  readonly next: readonly number[]
}

const plansByModel = new WeakMap<ProcessingTimes, readonly Plan[]>()

/** The plans for all prices, the most polls first; they depend on the model alone, so one reckoning serves every poll. */
function plansFor(model: ProcessingTimes): readonly Plan[] {
  const known = plansByModel.get(model)
  if (known) return known
  const plans = Array.from({ length: PRICES }, (_, k) => planAt(model, model.windowMs * PRICE_MIN_WINDOWS * 2 ** k))
  plansByModel.set(model, plans)
  return plans
}

/** 4 ms to over a day at a window of 60 s: from polling all the time to once when it is all but certain. */
const PRICES = 26
const PRICE_MIN_WINDOWS = 2 ** -14

/**
 * The schedule with the least expected sum of delay and `priceMs` a poll, by dynamic programming from the last edge back.
 *
 * cost(i) = the least over j > i of  priceMs * P(not done at i) + E[delay of those done between i and j] + cost(j)
 *
 * The best j never falls as i rises (the delay term is a Monge array), so the search for i ends at the answer for i + 1.
 */
function planAt(model: ProcessingTimes, priceMs: number): Plan {
  const { edgesMs, mass } = model
  const bins = mass.length
  const cost = new Float64Array(bins + 1)
  const polls = new Float64Array(bins + 1)
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
    polls[i] = notDone + (polls[next[i] ?? bins] ?? 0)
  }
  return { pollsPerRecord: polls[0] ?? 1, next }
}

/** Of the two plans on either side of the wanted polls per record, one by chance, so that they come out on average. */
function chosenPlan(plans: readonly Plan[], pollsPerRecord: number, random: number): Plan {
  const after = plans.findIndex((plan) => plan.pollsPerRecord <= pollsPerRecord)
  const fewer = plans.at(after) as Plan
  const more = plans[after - 1]
  if (more === undefined || after === -1) return fewer
  const shareOfMore = (pollsPerRecord - fewer.pollsPerRecord) / (more.pollsPerRecord - fewer.pollsPerRecord)
  return random < shareOfMore ? more : fewer
}

function gapMinMs({ windowMs }: ProcessingTimes): number {
  return windowMs / 240
}

function gapMaxMs({ windowMs }: ProcessingTimes): number {
  return windowMs * 10
}
