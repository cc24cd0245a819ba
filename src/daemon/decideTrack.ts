import { boundText, textCharsMax } from '../boundText.ts'
import {
  type Answer,
  type AnswerReading,
  type Breach,
  isSameId,
  type PauseToRaise,
  type TransactionStatus,
} from '../model/service.ts'
import { meaningOfHttpStatus } from '../model/statuses.ts'
import {
  type Change,
  mayEarlierHaveArrived,
  type Submission,
  type SubmissionStep,
  stepOf,
} from '../model/submission.ts'

export type TrackReading = Pick<AnswerReading, 'transaction' | 'pause' | 'summary'>

export interface TrackCircumstances {
  transactionId: string
  ageMs: number
  history: TrackHistory
  hasTokenExpired: boolean
  unavailableMs: number
}

export type TrackHistory = Pick<
  Submission,
  'inDoubt' | 'unknownForMs' | 'resubmissions' | 'fruitless' | 'repeatedAfter401' | 'idByPerson' | 'answeredUnavailable'
>

export type TrackVerdict =
  | { kind: 'completed'; result: string | null }
  | { kind: 'failed'; code: string | null; reason: string }
  /** The service has not known the transaction for ten minutes, but never said that the transaction failed. */
  | { kind: 'lost'; idByPerson: boolean; reason: string }
  /** An earlier attempt may have arrived, too. */
  | { kind: 'uncertain'; code: string; reason: string }
  | { kind: 'pending' }
  /** The poll got no usable answer. */
  | {
      kind: 'ask-again'
      afterMs: number
      unknown: boolean
      reason: string
      breach: Breach | null
      /** Set if the answer has a status that the interface does not have. */
      foreignStatus?: string
    }
  | { kind: 'resubmit'; afterMs: number; code: string; reason: string }
  | { kind: 'new-token'; ofAge: boolean; reason: string }
  | { kind: 'pause'; pause: PauseToRaise }

const unknownMaxMs = 600_000
/** The fewest 404s in a row before a transaction counts as lost, because its time also runs during pauses and downtime. */
const unknownPollsMin = 5
const backoffMinMs = 1_000
const backoffMaxMs = 60_000
/** The longest wait between polls of an old transaction, and the shortest for a stuck one. */
export const oldTransactionBackoffMaxMs = 3_600_000

const resubmissionsMax = 3

/**
 * Decides what an answer to a GET means for its transaction (docs/why/states.md, "What each status means"). Never
 * throws.
 *
 * A failed poll never fails the transaction. A transaction fails only if the service says so, or does not know the id
 * for ten minutes.
 *
 * @see docs/reference/interface.md, 2.4, 3 and 7
 */
export function decideTrack(answer: Answer, reading: TrackReading, circumstances: TrackCircumstances): TrackVerdict {
  const { transaction, pause, summary } = reading
  if (transaction !== null) return decideStatus(transaction, circumstances)
  if (answer.kind === 'no-answer')
    return pause === null ? askAgain(summary, null, circumstances) : { kind: 'pause', pause }
  const { get } = meaningOfHttpStatus(answer.status)
  if (get === 'token-refused' && (circumstances.hasTokenExpired || !circumstances.history.repeatedAfter401))
    return { kind: 'new-token', ofAge: circumstances.hasTokenExpired, reason: summary }
  if (pause !== null) return { kind: 'pause', pause }
  if (get === 'unknown') return unknown(summary, circumstances)
  return askAgain(summary, get === 'answered' ? 'unreadable_answer' : null, circumstances)
}

function decideStatus(read: TransactionStatus, now: TrackCircumstances): TrackVerdict {
  if (read.transactionId !== null && !isSameId(read.transactionId, now.transactionId))
    return askAgain('the service answered about another transaction', 'other_transaction', now)
  switch (read.status) {
    case 'completed':
      return { kind: 'completed', result: read.result }
    case 'failed':
      return decideFailed(read.errorCode, now)
    // The interface does not show if `accepted` is a state of a transaction, too (docs/reference/interface.md, 3.1).
    case 'accepted':
    case 'pending':
      return { kind: 'pending' }
    default: {
      const foreignStatus = boundText(read.status, textCharsMax.word)
      const reason = `the service answered with an unknown status: ${foreignStatus}`
      return { ...askAgain(reason, 'unknown_status', now), foreignStatus }
    }
  }
}

