import {
  arrivals,
  distributions,
  doubling,
  every,
  learned,
  type Outcome,
  oracle,
  percentile,
  type Schedule,
  simulate,
} from './simulation.ts'

const WINDOW_MS = 60_000
const MINUTES = 60
const WARM_UP_MINUTES = 20
const IDLE_PER_WINDOW = 6
const SEEDS = [9_001, 9_002, 9_003, 9_004, 9_005]

const schedules: (() => Schedule)[] = [
  () => learned(WINDOW_MS),
  () => every(5_000, 'every 5 s'),
  () => every(10_000, 'every 10 s'),
  () => doubling(1_000, 60_000, 'doubling 1-60 s'),
  () => every(60_000, 'every 60 s'),
  () => oracle,
]

console.log(`Simulated, not measured: the poll schedule and the dispatcher under a fake clock. Limit 100 per 60 s, slots
free again 60 s after the answer, answers after 30 ms, 8 on the wire. Saturated: 1,000 always wait; idle: ${IDLE_PER_WINDOW} a
minute at random. ${MINUTES} minutes from no data, the first ${WARM_UP_MINUTES} not counted. The same dispatcher under every schedule.
${SEEDS.length} runs each, with other random numbers: "least" is the run with the fewest records a minute; delays are of all runs.
"first 20": records a minute in those first ${WARM_UP_MINUTES} minutes. "wait": p95 from record to request, idle only.
`)
const columns = ['records/min', 'least', 'first 20', 'polls/record', 'delay p50', 'delay p95', 'wait', '429s']
for (const [distribution, processingMs] of Object.entries(distributions(WINDOW_MS)))
  for (const load of ['saturated', 'idle']) {
    console.log(`${`${distribution}, ${load}`.padEnd(36)}${columns.map((name) => name.padStart(13)).join('')}`)
    for (const start of schedules) console.log(row(start, processingMs, load === 'idle'))
    console.log()
  }

function row(start: () => Schedule, processingMs: (random: () => number) => number, idle: boolean): string {
  const durationMs = MINUTES * WINDOW_MS
  const runs = SEEDS.map((seed) =>
    simulate({
      limit: 100,
      windowMs: WINDOW_MS,
      answerMs: 30,
      maxInFlight: 8,
      durationMs,
      countFromMs: WARM_UP_MINUTES * WINDOW_MS,
      processingMs,
      arrivalsAtMs: idle ? arrivals(IDLE_PER_WINDOW, WINDOW_MS, durationMs, seed) : undefined,
      schedule: start(),
      seed,
    }),
  )
  const mean = (each: (run: Outcome) => number) => runs.reduce((sum, run) => sum + each(run), 0) / runs.length
  const earlyPerMinute = ({ finished }: Outcome) =>
    finished.filter(({ knownAtMs }) => knownAtMs < WARM_UP_MINUTES * WINDOW_MS).length / WARM_UP_MINUTES
  const seconds = (each: (run: Outcome) => readonly number[], share: number) =>
    `${(percentile(runs.flatMap(each), share) / 1000).toFixed(1)} s`
  const cells = [
    mean((run) => run.recordsPerWindow).toFixed(1),
    Math.min(...runs.map((run) => run.recordsPerWindow)).toFixed(1),
    mean(earlyPerMinute).toFixed(1),
    mean((run) => run.pollsPerRecord).toFixed(2),
    seconds((run) => run.delaysMs, 0.5),
    seconds((run) => run.delaysMs, 0.95),
    idle ? seconds((run) => run.submitWaitsMs, 0.95) : '',
    String(runs.reduce((sum, run) => sum + run.refused, 0)),
  ]
  return `  ${start().name.padEnd(34)}${cells.map((cell) => cell.padStart(13)).join('')}`
}
