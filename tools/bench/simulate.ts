import { figuresOf02 } from './harness/figuresOf02.ts'
import { readOptions } from './harness/readOptions.ts'
import { verdict } from './harness/report.ts'
import { type BurstFigures, figuresOf, playBurst } from './harness/simulatedBurst.ts'
import { type ChangeFigures, changes, playChange } from './harness/simulatedChange.ts'
import { doubling, every, learned, oracle } from './harness/simulatedSchedules.ts'
import { arrivals, distributions, percentile } from './harness/workloads.ts'
import { type Outcome, type Schedule, simulate } from './simulation.ts'

const options = readOptions('bench:simulate: the poll schedule and the dispatcher under a fake clock.', {
  only: { default: '', help: 'steady, load, burst or change (all if empty)' },
  seeds: { default: '3', help: 'runs of each line, each with its own random numbers' },
  schedule: { default: '', help: 'only schedules whose name contains this' },
  times: { default: '', help: 'only distributions whose name contains this' },
})

const WINDOW_MS = 60_000
const LIMIT = 100
const MINUTES = 60
const WARM_UP_MINUTES = 20
const IDLE_PER_WINDOW = 6
const SEEDS = Array.from({ length: Number(options.seeds) }, (_, i) => 9_001 + i)
const LOADS = [20, 30, 38, 44, 48]
const BURSTS = [30, 100, 300, 1_000]

/** What the learned schedule must reach: beside the figures of 0.2, by which share its sums may be above them. */
const SATURATED_LEAST_PER_MINUTE = 47.5
const IDLE_DELAY_MAX_MS = 3_000
const LOAD_ABOVE_MAX = 0.12
const BURSTS_ABOVE_MAX = 0.03
const RIGHT_AFTER_RECORDS = 65
const LATE_MEANWHILE_MAX_MS = 15_000

const schedules = {
  learned: () => learned(WINDOW_MS),
  'every 5 s': () => every(5_000, 'every 5 s'),
  'every 10 s': () => every(10_000, 'every 10 s'),
  'every 30 s': () => every(30_000, 'every 30 s'),
  'every 60 s': () => every(60_000, 'every 60 s'),
  'doubling 1-60 s': () => doubling(1_000, 60_000, 'doubling 1-60 s'),
  oracle: () => oracle,
} satisfies Record<string, () => Schedule>
type ScheduleName = keyof typeof schedules
const chosenSchedules = (Object.keys(schedules) as ScheduleName[]).filter((name) => name.includes(options.schedule))
const chosenTimes = Object.entries(distributions(WINDOW_MS)).filter(([name]) => name.includes(options.times))

console.log(`Simulated, not measured: the poll schedule and the dispatcher under a fake clock. Limit ${LIMIT} per 60 s,
requests count until 60 s after the answer, answers after 30 ms, 8 on the wire. The same dispatcher under every schedule; the learned
one begins without data, and moves polls as the daemon does. ${SEEDS.length} runs each, with other random numbers.
`)
/** Of the learned schedule: what is printed at the end. */
const verdicts: string[] = []
if ('steady'.includes(options.only)) printSteady()
if ('load'.includes(options.only)) printLoads()
if ('burst'.includes(options.only)) printBursts()
if ('change'.includes(options.only)) printChanges()
if (chosenSchedules.includes('learned')) console.log(verdicts.join('\n'))

function printSteady(): void {
  console.log(`Saturated: more wait than can ever be sent; idle: ${IDLE_PER_WINDOW} a minute at random. ${MINUTES} minutes, the first
${WARM_UP_MINUTES} not counted. "least" is the run with the fewest records a minute; delays, from done to known, are of all runs. "first 20":
records a minute in those first ${WARM_UP_MINUTES} minutes. "wait": p95 from record to request, idle only.
`)
  const columns = ['records/min', 'least', 'first 20', 'polls/record', 'delay mean', 'p50', 'p95', 'wait', '429s']
  for (const [distribution, processingMs] of chosenTimes)
    for (const load of ['saturated', 'idle']) {
      printLine(`${distribution}, ${load}`, columns, 13)
      for (const name of chosenSchedules) {
        const runs = steadyRuns(name, processingMs, load === 'idle')
        printLine(`  ${name}`, steadyCells(runs, load === 'idle'), 13)
        if (name === 'learned') judgeSteady(distribution, runs, load === 'idle')
      }
      console.log()
    }
}