/**
 * Sends a record again after E002 or E003, under a new key, because the service would repeat the failure under the old
 * key. After an attempt in doubt or a 503, E002 gets no new key, because the service might have the record already. A
 * transaction that an operator named may be another record's, so its record is not sent again.
 */
function decideFailed(code: string | null, now: TrackCircumstances): TrackVerdict {
  const { history, unavailableMs } = now
  const reason = `the service processed the transaction, and it failed ${code === null ? 'without a code' : `with ${code}`}`
  if (code === 'E002' && (history.inDoubt || history.answeredUnavailable))
    return { kind: 'uncertain', code, reason: `${reason}; an earlier attempt may have arrived` }
  if (history.idByPerson)
    return {
      kind: 'failed',
      code,
      reason: `${reason}; an operator said that ${now.transactionId} is the record’s transaction`,
    }
  if (code !== 'E003' && code !== 'E002') return { kind: 'failed', code, reason }
  if (history.resubmissions >= resubmissionsMax && history.inDoubt)
    return { kind: 'uncertain', code, reason: `${reason}; the record may have been submitted again already` }
  if (history.resubmissions >= resubmissionsMax)
    return {
      kind: 'failed',
      code,
      reason: `${reason}; submitting the record again ${resubmissionsMax} times did not help`,
    }
  return { kind: 'resubmit', afterMs: code === 'E003' ? unavailableMs : 0, code, reason }
}

/** If an operator gave the id, the id may be a mistake, so the record does not fail. */
function unknown(summary: string, now: TrackCircumstances): TrackVerdict {
  const { unknownForMs, idByPerson, fruitless } = now.history
  if (unknownForMs === null || unknownForMs < unknownMaxMs || fruitless < unknownPollsMin)
    return { ...askAgain(summary, null, now), unknown: true }
  const reason = idByPerson
    ? `the service does not know ${now.transactionId}, the transaction that an operator named: ${summary}`
    : `the service accepted the record, but no longer knows its transaction: ${summary}`
  return { kind: 'lost', idByPerson, reason }
}

/** Polls old transactions less often, because a thousand of them must leave requests for new records. */
function askAgain(reason: string, breach: Breach | null, { history, ageMs }: TrackCircumstances) {
  const longestMs = Math.min(Math.max(backoffMaxMs, ageMs / 4), oldTransactionBackoffMaxMs)
  const afterMs = Math.min(backoffMinMs * 2 ** history.fruitless, longestMs)
  return { kind: 'ask-again', afterMs, unknown: false, reason, breach } as const
}

const probeUnknownMs = 60_000

