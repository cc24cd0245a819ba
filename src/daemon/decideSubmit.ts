import { type Answer, type AnswerReading, type Breach, isSameId, type PauseToRaise } from '../model/service.ts'
import { meaningOfHttpStatus } from '../model/statuses.ts'
import {
  mayEarlierHaveArrived,
  type ServerErrorPolicy,
  type Submission,
  type SubmissionStep,
  stepOf,
  type UncertainPolicy,
} from '../model/submission.ts'

export type SubmitReading = Omit<AnswerReading, 'transaction'>

export interface SubmitCircumstances {
  history: SubmitHistory
  policy: UncertainPolicy
  serverErrorPolicy: ServerErrorPolicy
  /** False if the record ends when it is accepted (`track: false` in the mapping). */
  tracked: boolean
  /** Counted from 1. */
  attempt: number
  /** True if the token had expired when the answer came. A 401 may mean only that the token expired. */
  hasTokenExpired: boolean
}

export interface SubmitHistory
  extends Pick<Submission, 'inDoubt' | 'serverErrors' | 'renewedKeys' | 'resubmissions' | 'answeredUnavailable'> {
  /** True if the token of this request was fetched after a 401 to this or another record. */
  repeatedAfter401: boolean
}

export type SubmitVerdict =
  | { kind: 'accepted'; transactionId: string; breach: Breach | null }
  | { kind: 'rejected'; code: string | null; reason: string; leftTrace: boolean }
  | { kind: 'failed'; code: string | null; reason: string }
  /** `pause` is set after a redirect. */
  | { kind: 'uncertain'; code: string | null; reason: string; breach: Breach | null; pause?: PauseToRaise }
  /**
   * Send again with a new idempotency key. `pause` is set if the service is down. `gaveId` is true if the answer has an
   * id, so that the service may have stored the record.
   */
  | { kind: 'renew-key'; gaveId: boolean; pause: PauseToRaise | null; reason: string }
  | { kind: 'retry'; afterMs: number; reason: string }
  | { kind: 'resend'; afterMs: number; reason: string }
  /** Poll the id from Location, or, if `transactionId` is null, the id that the mapping sends. */
  | { kind: 'probe'; transactionId: string | null; reason: string }
  /** Repeat with a new token. `ofAge` is true if the old token had expired, so that this 401 does not count. */
  | { kind: 'new-token'; ofAge: boolean; reason: string }
  /** All sending pauses, and the record stays queued. `mayHaveArrived` is true after a redirect. */
  | { kind: 'pause'; gaveId: boolean; pause: PauseToRaise; mayHaveArrived: boolean }

const backoffMinMs = 1_000
const backoffMaxMs = 60_000

const serverErrorsMax = 3
const renewalsMax = 3

/**
 * Decides what an answer to a POST means (docs/why/states.md, "What each status means"). Never throws.
 *
 * A success with an id is judged first, because an id or a text in the answer may look like an error code. E002 and
 * E003 come next, if they count for this status. The status comes last.
 *
 * @see docs/reference/interface.md, 7
 */
export function decideSubmit(
  answer: Answer,
  reading: SubmitReading,
  circumstances: SubmitCircumstances,
): SubmitVerdict {
  const { submittedId, pause, summary } = reading
  if (answer.kind === 'no-answer')
    return pause === null
      ? inDoubt(summary, circumstances)
      : { kind: 'pause', gaveId: false, pause, mayHaveArrived: false }
  const { code } = answer
  const { post, heedsCode } = meaningOfHttpStatus(answer.status)
  if (submittedId !== null) return withId(submittedId, answer, reading, circumstances)
  if (heedsCode && code === 'E002')
    return duplicate(code, summary, { history: circumstances.history, gaveId: reading.hasTransactionId })
  if (post === 'token-refused' && (circumstances.hasTokenExpired || !circumstances.history.repeatedAfter401))
    return { kind: 'new-token', ofAge: circumstances.hasTokenExpired, reason: summary }
  if (pause !== null) return paused(answer, reading, pause, circumstances)
  switch (post) {
    case 'taken':
      return withoutId(answer, summary)
    case 'performed':
      return performed(answer, summary)
    case 'server-error':
      return serverError(code, summary, circumstances)
    case 'invalid':
    case 'refused':
    case 'refused-in-doubt':
    case 'nothing-there': // with the service's own code; without a code, `pause` is set
      return refused(answer, reading, circumstances.history)
    case 'in-doubt':
    case 'moved':
    case 'token-refused':
    case 'forbidden':
    case 'throttled':
    case 'unavailable':
      return inDoubt(summary, circumstances)
    default:
      return post satisfies never
  }
}