function judgeSteady(distribution: string, runs: readonly Outcome[], idle: boolean): void {
  const of02 = figuresOf02[distribution]
  const perMinute = mean(runs.map((run) => run.recordsPerWindow))
  const delayMs = mean(runs.flatMap((run) => run.delaysMs))
  verdicts.push(
    idle
      ? `Idle, ${distribution}: mean delay ${inTenths(delayMs)} s, at most ${IDLE_DELAY_MAX_MS / 1000} s (0.2: ${of02?.idleDelay}): ${verdict(delayMs <= IDLE_DELAY_MAX_MS)}`
      : `Saturated, ${distribution}: ${perMinute.toFixed(1)} records a minute, at least ${SATURATED_LEAST_PER_MINUTE} (0.2: ${of02?.recordsPerMinute}): ${verdict(perMinute >= SATURATED_LEAST_PER_MINUTE)}`,
  )
}

function printLoads(): void {
  console.log(`So many records a minute at random, 50 being the most there is, for ${MINUTES} minutes, the first ${WARM_UP_MINUTES} not counted: mean seconds
from commit to known.
`)
  const cells: Cell[] = []
  for (const [distribution, processingMs] of chosenTimes) {
    printLine(distribution, LOADS.map(String), 13)
    for (const name of chosenSchedules) {
      const meansMs = LOADS.map((perMinute) => meanWaitMs(name, processingMs, perMinute))
      printLine(`  ${name}`, meansMs.map(inTenths), 13)
      const of02 = figuresOf02[distribution]?.load
      if (name === 'learned') cells.push(...meansMs.map((meanMs, i) => ({ meanMs, of02: of02?.[LOADS[i] ?? 0] ?? 0 })))
    }
    console.log()
  }
  judgeSum('Load', cells, LOAD_ABOVE_MAX)
}

function meanWaitMs(name: ScheduleName, processingMs: (random: () => number) => number, perMinute: number): number {
  const [fromMs, untilMs] = [WARM_UP_MINUTES * WINDOW_MS, MINUTES * WINDOW_MS]
  const waitsMs = SEEDS.flatMap((seed) =>
    simulate({
      limit: LIMIT,
      windowMs: WINDOW_MS,
      answerMs: 30,
      maxInFlight: 8,
      durationMs: untilMs + 30 * WINDOW_MS,
      countFromMs: fromMs,
      processingMs,
      arrivalsAtMs: arrivals(perMinute, WINDOW_MS, untilMs, seed),
      schedule: schedules[name](),
      seed,
    })
      .finished.filter(({ committedAtMs }) => committedAtMs >= fromMs)
      .map(({ knownAtMs, committedAtMs }) => knownAtMs - committedAtMs),
  )
  return mean(waitsMs)
}

function printBursts(): void {
  console.log(`After half an hour of ${IDLE_PER_WINDOW} records a minute so many are committed at once: seconds from commit to known, mean / p50 /
p95 / the last one, of all runs.
`)
  const cells: Cell[] = []
  let refused = 0
  for (const [distribution, processingMs] of chosenTimes) {
    printLine(
      distribution,
      BURSTS.map((records) => `N = ${records}`),
    )
    for (const name of chosenSchedules) {
      const figures = BURSTS.map((records) => {
        const runs = SEEDS.map((seed) => playBurst({ records, processingMs, schedule: schedules[name](), seed }))
        return {
          ...figuresOf(runs.flatMap(({ waitsMs }) => waitsMs)),
          lastMs: percentile(
            runs.map(({ lastMs }) => lastMs),
            0.5,
          ),
          refused: sum(runs.map(({ refused }) => refused)),
        }
      })
      printLine(`  ${name}`, figures.map(inSeconds))
      const of02 = figuresOf02[distribution]?.burst
      if (name === 'learned')
        cells.push(...figures.map(({ meanMs }, i) => ({ meanMs, of02: of02?.[BURSTS[i] ?? 0] ?? 0 })))
      refused += sum(figures.map((each) => each.refused))
    }
    console.log()
  }
  judgeSum('Bursts', cells, BURSTS_ABOVE_MAX)
  verdicts.push(`Bursts: no 429: ${verdict(refused === 0)}`)
}

