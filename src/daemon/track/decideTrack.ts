import { boundText, textCharsMax } from '../../boundText.ts'
import {
  type Answer,
  type AnswerReading,
  type Breach,
  isSameId,
  type PauseToRaise,
  type TransactionStatus,
} from '../../model/service.ts'
import { meaningOfHttpStatus } from '../../model/statuses.ts'
import type { Submission } from '../../model/submission.ts'

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
export const unknownPollsMin = 5
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
