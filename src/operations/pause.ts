import { makeTrialDue } from '../ledger/breaker.ts'
import { countLivingInstances } from '../ledger/instances.ts'
import type { Operator } from '../ledger/operator/operator.ts'
import { endOperatorPause, type OperatorPause, readOperatorPause } from '../ledger/pauses.ts'
import { type LedgerSnapshot, readLedgerSnapshot } from '../ledger/snapshot.ts'
import { isPauseOfBreaker, type PauseReason } from '../model/service.ts'
import { pluralize, truncateToOneLine } from '../plainText.ts'
import type { Database } from '../postgres/database.ts'
import { formatInstantAndDistance, parseDurationMs } from '../time.ts'
import { findReasonProblemClause } from './actor.ts'
import { pauseEndText } from './renderStatus.ts'

export interface PauseRequest {
  reason: string | undefined
  for: string | undefined
}

const longestMs = 366 * 86_400_000

export function parsePauseRequest(request: PauseRequest, problems: string[]): { reason: string; forMs: number | null } {
  const reason = request.reason?.replace(/\s+/g, ' ').trim() ?? ''
  const forMs = request.for === undefined ? null : parseDurationMs(request.for)
  const wrongReason = findReasonProblemClause(reason)
  if (wrongReason !== null) problems.push(`--reason ${wrongReason}`)
  const wrongDuration = request.for === undefined ? null : durationProblem(request.for, forMs)
  if (wrongDuration !== null) problems.push(`--for ${wrongDuration}`)
  return { reason, forMs }
}

function durationProblem(text: string, forMs: number | null): string | null {
  if (forMs === null || forMs === 0) return `${text}: give a duration such as 30s, 45m, 2h, 1d`
  return forMs > longestMs ? `${text}: give at most 366d, or leave it out` : null
}

export function pauseMessage(forMs: number | null, { dryRun, nowMs }: { dryRun: boolean; nowMs: number }): string {
  const until = forMs === null ? 'until `outboxd resume`' : `until ${formatInstantAndDistance(nowMs + forMs, nowMs)}`
  return dryRun ? `Would pause ${until}.` : `Paused ${until}.`
}

/** Says how many daemons a pause or its end reaches: those that have written a heartbeat to this database lately. */
export async function readReachMessage(ledger: Database): Promise<string> {
  const daemons = await countLivingInstances(ledger)
  if (daemons === 0)
    return 'Warning: no daemon runs with this database, so this reaches none. If one should run, check DATABASE_URL and LEDGER_SCHEMA.'
  return `${pluralize(daemons, 'daemon')} of this database ${daemons === 1 ? 'follows' : 'follow'} within a second.`
}

/** Returns the pause of a colleague of `who` that a new pause would replace; null if there is none. */
export async function readColleaguesPause(ledger: Database, who: string): Promise<OperatorPause | null> {
  const standing = await readOperatorPause(ledger)
  return standing?.who === who ? null : standing
}

export function colleaguesPauseMessage(pause: OperatorPause, nowMs: number): string {
  const since = formatInstantAndDistance(pause.sinceMs, nowMs)
  return `A pause stands since ${since}, ${pauseEndText(pause, nowMs)}: ${truncateToOneLine(pause.detail, 300)}. Yours would replace it.`
}

export interface ResumeTerms {
  all: boolean
}

export interface ResumeOutcome {
  endedOperatorPause: string | null
  /** The pause that ends if the next request succeeds. */
  pauseTriedNow: PauseReason | null
  remaining: LedgerSnapshot['pauses']
}

export async function resumeSending(operator: Operator, { all }: ResumeTerms): Promise<ResumeOutcome> {
  const endedPause = await endOperatorPause(operator)
  const pauseTriedNow = all ? await makeTrialDue(operator) : null
  const { pauses } = await readLedgerSnapshot(operator.ledger)
  return { endedOperatorPause: endedPause, pauseTriedNow, remaining: pauses }
}

export async function previewResume(ledger: Database, { all }: ResumeTerms): Promise<ResumeOutcome> {
  const { pauses } = await readLedgerSnapshot(ledger)
  const remaining = pauses.filter(({ reason }) => reason !== 'operator')
  return {
    endedOperatorPause: pauses.find(({ reason }) => reason === 'operator')?.detail ?? null,
    pauseTriedNow: all ? (remaining.find(({ reason }) => isPauseOfBreaker(reason))?.reason ?? null) : null,
    remaining,
  }
}

export function resumeMessages(
  { endedOperatorPause, pauseTriedNow, remaining }: ResumeOutcome,
  { all, dryRun, nowMs }: ResumeTerms & { dryRun: boolean; nowMs: number },
): string[] {
  const tried = remaining.filter(({ reason }) => reason === pauseTriedNow)
  const standing = remaining.filter(({ reason }) => reason !== pauseTriedNow)
  const mayBeTried = !all && standing.some(({ reason }) => isPauseOfBreaker(reason))
  const none = remaining.length === 0 ? 'Nothing was paused.' : 'There is no operator’s pause to end.'
  return [
    ...(endedOperatorPause === null
      ? []
      : [
          `${dryRun ? 'Would resume; the pause is' : 'Resumed; the pause was'}: ${truncateToOneLine(endedOperatorPause, 300)}`,
        ]),
    ...(endedOperatorPause === null && tried.length === 0 ? [none] : []),
    ...tried.map(
      ({ reason, detail }) =>
        `${dryRun ? 'Would end' : 'Ending'} the pause (${reason}): ${truncateToOneLine(detail, 300)}`,
    ),
    ...(tried.length === 0 ? [] : [oneGoesFirst]),
    ...standing.map(({ reason, untilMs, detail }) => {
      const until =
        untilMs === null
          ? pauseEndText({ reason, untilMs }, nowMs)
          : `at least until ${formatInstantAndDistance(untilMs, nowMs)}`
      return `Still paused (${reason}) ${until}: ${truncateToOneLine(detail, 300)}`
    }),
    ...(mayBeTried ? ['`outboxd resume --all` tests at once whether this pause can end.'] : []),
  ]
}

const oneGoesFirst = 'One request goes first. If this request succeeds, all sending resumes. `outboxd status` shows it.'
