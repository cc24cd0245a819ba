import { type Schedule, simulate } from '../simulation.ts'
import { arrivals, percentile } from './workloads.ts'

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
  readonly pollsPerRecord: number
  readonly refused: number
}

const burstWindowMs = 60_000
const idleWindows = 30
const idlePerWindow = 6
/** A backlog of a thousand needs 20 windows, and slow transactions more. */
const laterWindows = 120

/** Simulates half an hour of six records a minute, without learned data, then `records` committed at one moment. */
export function playBurst({ records, processingMs, schedule, seed }: Burst): BurstFigures {
  const atMs = idleWindows * burstWindowMs
  const before = arrivals(idlePerWindow, burstWindowMs, atMs, seed).filter((each) => each < atMs)
  const outcome = simulate({
    limit: 100,
    windowMs: burstWindowMs,
    answerMs: 30,
    maxInFlight: 8,
    durationMs: atMs + laterWindows * burstWindowMs,
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
    pollsPerRecord: sum(burst.map(({ polls }) => polls)) / records,
    refused: outcome.refused,
  }
}

export function figuresOf(
  waitsMs: readonly number[],
): Pick<BurstFigures, 'waitsMs' | 'meanMs' | 'p50Ms' | 'p95Ms' | 'lastMs'> {
  return {
    waitsMs,
    meanMs: sum(waitsMs) / waitsMs.length,
    p50Ms: percentile(waitsMs, 0.5),
    p95Ms: percentile(waitsMs, 0.95),
    lastMs: Math.max(...waitsMs),
  }
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}