export function toTrackStep(
  submission: Submission,
  verdict: TrackVerdict,
  now: { nextPollDelayMs: number; freshKey: string; ageAskedMs: number; ageAnsweredMs: number },
): SubmissionStep {
  const polled = { polls: submission.polls + 1, fruitless: 0, repeatedAfter401: false }
  const stay = stayAsked(submission)
  const answered = { ...polled, openedTimes: 0 }
  const done = { ...answered, doneMs: Math.round(now.ageAnsweredMs) }
  switch (verdict.kind) {
    case 'completed':
      return stepOf({ ...done, state: 'completed', result: verdict.result }, 'completed')
    case 'failed':
      return stepOf(
        {
          ...done,
          state: 'failed',
          errorCode: verdict.code,
          error: verdict.reason,
          // If an operator named the transaction, it may be another record's.
          mayHaveArrived: mayEarlierHaveArrived(submission) || submission.idByPerson,
        },
        'failed',
        verdict.reason,
      )
    case 'lost': {
      if (submission.probing) return notKnown(submission)
      const lost = { doneMs: null, errorCode: null, error: verdict.reason }
      return stepOf(
        verdict.idByPerson
          ? { ...polled, ...lost, state: 'uncertain', transactionId: null }
          : { ...polled, ...lost, state: 'failed', mayHaveArrived: true },
        'lost',
        verdict.reason,
      )
    }
    case 'uncertain':
      return stepOf(
        { ...done, state: 'uncertain', errorCode: verdict.code, error: verdict.reason },
        'uncertain',
        verdict.reason,
      )
    case 'pending':
      return stepOf(
        {
          ...answered,
          ...stay,
          state: 'accepted',
          unknown: false,
          pollInMs: now.nextPollDelayMs,
          notDoneMs: Math.round(now.ageAskedMs),
        },
        submission.probing ? 'had_arrived' : 'pending',
        submission.probing ? 'the service knows the record, so it had arrived' : null,
      )
    case 'ask-again':
      if (submission.probing && verdict.unknown && isLongUnknown(submission)) return notKnown(submission)
      return stepOf(
        {
          ...polled,
          ...stay,
          ...(verdict.foreignStatus !== undefined && { foreignStatus: verdict.foreignStatus }),
          pollInMs: verdict.afterMs,
          unknown: verdict.unknown,
          // Counts 404s in a row from 1.
          fruitless: verdict.unknown && submission.unknownForMs === null ? 1 : submission.fruitless + 1,
        },
        'asked_again',
        verdict.reason,
      )
    case 'resubmit':
      return stepOf(
        {
          ...answered,
          state: 'queued',
          dueInMs: verdict.afterMs,
          resubmissions: submission.resubmissions + 1,
          ...(verdict.code === 'E003' && { answeredUnavailable: true }),
          transactionId: null,
          errorCode: verdict.code,
          error: verdict.reason,
          notDoneMs: null,
          idempotencyKey: now.freshKey,
        },
        'resubmitted',
        verdict.reason,
      )
    case 'new-token':
      return stepOf({ ...stay, ...(!verdict.ofAge && { repeatedAfter401: true }) }, 'new_token', verdict.reason)
    case 'pause':
      return stepOf(
        // While polls go on, one that is refused is not asked again at once.
        { ...stay, pollInMs: refusedAgainMs, repeatedAfter401: false },
        'paused',
        `pause ${verdict.pause.reason}: ${verdict.pause.detail}`,
        verdict.pause,
      )
    default:
      return verdict satisfies never
  }
}

/** What opens the breaker is put off for longer. */
const refusedAgainMs = 5_000

const isLongUnknown = ({ unknownForMs, fruitless }: Submission) =>
  unknownForMs !== null && unknownForMs > probeUnknownMs && fruitless >= unknownPollsMin

/**
 * Ends a probe for an unknown id. If the id is our own, the request never arrived. If the id is from Location, the
 * request was performed.
 */
function notKnown(submission: Submission): SubmissionStep {
  const { id, transactionId } = submission
  const polls = submission.polls + 1
  if (transactionId === null || transactionId === id)
    return stepOf(
      { state: 'queued', dueInMs: 0, transactionId: null, polls },
      'had_not_arrived',
      'the service does not know the record, so it had not arrived',
    )
  const error = `the service answered that it performed the request, but does not know ${transactionId}, which its Location named`
  return stepOf({ state: 'uncertain', transactionId: null, polls, doneMs: null, errorCode: null, error }, 'lost', error)
}

export function stepOfUnsentPoll(submission: Submission, why: string): SubmissionStep {
  return stepOf(stayAsked(submission), 'never_asked', `never asked: ${why}`)
}

function stayAsked(submission: Submission): Change & { state: 'accepted' | 'sending' } {
  return {
    state: submission.probing ? 'sending' : 'accepted',
    transactionId: submission.transactionId ?? submission.id,
    pollInMs: 0,
    polledRarely: false,
    unknown: submission.unknownForMs !== null,
  }
}
