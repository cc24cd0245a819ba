import { type Schedule, simulate, windowMs } from '../simulation.ts'
import { arrivals, mean, percentile } from './workloads.ts'

export interface Burst {
  readonly records: number
  readonly processingMs: (random: () => number, nowMs: number) => number
  readonly schedule: Schedule
  readonly seed: number
}

/** Milliseconds from the commit of a burst's records until the daemon knows the end of their transactions. */
export interface BurstFigures {
  readonly waitsMs: readonly number[]
  readonly meanMs: number
  readonly p50Ms: number
  readonly p95Ms: number
  readonly lastMs: number
  readonly refused: number
}

const idleWindows = 30
const idlePerWindow = 6
/** A backlog of a thousand needs 20 windows, and slow transactions more. */
const laterWindows = 120

/** Simulates half an hour of six records a minute, without learned data, then `records` committed at one moment. */
export function playBurst({ records, processingMs, schedule, seed }: Burst): BurstFigures {
  const atMs = idleWindows * windowMs
  const before = arrivals(idlePerWindow, windowMs, atMs, seed).filter((each) => each < atMs)
  const outcome = simulate({
    durationMs: atMs + laterWindows * windowMs,
    countFromMs: atMs,
    processingMs,
    arrivalsAtMs: [...before, ...Array.from({ length: records }, () => atMs)],
    schedule,
    seed,
  })
  const burst = outcome.finished.filter(({ committedAtMs }) => committedAtMs === atMs)
  if (burst.length !== records) throw new Error(`of ${records} records ${records - burst.length} never ended`)
  return {
    ...figuresOf(burst.map(({ knownAtMs }) => knownAtMs - atMs)),
    refused: outcome.refused,
  }
}

export function figuresOf(waitsMs: readonly number[]): Omit<BurstFigures, 'refused'> {
  return {
    waitsMs,
    meanMs: mean(waitsMs),
    p50Ms: percentile(waitsMs, 0.5),
    p95Ms: percentile(waitsMs, 0.95),
    lastMs: Math.max(...waitsMs),
  }
}
