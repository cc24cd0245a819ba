import { setTimeout as after } from 'node:timers/promises'
import { standingProblemsSql } from '../../src/ledger/problems.ts'
import { findDocumentViolations } from './checkDocuments.ts'
import { findViolations, type Violation } from './checker.ts'
import type { Surroundings } from './environment.ts'
import type { Fleet } from './fleet.ts'
import { gatherHistory, type History, type LostSpan } from './history.ts'
import type { Written } from './workload.ts'

export interface Conclusion {
  history: History
  violations: Violation[]
}

export interface ConcludeOptions {
  surroundings: Surroundings
  fleet: Fleet
  written: ReadonlyMap<string, Written>
  /** Time spans whose commits failovers lost. */
  lost: readonly LostSpan[]
  /** Does what an operator does: settles records that block others, and ends pauses. */
  settle(): Promise<unknown>
  signal: AbortSignal
}

/** Longer than the rescue of orphans, the longest pause and sending the rest take together. */
const drainMostMs = 240_000

/** Waits until every record has ended, stops the daemons, and compares outbox, ledger and service. */
export async function conclude(options: ConcludeOptions): Promise<Conclusion> {
  const { surroundings, fleet, written, lost } = options
  const left = await drain(options)
  const codes = await fleet.terminate()
  const history = { ...(await gatherHistory(surroundings, written)), lost }
  const violations = [
    ...left.map(ofAll),
    ...fleet.deserters.map((message) => ofAll(`a daemon left by itself, ${message}`)),
    ...codes.filter((code) => code !== 0).map((code) => ofAll(`a daemon left with ${code} after SIGTERM`)),
    ...(history.arrivals.some(({ effectId }) => effectId !== null) ? [] : [ofAll('nothing arrived at the service')]),
    ...findViolations(history),
    ...findDocumentViolations(history),
  ]
  return { history, violations }
}

/** Returns a violation that does not concern a single record. */
export const ofAll = (what: string): Violation => ({ what, case: null })

const whatIsLeftSql = `
  select 'a problem is left: ' || to_jsonb(p)::text as trace from ${standingProblemsSql}
  union all select 'a pause is left: ' || to_jsonb(p)::text from outboxd.standing_pause p
  union all select 'the budget is ' || to_jsonb(b)::text from outboxd.budget b
  union all select 'unfinished: ' || left((to_jsonb(s) - array['payload', 'body'])::text, 1500) from outboxd.submission s
    where state in ('queued', 'sending', 'accepted')`

/** Waits until nothing is left to do. @returns a description of what is left nevertheless */
async function drain({ surroundings, fleet, settle, signal }: ConcludeOptions): Promise<string[]> {
  const deadline = performance.now() + drainMostMs
  for (;;) {
    signal.throwIfAborted()
    await settle()
    const { rows: unread } = await surroundings.database.query(
      `select count(*)::int as n from outbox where status = 'new'`,
    )
    const { rows: unfinished } = await surroundings.database.query(
      `select count(*)::int as n from outboxd.submission
       where state in ('queued', 'sending', 'accepted') or report_due or (state = 'uncertain' and key is not null)`,
    )
    if (unread[0].n + unfinished[0].n === 0) return []
    if (performance.now() > deadline) {
      const { rows: traces } = await surroundings.database.query(whatIsLeftSql)
      return [
        `after ${drainMostMs / 1000} s of peace, ${unread[0].n} rows are new and ${unfinished[0].n} unfinished`,
        ...traces.map(({ trace }) => trace),
        ...fleet.lastLines().map((lines) => `the log of ${lines}`),
      ]
    }
    await after(500)
  }
}
