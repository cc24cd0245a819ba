import type { LoggedEvent, SubmissionDetail } from '../ledger/operator/readSubmissionDetail.ts'
import { showTime } from './time.ts'

/** A fact about a submission: a text, or a moment. */
export type Fact = string | { atMs: number }

/** What is known of a submission, each under its name; what there is not is left out. Pure. */
export function submissionFacts(detail: SubmissionDetail): [name: string, fact: Fact][] {
  const moment = (atMs: number | null) => (atMs === null ? null : { atMs })
  const all: [string, Fact | null][] = [
    ['submission', detail.id],
    ['outbox row', detail.outboxId],
    ['type', detail.type],
    ['key', detail.key],
    ['since', moment(detail.sinceMs)],
    ['recorded', moment(detail.recordedMs)],
    ['captured', moment(detail.capturedMs)],
    ['attempts', String(detail.attempt)],
    ['last sent', moment(detail.sentMs)],
    ['transaction', detail.transactionId && `${detail.transactionId}${detail.idByPerson ? ' (a person said so)' : ''}`],
    ['may have arrived', detail.mayHaveArrived ? 'yes: the service may have it, whatever it answered last' : null],
    ['accepted', moment(detail.acceptedMs)],
    ['polls', String(detail.polls)],
    ['ended', moment(detail.endedMs)],
    ['error code', detail.code],
    ['error', detail.error],
    ['idempotency key', detail.idempotencyKey],
    ['outbox row says', detail.reportDue ? `not yet this state: ${detail.reportTrouble ?? 'the report is due'}` : null],
    ['told again', moment(detail.reportAgainMs)],
  ]
  return all.flatMap(([name, value]) => (value === null ? [] : [[name, value]]))
}

/**
 * What an event keeps beside its cause; a body or payload of before is there for whoever must know what was sent when. Pure.
 */
export function eventDetails({
  detail,
  cause,
}: Pick<LoggedEvent, 'detail' | 'cause'>): [name: string, value: string][] {
  if (detail === null) return []
  // By its claim an owner finds what was put in doubt behind its back, by the digest audit --verify a changed body; they tell a person nothing.
  const {
    former,
    claim: _,
    bodySha256: __,
    ...rest
  } = detail as Record<string, unknown> & {
    former?: Record<string, unknown>
  }
  const named: [string, unknown][] = [
    ...Object.entries(rest),
    ...Object.entries(former ?? {}).map(([name, value]): [string, unknown] => [`former ${name}`, value]),
  ]
  return named.filter((each): each is [string, string] => typeof each[1] === 'string' && !cause.includes(each[1]))
}

/** What stands where a payload or a body would. Pure. */
export function noneBecause(
  { emptiedMs, erasedMs }: Pick<SubmissionDetail, 'emptiedMs' | 'erasedMs'>,
  otherwise: string,
): string {
  if (erasedMs !== null) return `erased ${showTime(erasedMs)}`
  return emptiedMs === null ? `none: ${otherwise}` : `emptied ${showTime(emptiedMs)}: RETENTION_PAYLOAD_DAYS`
}