function printChanges(): void {
  console.log(`A service that changes, at ${IDLE_PER_WINDOW} records a minute: how many records until ten in a row are known, on average, no more than a
fifth or a second later than in the long run (after each change; one figure a run), and the mean delay of the records until then.
`)
  for (const change of changes) {
    const runs = SEEDS.map((seed) => playChange(change, schedules.learned(), seed))
    const cells = change.at.map((_, i) => {
      const records = runs.map((run) => run.records[i] ?? 'never').join(', ')
      return `${records} (${inTenths(mean(runs.map((run) => run.delayMs[i] ?? 0)))} s)`
    })
    if (change.faster) judgeFaster(change.name, runs, change.at.length - 1)
    printLine(`  ${change.name}`, cells)
  }
  console.log()
}

interface Cell {
  meanMs: number
  /** Seconds. */
  of02: number
}

function judgeSum(name: string, cells: readonly Cell[], aboveMax: number): void {
  const above = sum(cells.map(({ meanMs }) => meanMs)) / 1000 / sum(cells.map(({ of02 }) => of02)) - 1
  verdicts.push(
    `${name}: sum of ${cells.length} means ${(100 * above).toFixed(1)} % above that of 0.2, at most ${100 * aboveMax} %: ${verdict(above <= aboveMax)}`,
  )
}

function judgeFaster(name: string, runs: readonly ChangeFigures[], i: number): void {
  const records = runs.map((run) => run.records[i] ?? Number.POSITIVE_INFINITY)
  const lateMs = mean(runs.map((run) => run.delayMs[i] ?? 0))
  const reached = Math.max(...records) <= RIGHT_AFTER_RECORDS && lateMs <= LATE_MEANWHILE_MAX_MS
  verdicts.push(
    `Faster, ${name}: right after ${records.join(', ')} records, at most ${RIGHT_AFTER_RECORDS}; ${inTenths(lateMs)} s late meanwhile, at most ${LATE_MEANWHILE_MAX_MS / 1000} s: ${verdict(reached)}`,
  )
}

function inSeconds({
  meanMs,
  p50Ms,
  p95Ms,
  lastMs,
}: Pick<BurstFigures, 'meanMs' | 'p50Ms' | 'p95Ms' | 'lastMs'>): string {
  return [meanMs, p50Ms, p95Ms, lastMs].map((ms) => (ms / 1000).toFixed(0)).join(' / ')
}

function printLine(name: string, cells: readonly string[], width = 26): void {
  console.log(`${name.padEnd(36)}${cells.map((cell) => cell.padStart(width)).join('')}`)
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}

function mean(values: readonly number[]): number {
  return sum(values) / values.length
}

function inTenths(ms: number): string {
  return (ms / 1000).toFixed(1)
}

function steadyRuns(name: ScheduleName, processingMs: (random: () => number) => number, idle: boolean): Outcome[] {
  const durationMs = MINUTES * WINDOW_MS
  return SEEDS.map((seed) =>
    simulate({
      limit: LIMIT,
      windowMs: WINDOW_MS,
      answerMs: 30,
      maxInFlight: 8,
      durationMs,
      countFromMs: WARM_UP_MINUTES * WINDOW_MS,
      processingMs,
      arrivalsAtMs: idle ? arrivals(IDLE_PER_WINDOW, WINDOW_MS, durationMs, seed) : undefined,
      schedule: schedules[name](),
      seed,
    }),
  )
}

function steadyCells(runs: readonly Outcome[], idle: boolean): string[] {
  const meanOf = (each: (run: Outcome) => number) => mean(runs.map(each))
  const earlyPerMinute = ({ finished }: Outcome) =>
    finished.filter(({ knownAtMs }) => knownAtMs < WARM_UP_MINUTES * WINDOW_MS).length / WARM_UP_MINUTES
  const seconds = (each: (run: Outcome) => readonly number[], share: number) =>
    `${inTenths(percentile(runs.flatMap(each), share))} s`
  return [
    meanOf((run) => run.recordsPerWindow).toFixed(1),
    Math.min(...runs.map((run) => run.recordsPerWindow)).toFixed(1),
    meanOf(earlyPerMinute).toFixed(1),
    meanOf((run) => run.pollsPerRecord).toFixed(2),
    `${inTenths(mean(runs.flatMap((run) => run.delaysMs)))} s`,
    seconds((run) => run.delaysMs, 0.5),
    seconds((run) => run.delaysMs, 0.95),
    idle ? seconds((run) => run.submitWaitsMs, 0.95) : '',
    String(sum(runs.map((run) => run.refused))),
  ]
}
