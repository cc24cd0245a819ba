import { parseDurationMs, showMoment } from '../time.ts'
import { reasonProblem } from './actor.ts'

/** A pause as a person asks for it. */
export interface PauseRequest {
  reason: string | undefined
  /** A duration such as 2h; undefined: until somebody resumes. */
  for: string | undefined
}

/** What was asked for, or what is wrong with it: each to be read after the name of the field. */
export type PauseRead =
  | { kind: 'value'; reason: string; forMs: number | null }
  | { kind: 'invalid'; problems: { field: keyof PauseRequest; problem: string }[] }

const longestMs = 366 * 86_400_000

/** Reads what a person asks for. Pure. */
export function readPause(request: PauseRequest): PauseRead {
  const reason = request.reason?.replace(/\s+/g, ' ').trim() ?? ''
  const forMs = request.for === undefined ? null : parseDurationMs(request.for)
  const wrongReason = reasonProblem(reason)
  const wrongDuration = request.for === undefined ? null : durationProblem(request.for, forMs)
  const problems = [
    ...(wrongReason === null ? [] : [{ field: 'reason' as const, problem: wrongReason }]),
    ...(wrongDuration === null ? [] : [{ field: 'for' as const, problem: wrongDuration }]),
  ]
  return problems.length > 0 ? { kind: 'invalid', problems } : { kind: 'value', reason, forMs }
}

function durationProblem(text: string, forMs: number | null): string | null {
  if (forMs === null || forMs === 0) return `${text}: give a duration such as 30s, 45m, 2h, 1h30m, 1d`
  return forMs > longestMs ? `${text}: give at most a year, or leave it out` : null
}

/** What a pause would do, or has done. Pure. @param forMs null: until somebody resumes */
export function pauseMessage(forMs: number | null, { dryRun, nowMs }: { dryRun: boolean; nowMs: number }): string {
  const until = forMs === null ? 'until outboxd resume' : `until ${showMoment(nowMs + forMs, nowMs)}`
  return dryRun ? `Would pause ${until}.` : `Paused ${until}. Running instances stop within a second.`
}
