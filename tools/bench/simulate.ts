import { readOptions } from './harness/readOptions.ts'
import { verdict } from './harness/report.ts'
import { type BurstFigures, figuresOf, playBurst } from './harness/simulatedBurst.ts'
import { changes, playChange } from './harness/simulatedChange.ts'
import { doubling, every, learned, oracle } from './harness/simulatedSchedules.ts'
import { arrivals, distributions, percentile } from './harness/workloads.ts'
import { type Outcome, type Schedule, simulate } from './simulation.ts'

const options = readOptions('bench:simulate: the poll schedule and the dispatcher under a fake clock.', {
  only: { default: '', help: 'steady, load, burst or change (all if empty)' },
  seeds: { default: '5', help: 'runs of each line, each with its own random numbers' },
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

const schedules = {
  learned: (seed: number) => learned({ windowMs: WINDOW_MS, limit: LIMIT, seed }),
  'every 5 s': () => every(5_000, 'every 5 s'),
  'every 10 s': () => every(10_000, 'every 10 s'),
  'every 30 s': () => every(30_000, 'every 30 s'),
  'every 60 s': () => every(60_000, 'every 60 s'),
  'doubling 1-60 s': () => doubling(1_000, 60_000, 'doubling 1-60 s'),
  oracle: () => oracle,
} satisfies Record<string, (seed: number) => Schedule>
type ScheduleName = keyof typeof schedules
const chosenSchedules = (Object.keys(schedules) as ScheduleName[]).filter((name) => name.includes(options.schedule))
const chosenTimes = Object.entries(distributions(WINDOW_MS)).filter(([name]) => name.includes(options.times))

console.log(`Simulated, not measured: the poll schedule and the dispatcher under a fake clock. Limit ${LIMIT} per 60 s,
requests count until 60 s after the answer, answers after 30 ms, 8 on the wire. The same dispatcher under every schedule; the learned
one begins without data, and moves polls as the daemon does. ${SEEDS.length} runs each, with other random numbers.
`)
if ('steady'.includes(options.only)) printSteady()
if ('load'.includes(options.only)) printLoads()
if ('burst'.includes(options.only)) printBursts()
if ('change'.includes(options.only)) printChanges()

function printSteady(): void {
  console.log(`Saturated: more wait than can ever be sent; idle: ${IDLE_PER_WINDOW} a minute at random. ${MINUTES} minutes, the first
${WARM_UP_MINUTES} not counted. "least" is the run with the fewest records a minute; delays, from done to known, are of all runs. "first 20":
records a minute in those first ${WARM_UP_MINUTES} minutes. "wait": p95 from record to request, idle only.
`)
  const columns = ['records/min', 'least', 'first 20', 'polls/record', 'delay mean', 'p50', 'p95', 'wait', '429s']
  for (const [distribution, processingMs] of chosenTimes)
    for (const load of ['saturated', 'idle']) {
      printLine(`${distribution}, ${load}`, columns, 13)
      for (const name of chosenSchedules) printLine(`  ${name}`, steadyCells(name, processingMs, load === 'idle'), 13)
      console.log()
    }
}

function printLoads(): void {
  console.log(`So many records a minute at random, 50 being the most there is, for ${MINUTES} minutes, the first ${WARM_UP_MINUTES} not counted: mean seconds
from commit to known.
`)
  for (const [distribution, processingMs] of chosenTimes) {
    printLine(distribution, LOADS.map(String), 13)
    for (const name of chosenSchedules)
      printLine(
        `  ${name}`,
        LOADS.map((perMinute) => meanWait(name, processingMs, perMinute)),
        13,
      )
    console.log()
  }
}

function meanWait(name: ScheduleName, processingMs: (random: () => number) => number, perMinute: number): string {
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
      schedule: schedules[name](seed),
      seed,
    })
      .finished.filter(({ committedAtMs }) => committedAtMs >= fromMs)
      .map(({ knownAtMs, committedAtMs }) => knownAtMs - committedAtMs),
  )
  return (sum(waitsMs) / waitsMs.length / 1000).toFixed(1)
}

