import type { Operator } from '../ledger/operator/operator.ts'
import { believeMassRefusals, endOperatorPause, shortenPauses } from '../ledger/operator/pauses.ts'
import { readProblems } from '../ledger/problems.ts'
import { type LedgerSnapshot, readSnapshot } from '../ledger/snapshot.ts'
import type { PauseReason } from '../model.ts'
import { truncate } from '../plainText.ts'
import type { Database } from '../postgres/database.ts'
import { parseDurationMs, showMoment } from '../time.ts'
import { reasonProblem } from './actor.ts'

export interface PauseRequest {
  reason: string | undefined
  /** Such as 2h; undefined for a pause without an end. */
  for: string | undefined
}

/** A problem is read after the name of its field. */
export type PauseRead =
  | { kind: 'value'; reason: string; forMs: number | null }
  | { kind: 'invalid'; problems: { field: keyof PauseRequest; problem: string }[] }

const longestMs = 366 * 86_400_000

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

/** @param forMs null for a pause without an end */
export function pauseMessage(forMs: number | null, { dryRun, nowMs }: { dryRun: boolean; nowMs: number }): string {
  const until = forMs === null ? 'until outboxd resume' : `until ${showMoment(nowMs + forMs, nowMs)}`
  return dryRun ? `Would pause ${until}.` : `Paused ${until}. Running instances stop within a second.`
}

export interface ResumeTerms {
  /** Also try the other pauses at once. */
  all: boolean
  /** Reject the records that the service refuses alike. */
  believeRefusals: boolean
}

const believedMs = 86_400_000

const problemsMax = 1_000

export interface Resumed {
  /** The detail of the operator's pause; null if there was none. */
  ended: string | null
  believed: readonly string[]
  /** Pauses that now end with the first good answer. */
  shortened: readonly PauseReason[]
  remaining: LedgerSnapshot['pauses']
}

export async function resumeSending(operator: Operator, { all, believeRefusals }: ResumeTerms): Promise<Resumed> {
  const ended = await endOperatorPause(operator)
  const believed = believeRefusals ? await believeMassRefusals(operator, believedMs) : []
  const shortened = all || believeRefusals ? await shortenPauses(operator) : []
  const { pauses } = await readSnapshot(operator.ledger)
  return { ended, believed, shortened, remaining: pauses }
}

export async function previewResume(ledger: Database, { all, believeRefusals }: ResumeTerms): Promise<Resumed> {
  const { pauses } = await readSnapshot(ledger)
  const problems = await readProblems(ledger, problemsMax)
  const remaining = pauses.filter(({ reason }) => reason !== 'operator')
  const refusals = problems.filter(({ kind }) => kind === 'mass_refusal')
  return {
    ended: pauses.find(({ reason }) => reason === 'operator')?.detail ?? null,
    believed: believeRefusals ? refusals.map(({ detail }) => withoutAdvice(detail)) : [],
    shortened:
      all || believeRefusals ? remaining.flatMap(({ reason, untilMs }) => (untilMs === null ? [] : [reason])) : [],
    remaining,
  }
}

/** A sentence a line. */
export function resumeMessages(
  { ended, believed, shortened, remaining }: Resumed,
  { all, believeRefusals, dryRun, nowMs }: ResumeTerms & { dryRun: boolean; nowMs: number },
): string[] {
  const words = (detail: string) => truncate(believeRefusals ? withoutAdvice(detail) : detail, 300)
  const tried = remaining.filter(({ reason }) => shortened.includes(reason))
  const standing = remaining.filter(({ reason }) => !shortened.includes(reason))
  return [
    ...endedMessage(ended, remaining.length, tried.length, dryRun),
    ...believed.map((summary) => `Taken at its word for a day: ${truncate(summary, 300)}`),
    ...(believeRefusals && believed.length === 0 ? ['There is no mass refusal to believe.'] : []),
    ...tried.map(({ reason, detail }) => `${dryRun ? 'Would end' : 'Ending'} the pause (${reason}): ${words(detail)}`),
    ...(tried.length === 0
      ? []
      : [
          `${dryRun ? 'One request would go first' : 'One request goes first, now'}. All sending resumes as soon as the service answers that request as it should; outboxd status shows it.`,
        ]),
    ...standing.map(({ reason, untilMs, detail }) => {
      const until =
        untilMs === null
          ? 'until outboxd recover, or outboxd status, says otherwise'
          : `until ${showMoment(untilMs, nowMs)} at least`
      return `Still paused (${reason}) ${until}: ${words(detail)}`
    }),
    ...(standing.some(({ untilMs }) => untilMs !== null) && !all && !believeRefusals
      ? ['These end by themselves; outboxd resume --all tries at once.']
      : []),
  ]
}

function endedMessage(ended: string | null, remaining: number, tried: number, dryRun: boolean): string[] {
  if (ended !== null)
    return [`${dryRun ? 'Would resume' : 'Resumed'}; the pause ${dryRun ? 'is' : 'was'}: ${truncate(ended, 300)}`]
  if (remaining === 0) return ['No pause was on.']
  return tried > 0 ? [] : ['No operator had paused.']
}

/** Drops the advice to give this very command (ledger/refusals.ts). */
const withoutAdvice = (detail: string) => detail.replace(/; if it is right, outboxd resume --believe-refusals.*$/s, '')
