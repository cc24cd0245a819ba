import type { Command } from 'commander'
import { parseMoment } from './time.ts'

/** A span of time as given on the command line, or in a form. */
export interface SpanOptions {
  since?: string | undefined
  until?: string | undefined
}

/** Epoch milliseconds; null: no bound. */
export interface Span {
  sinceMs: number | null
  untilMs: number | null
}

export const describeSpan = (command: Command): Command =>
  command
    .option('--since <when>', 'what ended since then: a date, a time, or 2h, 3d, meaning ago')
    .option('--until <when>', 'what ended before then')

/** Reads it, or says every mistake in it. Pure. */
export function readSpan(
  options: SpanOptions,
  nowMs: number,
): { kind: 'value'; value: Span } | { kind: 'invalid'; problems: string[] } {
  const problems: string[] = []
  const sinceMs = readBound('since', options.since, nowMs, problems)
  const untilMs = readBound('until', options.until, nowMs, problems)
  if (sinceMs !== null && untilMs !== null && sinceMs >= untilMs) problems.push('--since lies after --until')
  return problems.length > 0 ? { kind: 'invalid', problems } : { kind: 'value', value: { sinceMs, untilMs } }
}

/** @param problems takes what is wrong @returns null where nothing is given */
export function readBound(
  name: 'since' | 'until',
  text: string | undefined,
  nowMs: number,
  problems: string[],
): number | null {
  if (text === undefined) return null
  const ms = parseMoment(text, nowMs)
  if (ms === null)
    problems.push(
      `--${name} ${text}: give a date or time such as 2026-11-03 or 2026-11-03T14:00+01:00, or a duration such as 90m, 2h, 3d`,
    )
  return ms
}