function printBursts(): void {
  console.log(`After half an hour of ${IDLE_PER_WINDOW} records a minute so many are committed at once: seconds from commit to known, mean / p50 /
p95 / the last one, of all runs.
`)
  const cells: Cell[] = []
  for (const [distribution, processingMs] of chosenTimes) {
    printLine(
      distribution,
      BURSTS.map((records) => `N = ${records}`),
    )
    for (const name of chosenSchedules) {
      const figures = BURSTS.map((records) => {
        const runs = SEEDS.map((seed) => playBurst({ records, processingMs, schedule: schedules[name](seed), seed }))
        return {
          ...figuresOf(runs.flatMap(({ waitsMs }) => waitsMs)),
          lastMs: percentile(
            runs.map(({ lastMs }) => lastMs),
            0.5,
          ),
          refused: sum(runs.map(({ refused }) => refused)),
        }
      })
      cells.push(
        ...figures.map(({ meanMs, refused }, i) => ({ name, cell: `${distribution}, ${BURSTS[i]}`, meanMs, refused })),
      )
      printLine(`  ${name}`, figures.map(inSeconds))
    }
    console.log()
  }
  printTargets(cells)
}

function printChanges(): void {
  console.log(`A service that changes, at ${IDLE_PER_WINDOW} records a minute: how many records until ten in a row are known, on average, no more than a
fifth or a second later than in the long run (after each change; one figure a run), and the mean delay of the records until then.
`)
  for (const change of changes) {
    const runs = SEEDS.map((seed) => playChange(change, schedules.learned(seed), seed))
    const cells = change.at.map((_, i) => {
      const records = runs.map((run) => run.records[i] ?? 'never').join(', ')
      return `${records} (${(sum(runs.map((run) => run.delayMs[i] ?? 0)) / runs.length / 1000).toFixed(1)} s)`
    })
    printLine(`  ${change.name}`, cells)
  }
  console.log()
}

interface Cell {
  name: ScheduleName
  cell: string
  meanMs: number
  refused: number
}

function printTargets(cells: readonly Cell[]): void {
  const own = cells.filter(({ name }) => name === 'learned')
  const bound = sum(cells.filter(({ name }) => name === 'oracle').map(({ meanMs }) => meanMs))
  const above = own.map(({ cell, meanMs }) => {
    const plain = cells.filter((each) => each.cell === cell && each.name !== 'learned' && each.name !== 'oracle')
    return { cell, share: meanMs / Math.min(...plain.map((each) => each.meanMs)) - 1 }
  })
  const missed = above.filter(({ share }) => share > 0.03)
  const overBound = sum(own.map(({ meanMs }) => meanMs)) / bound - 1
  const percent = (share: number) => `${(100 * share).toFixed(1)} %`
  console.log(`Mean at most 3 % above the best plain schedule's in each cell: ${verdict(missed.length === 0)}${missed.map(({ cell, share }) => `; ${cell}: ${percent(share)}`).join('')}
Sum of the means at most 10 % above the oracle's: ${verdict(overBound <= 0.1)}; ${percent(overBound)}
No 429: ${verdict(cells.every(({ refused }) => refused === 0))}
`)
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

function steadyCells(name: ScheduleName, processingMs: (random: () => number) => number, idle: boolean): string[] {
  const durationMs = MINUTES * WINDOW_MS
  const runs = SEEDS.map((seed) =>
    simulate({
      limit: LIMIT,
      windowMs: WINDOW_MS,
      answerMs: 30,
      maxInFlight: 8,
      durationMs,
      countFromMs: WARM_UP_MINUTES * WINDOW_MS,
      processingMs,
      arrivalsAtMs: idle ? arrivals(IDLE_PER_WINDOW, WINDOW_MS, durationMs, seed) : undefined,
      schedule: schedules[name](seed),
      seed,
    }),
  )
  const mean = (each: (run: Outcome) => number) => runs.reduce((sum, run) => sum + each(run), 0) / runs.length
  const earlyPerMinute = ({ finished }: Outcome) =>
    finished.filter(({ knownAtMs }) => knownAtMs < WARM_UP_MINUTES * WINDOW_MS).length / WARM_UP_MINUTES
  const seconds = (each: (run: Outcome) => readonly number[], share: number) =>
    `${(percentile(runs.flatMap(each), share) / 1000).toFixed(1)} s`
  const delays = runs.flatMap((run) => run.delaysMs)
  return [
    mean((run) => run.recordsPerWindow).toFixed(1),
    Math.min(...runs.map((run) => run.recordsPerWindow)).toFixed(1),
    mean(earlyPerMinute).toFixed(1),
    mean((run) => run.pollsPerRecord).toFixed(2),
    `${(sum(delays) / delays.length / 1000).toFixed(1)} s`,
    seconds((run) => run.delaysMs, 0.5),
    seconds((run) => run.delaysMs, 0.95),
    idle ? seconds((run) => run.submitWaitsMs, 0.95) : '',
    String(runs.reduce((sum, run) => sum + run.refused, 0)),
  ]
}
