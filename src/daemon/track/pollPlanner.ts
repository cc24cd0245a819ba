import { endStates, type MovedPoll, type PlannedPoll, type State } from '../../model.ts'
import { makePerResource, type Resource } from '../../resources.ts'
import {
  fitProcessingTimes,
  meanProcessingTimeMs,
  type ObservedProcessingTime,
  type ProcessingTimes,
  processingTimeQuantileMs,
} from './processingTimes.ts'
import { expectedPollCount, pollDelayAfterNotDoneMs } from './schedule.ts'

export interface PlannerInput extends Pick<BudgetPressure, 'capacity' | 'submissionsWaiting' | 'accepted'> {
  readonly submissionsSent: number
  readonly nowMs: number
}

export type PollPlanner = ReturnType<typeof createPollPlanner>

/** For replans: never explores. If each replan drew a number, the earliest plan would win. */
const noChance = 1 - Number.EPSILON

/** @param random returns a number in [0, 1), new for each call */
export function createPollPlanner(windowMs: number, capacity: number, random: () => number) {
  let models: Record<Resource, ProcessingTimes> = makePerResource(() => fitProcessingTimes([], windowMs))
  let pressure: BudgetPressure = { capacity, submissionsWaiting: 0, accepted: 0, inflow: 0 }
  const inflow = createInflowAverage(windowMs)
  let awaitedAgesMs: Record<Resource, number[]> = makePerResource(() => [])
  const prices = new Map<Resource, number>()

  function priceMs(resource: Resource): number {
    const known = prices.get(resource)
    if (known !== undefined) return known
    const price = computePollPriceMs(pressure, awaitedAgesMs[resource], models[resource])
    prices.set(resource, price)
    return price
  }

  return {
    learn(observations: readonly (ObservedProcessingTime & { resource: Resource })[]): void {
      models = makePerResource((resource) =>
        fitProcessingTimes(
          observations.filter((each) => each.resource === resource),
          windowMs,
        ),
      )
      prices.clear()
    },
    updatePressure(seen: PlannerInput): void {
      pressure = { ...seen, inflow: inflow.perWindow(seen) }
      prices.clear()
    },
    nextPollDelayMs: (resource: Resource, notDoneAgeMs: number): number =>
      pollDelayAfterNotDoneMs(models[resource], notDoneAgeMs, priceMs(resource), random()),
    mayReplan: (): boolean => pressure.accepted > 0 && pressure.submissionsWaiting === 0,
    replan(polls: readonly PlannedPoll[]): MovedPoll[] {
      awaitedAgesMs = makePerResource((resource) =>
        polls.filter((poll) => poll.resource === resource).map(({ notDoneMs }) => notDoneMs ?? 0),
      )
      prices.clear()
      return findPollsToMoveEarlier(polls, (resource, notDoneAgeMs) =>
        pollDelayAfterNotDoneMs(models[resource], notDoneAgeMs, priceMs(resource), noChance),
      )
    },
  }
}

export interface BudgetPressure {
  readonly capacity: number
  readonly submissionsWaiting: number
  readonly accepted: number
  /** Records per window, a moving average. */
  readonly inflow: number
}

/**
 * Returns what a poll costs: the milliseconds by which its slot delays all other records (docs/why/schedule.md).
 *
 * While submissions wait, the slot delays each of them by at least window / limit. Otherwise, returns the lowest price
 * at which the polls of all accepted records fit into the slots of the time in which they end.
 *
 * @param awaitedAgesMs ages at which accepted transactions were last seen pending, if known
 */
export function computePollPriceMs(
  pressure: BudgetPressure,
  awaitedAgesMs: readonly number[],
  model: ProcessingTimes,
): number {
  const { submissionsWaiting, accepted } = pressure
  const eachMs = delayEachMs(pressure, model)
  const leastMs = Math.max(model.windowMs * FLOOR_WINDOWS, submissionsWaiting * eachMs)
  const mostMs = Math.max(leastMs, (submissionsWaiting + accepted) * eachMs)
  const slots = slotsInSight(pressure, model)
  const fits = (priceMs: number) => slotsWanted(pressure, awaitedAgesMs, model, priceMs) <= slots
  if (fits(leastMs)) return leastMs
  let [tooLow, enough] = [leastMs, mostMs]
  while (enough / tooLow > PRECISION) {
    const middle = Math.sqrt(tooLow * enough)
    if (fits(middle)) enough = middle
    else tooLow = middle
  }
  return enough
}

/** The lowest price: 0.24 s at a window of 60 s. It fits if a batch comes every 125 windows. */
const FLOOR_WINDOWS = 1 / 250
/** The same share of slots that the dispatcher reserves for submissions. */
const RESERVE_SHARE = 0.1
const HORIZON_SHARE = 0.95
const LOAD_MAX = 0.9
const SLOTS_LEAST = 2
const PRECISION = 1.1