/** Besides the id, the answer may have fields that say that the record failed. */
function withId(
  transactionId: string,
  { code }: Answer & { kind: 'response' },
  { acceptance, summary, pause }: SubmitReading,
  { history, tracked }: SubmitCircumstances,
): SubmitVerdict {
  if (acceptance === 'yes' || (acceptance === 'unclear' && tracked))
    return { kind: 'accepted', transactionId, breach: null }
  if (acceptance === 'unclear') {
    const reason = `the service accepted the record as ${transactionId}, with the error code ${code} next to the id: ${summary}; the record is not polled, because its mapping says track: false`
    return { kind: 'uncertain', code, reason, breach: 'unknown_status' }
  }
  const reason = `the service gave the record the id ${transactionId}, and says that the record failed: ${summary}`
  if (code !== 'E002' && code !== 'E003') return { kind: 'failed', code, reason }
  // Sends under a new key, because under the same key the service would repeat the failure. Only E003 has a pause.
  const again = duplicate(code, reason, { history, gaveId: true })
  return again.kind === 'renew-key' ? { ...again, pause } : again
}

/**
 * 300, 303 and 304 say that the request was performed, so the record is never sent again. Without an id in Location the
 * record is uncertain, even under `probe`, because a probe for an unknown id would lead to another send.
 *
 * @see RFC 9110, 15.4.4
 */
function performed({ locationId: transactionId }: Answer & { kind: 'response' }, summary: string): SubmitVerdict {
  const reason = `${summary}; so the request was performed`
  if (transactionId !== null)
    return {
      kind: 'probe',
      transactionId,
      reason: `${reason}: the daemon asks for ${transactionId}, the id in Location`,
    }
  return { kind: 'uncertain', code: null, reason: `${reason}, without an id`, breach: 'missing_id' }
}

/** Applies UNCERTAIN_POLICY. Only `hold` never sends a record again by itself. */
function inDoubt(summary: string, { policy, attempt }: SubmitCircumstances): SubmitVerdict {
  const reason = `${summary}; the request may or may not have arrived`
  switch (policy) {
    case 'hold':
      return { kind: 'uncertain', code: null, reason, breach: null }
    case 'resend':
      return { kind: 'resend', afterMs: Math.min(backoffMs(attempt - 1), backoffMaxMs), reason }
    case 'probe':
      return { kind: 'probe', transactionId: null, reason }
    default:
      return policy satisfies never
  }
}

/**
 * Judges E002: the service has a transaction under this key. If no earlier attempt can have arrived, the transaction is
 * another record's, and a new key helps (docs/reference/interface.md, 7.2). Otherwise a new key would send the record
 * twice. So does E002 after a 503.
 *
 * @param gaveId true if the answer has an id, also with E003: the service may have stored the record
 */
function duplicate(
  code: 'E002' | 'E003',
  summary: string,
  { history, gaveId }: { history: SubmitHistory; gaveId: boolean },
): SubmitVerdict {
  const { inDoubt, serverErrors, renewedKeys, resubmissions } = history
  const isTakenByUs = code === 'E002' && history.answeredUnavailable
  if (inDoubt || serverErrors > 0 || isTakenByUs)
    return {
      kind: 'uncertain',
      code,
      reason: `${summary}; an earlier attempt ${code === 'E002' ? 'has probably arrived' : 'may have arrived'}`,
      breach: null,
    }
  const renewals = gaveId ? resubmissions : renewedKeys
  if (renewals < renewalsMax) return { kind: 'renew-key', gaveId, pause: null, reason: summary }
  return { kind: 'failed', code, reason: `${summary}; ${renewalsMax} new idempotency keys did not help` }
}

/**
 * A 400 judges the data, so the judgement holds for an earlier attempt, too. If a refusal names an id, even this attempt
 * may have arrived.
 */
function refused(
  { status, code }: Answer & { kind: 'response' },
  { summary, hasTransactionId }: SubmitReading,
  history: SubmitHistory,
): SubmitVerdict {
  const { post } = meaningOfHttpStatus(status)
  const judgesData = post === 'invalid' || code === 'E001'
  if (history.inDoubt && !judgesData)
    return { kind: 'uncertain', code, reason: `${summary}; an earlier attempt may have arrived`, breach: null }
  return hasTransactionId || post === 'refused-in-doubt' || (!judgesData && history.answeredUnavailable)
    ? { kind: 'rejected', code, reason: `${summary}; the service may have the record nevertheless`, leftTrace: true }
    : { kind: 'rejected', code, reason: summary, leftTrace: false }
}

/** A service that stores a record and then redirects would get a copy after each pause. */
function paused(
  { status, code }: Answer & { kind: 'response' },
  { summary, hasTransactionId }: SubmitReading,
  pause: PauseToRaise,
  { history: { inDoubt }, policy }: SubmitCircumstances,
): SubmitVerdict {
  const mayHaveArrived = meaningOfHttpStatus(status).post === 'moved'
  if (!mayHaveArrived || !inDoubt || policy === 'resend')
    return { kind: 'pause', gaveId: hasTransactionId && pause.reason === 'unavailable', pause, mayHaveArrived }
  return { kind: 'uncertain', code, reason: `${summary}; an earlier attempt may have arrived`, breach: null, pause }
}

function withoutId({ json, code }: Answer & { kind: 'response' }, summary: string): SubmitVerdict {
  if (json === undefined) {
    const reason = `the answer cannot be read, so the record may have arrived: ${summary}`
    return { kind: 'uncertain', code, reason, breach: 'unreadable_answer' }
  }
  const reason = `the service took the record, but the answer has no usable id: ${summary}`
  return { kind: 'uncertain', code, reason, breach: 'missing_id' }
}