function delayEachMs({ capacity, inflow }: BudgetPressure, { windowMs }: ProcessingTimes): number {
  const slots = Math.max(1, capacity)
  const load = Math.min(LOAD_MAX, (inflow * SLOTS_LEAST) / slots)
  return windowMs / slots / (1 - load)
}

function slotsInSight({ capacity }: BudgetPressure, model: ProcessingTimes): number {
  return capacity * horizonWindows(model) * (1 - RESERVE_SHARE)
}

/**
 * Counts the slots that are wanted within the horizon: for the usual inflow, and for the polls of a batch beyond that
 * inflow.
 */
function slotsWanted(
  { submissionsWaiting, accepted, inflow }: BudgetPressure,
  awaitedAgesMs: readonly number[],
  model: ProcessingTimes,
  priceMs: number,
): number {
  const pollsEach = expectedPollCount(model, 0, priceMs)
  const pollsSeen = awaitedAgesMs.reduce((sum, ageMs) => sum + expectedPollCount(model, ageMs, priceMs), 0)
  const pollsAwaited = pollsSeen + Math.max(0, accepted - awaitedAgesMs.length) * pollsEach
  const usual = (inflow * meanProcessingTimeMs(model)) / model.windowMs
  const ofBatch = accepted > usual ? pollsAwaited * (1 - usual / accepted) : 0
  return (submissionsWaiting + inflow * horizonWindows(model)) * (1 + pollsEach) + ofBatch
}

function horizonWindows(model: ProcessingTimes): number {
  return Math.max(1, processingTimeQuantileMs(model, HORIZON_SHARE) / model.windowMs)
}

const memoryWindows = 5

/** A window counts at most half of the capacity, so that a batch does not look like a steady inflow. */
export function createInflowAverage(windowMs: number) {
  let average = 0
  let last: { atMs: number; waiting: number } | null = null
  return {
    perWindow({
      capacity,
      submissionsSent,
      submissionsWaiting: waiting,
      nowMs,
    }: Omit<PlannerInput, 'accepted'>): number {
      last ??= { atMs: nowMs, waiting }
      const windows = (nowMs - last.atMs) / windowMs
      if (windows < 1) return average
      const came = Math.min(capacity / 2, Math.max(0, submissionsSent + waiting - last.waiting))
      const kept = Math.exp(-windows / memoryWindows)
      average = average * kept + came * (1 - kept)
      last = { atMs: nowMs, waiting }
      return average
    },
  }
}

const worthwhileShare = 0.2

/** Finds polls that were planned when slots were short, and that would now be planned earlier. Never delays a poll. */
export function findPollsToMoveEarlier(
  polls: readonly PlannedPoll[],
  nextPollDelayMs: (resource: Resource, notDoneAgeMs: number) => number,
): MovedPoll[] {
  return polls.flatMap(({ submissionId, jobId, resource, ageMs, notDoneMs, inMs }) => {
    const notDoneAgeMs = notDoneMs ?? 0
    const betterInMs = Math.max(0, notDoneAgeMs + nextPollDelayMs(resource, notDoneAgeMs) - ageMs)
    return betterInMs < inMs * (1 - worthwhileShare) ? [{ submissionId, jobId, inMs: betterInMs }] : []
  })
}

export interface PollPlanUpdaterDeps {
  planner: Pick<PollPlanner, 'learn' | 'mayReplan' | 'replan'>
  windowMs: number
  readProcessingTimes(limit: number): Promise<Parameters<PollPlanner['learn']>[0]>
  readPlannedPolls(limit: number): Promise<PlannedPoll[]>
  movePolls(moves: readonly MovedPoll[]): Promise<void>
  onMoved(): void
}

const roundMaxMs = 1_000
const replanMax = 200
const learnFromMax = 600
const ends: ReadonlySet<State> = new Set(endStates)

export function createPollPlanUpdater(deps: PollPlanUpdaterDeps) {
  const { planner, windowMs } = deps
  let completions = 0
  let learnedFrom: number | null = null

  async function learn(): Promise<void> {
    if (completions === learnedFrom) return
    const upTo = completions
    planner.learn(await deps.readProcessingTimes(learnFromMax))
    learnedFrom = upTo
  }

  async function movePolls(): Promise<void> {
    if (!planner.mayReplan()) return
    const moves = planner.replan(await deps.readPlannedPolls(replanMax))
    if (moves.length === 0) return
    await deps.movePolls(moves)
    deps.onMoved()
  }

  return {
    async runOnce(): Promise<number> {
      await learn()
      await movePolls()
      return Math.min(roundMaxMs, windowMs / 60)
    },
    onWritten(written: readonly { state: State; polls: number }[]): void {
      completions += written.filter(({ state, polls }) => ends.has(state) && polls > 0).length
    },
  }
}