function serverError(
  code: string | null,
  summary: string,
  { history, serverErrorPolicy }: SubmitCircumstances,
): SubmitVerdict {
  if (serverErrorPolicy === 'hold')
    return { kind: 'uncertain', code, reason: `${summary}; the service may have the record nevertheless`, breach: null }
  return history.serverErrors < serverErrorsMax
    ? { kind: 'retry', afterMs: backoffMs(history.serverErrors), reason: summary }
    : { kind: 'failed', code, reason: `${summary}; ${serverErrorsMax} retries did not help` }
}

const backoffMs = (doublings: number): number => backoffMinMs * 2 ** Math.max(0, doublings)

/** The wait before a probe, because the request may still be on its way. */
const probeAfterMs = 5_000

export function toSubmitStep(
  submission: Submission,
  verdict: SubmitVerdict,
  { firstPollMs, freshKey }: { firstPollMs: number; freshKey: string },
): SubmissionStep {
  const answered = { repeatedAfter401: false }
  const earlierMay = mayEarlierHaveArrived(submission)
  const neverPolled = { polls: 0, fruitless: 0, openedTimes: 0, notDoneMs: null }
  const accepted = (transactionId: string) => {
    const known = { ...answered, transactionId }
    if (!submission.tracked)
      return stepOf({ ...known, state: 'completed', doneMs: null, result: null }, 'accepted', 'accepted, not tracked')
    const poll = { pollInMs: firstPollMs, polledRarely: false, unknown: false }
    return stepOf({ ...known, ...neverPolled, state: 'accepted', ...poll }, 'accepted')
  }
  switch (verdict.kind) {
    case 'accepted':
      return accepted(verdict.transactionId)
    case 'rejected':
      return stepOf(
        { ...answered, ...toldFields(verdict), state: 'rejected', mayHaveArrived: verdict.leftTrace || earlierMay },
        'rejected',
        verdict.reason,
      )
    case 'failed':
      return stepOf(
        { ...answered, ...toldFields(verdict), state: 'failed', doneMs: null, mayHaveArrived: earlierMay },
        'failed',
        verdict.reason,
      )
    case 'uncertain':
      return stepOf(
        { ...answered, ...toldFields(verdict), state: 'uncertain', doneMs: null },
        'uncertain',
        verdict.reason,
        verdict.pause,
      )
    case 'renew-key': {
      const renewed = {
        idempotencyKey: freshKey,
        ...(verdict.gaveId
          ? { resubmissions: submission.resubmissions + 1 }
          : { renewedKeys: submission.renewedKeys + 1 }),
        ...(verdict.pause?.reason === 'unavailable' && { answeredUnavailable: true }),
      }
      return stepOf({ ...answered, ...renewed, state: 'queued', dueInMs: 0 }, 'new_key', verdict.reason, verdict.pause)
    }
    case 'retry': {
      // The server may have stored the record before it failed, so a later E002 must not get a new key.
      const tried = { serverErrors: submission.serverErrors + 1, inDoubt: true }
      return stepOf({ ...answered, ...tried, state: 'queued', dueInMs: verdict.afterMs }, 'retried', verdict.reason)
    }
    case 'resend':
      return stepOf({ ...answered, state: 'queued', dueInMs: verdict.afterMs, inDoubt: true }, 'resent', verdict.reason)
    case 'probe':
      // Location has the submission's own id. The record counts as accepted, because a probe could lead to another
      // send.
      if (verdict.transactionId !== null && isSameId(verdict.transactionId, submission.id))
        return accepted(verdict.transactionId)
      return stepOf(
        {
          ...answered,
          state: 'sending',
          transactionId: verdict.transactionId ?? submission.id,
          pollInMs: verdict.transactionId === null ? probeAfterMs : firstPollMs,
          polledRarely: false,
          unknown: false,
          inDoubt: true,
        },
        'probed',
        verdict.reason,
      )
    case 'new-token':
      return stepOf(
        { state: 'queued', dueInMs: 0, ...(!verdict.ofAge && { repeatedAfter401: true }) },
        'new_token',
        verdict.reason,
      )
    case 'pause':
      return stepOf(
        {
          ...answered,
          state: 'queued',
          dueInMs: 0,
          ...(verdict.mayHaveArrived && { inDoubt: true }),
          // Counts once: a pause uses up none of the tries.
          ...(verdict.gaveId && { resubmissions: Math.max(submission.resubmissions, 1) }),
          ...(verdict.pause.reason === 'unavailable' && { answeredUnavailable: true }),
        },
        'paused',
        `pause ${verdict.pause.reason}: ${verdict.pause.detail}`,
        verdict.pause,
      )
    default:
      return verdict satisfies never
  }
}

const toldFields = ({ code, reason }: { code: string | null; reason: string }) => ({ errorCode: code, error: reason })

export function stepOfUnsentAttempt(why: string): SubmissionStep {
  return stepOf({ state: 'queued', dueInMs: 0 }, 'never_sent', `never sent: ${why}`)
}
