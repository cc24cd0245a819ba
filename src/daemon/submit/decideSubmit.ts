import {
  type Answer,
  type AnswerReading,
  type Breach,
  type MetPause,
  type PauseCall,
  type Submission,
  statusRow,
  type UncertainPolicy,
} from '../../model.ts'

/** What an answer to a POST says. */
export type SubmitReading = Omit<AnswerReading, 'transaction'>

/** What else matters for judging an answer to a POST. */
export interface SubmitCircumstances {
  history: SubmitHistory
  policy: UncertainPolicy
  /** False if acceptance is the end: its mapping says `track: false`. */
  tracked: boolean
  /** The number of the attempt that was answered, from 1: after one in doubt the wait grows with it. */
  attempt: number
  /** Whether the token had outlived itself by the time of the answer, so that a 401 says no more than that. */
  tokenOutlived: boolean
  limits: SubmitLimits
}

/** What a submission's history says that matters for judging its next answer. */
export interface SubmitHistory extends Pick<Submission, 'serverErrors' | 'renewedKeys' | 'met'> {
  /** Whether an attempt before this one may have arrived without our knowing. */
  earlierInDoubt: boolean
  /** Whether the request just answered was already a repeat with a new token, of this record or of another. */
  repeatedAfter401: boolean
}

/** What an answer to a POST means for its submission. */
export type SubmitVerdict =
  | { kind: 'accepted'; transactionId: string; breach: Breach | null }
  /** `leftTrace`: the refusal itself says that the service may have the record all the same. */
  | { kind: 'rejected'; code: string | null; reason: string; leftTrace: boolean }
  | { kind: 'failed'; code: string | null; reason: string }
  | { kind: 'uncertain'; code: string | null; reason: string; breach: Breach | null }
  /** Send again with a new idempotency key; if the service says that it is down, after a pause for everyone. */
  | { kind: 'renew-key'; pause: PauseCall | null; reason: string }
  /** Answered 500: send again after a while with the same key; uses up a retry. */
  | { kind: 'retry'; afterMs: number; reason: string }
  /** Nobody knows whether it arrived, and the policy is to send again with the same key. */
  | { kind: 'resend'; afterMs: number; reason: string }
  /** Ask the service for an id: the one that its Location names, or (null) the one that the mapping sends. */
  | { kind: 'probe'; transactionId: string | null; reason: string }
  /** Repeat with a new token; uses up nothing. `ofAge`: the token was too old, so that this refusal does not count as the first. */
  | { kind: 'new-token'; ofAge: boolean; reason: string }
  /**
   * Nobody sends for a while; the record stays queued and has used up nothing. `times`: how often it has met this pause
   * while others got through; 0 if that says nothing about it. `mayHaveArrived`: after a redirect.
   */
  | { kind: 'pause'; pause: PauseCall; times: number; mayHaveArrived: boolean }

/** Durations in milliseconds; tests and benchmarks compress them. */
export interface SubmitLimits {
  /** The wait before the first retry, doubling from there. */
  backoffMinMs: number
  /** The longest wait before sending again after an attempt in doubt. */
  backoffMaxMs: number
}

export const submitLimits: SubmitLimits = { backoffMinMs: 1_000, backoffMaxMs: 60_000 }

const serverErrorsMax = 3
const renewalsMax = 3

/**
 * What an answer to a POST means for its submission (docs/guarantee.md, "What each status means"). Never throws.
 *
 * A success with an id is looked at first, since an id or a text in it may look like an error's code; then E002 and E003,
 * if the status heeds them; then the status.
 *
 * @see docs/interface.md, 7
 */
export function decideSubmit(answer: Answer, reading: SubmitReading, now: SubmitCircumstances): SubmitVerdict {
  const { submittedId, pause, summary } = reading
  if (answer.kind === 'no-answer')
    return pause === null ? inDoubt(summary, now) : { kind: 'pause', pause, times: 0, mayHaveArrived: false }
  const { code } = answer
  const { post, heedsCode } = statusRow(answer.status)
  if (submittedId !== null) return withId(submittedId, answer, reading, now)
  if (heedsCode && code === 'E002') return duplicate(summary, now.history)
  if (post === 'token-refused' && (now.tokenOutlived || !now.history.repeatedAfter401))
    return { kind: 'new-token', ofAge: now.tokenOutlived, reason: summary }
  if (pause !== null) return paused(answer, summary, pause, now.history)
  switch (post) {
    case 'taken':
      return withoutId(answer, summary)
    case 'performed':
      return performed(answer, summary)
    case 'server-error':
      return serverError(code, summary, now)
    case 'invalid':
    case 'refused':
    case 'refused-in-doubt':
    case 'nothing-there': // in the service's own words
      return refused(answer, reading, now.history)
    case 'in-doubt':
    // Each of the others called for a pause.
    case 'moved':
    case 'token-refused':
    case 'forbidden':
    case 'throttled':
    case 'unavailable':
      return inDoubt(summary, now)
    default:
      return post satisfies never
  }
}

/** The service gave it an id. What stands beside the id may say that it failed, and then it is not accepted. */
function withId(
  transactionId: string,
  { code }: Answer & { kind: 'response' },
  { taken, summary, pause }: SubmitReading,
  { history, tracked }: SubmitCircumstances,
): SubmitVerdict {
  // What the service says of a transaction that is tracked, its next poll will tell.
  if (taken === 'yes' || (taken === 'unclear' && tracked)) return { kind: 'accepted', transactionId, breach: null }
  if (taken === 'unclear') {
    const reason = `the service accepted it as ${transactionId}, with the error code ${code} beside the id: ${summary}; nobody asks again: track: false`
    return { kind: 'uncertain', code, reason, breach: 'unknown_status' }
  }
  const reason = `the service gave it the id ${transactionId}, and says that it failed: ${summary}`
  if (code !== 'E002' && code !== 'E003') return { kind: 'failed', code, reason }
  // The key's transaction has failed: under the same key the service could only say so again.
  const again = duplicate(reason, history, code)
  return again.kind === 'renew-key' && code === 'E003' ? { ...again, pause } : again
}

/**
 * 300, 303 and 304: the request was performed, so it is not sent again, whatever the policy, unless GET says that it failed
 * with E003. The id at the end of Location is asked for; without one it is uncertain, also under `probe`: a GET that does not
 * know the id of the mapping would send it again.
 *
 * @see RFC 9110, 15.4.4
 */
function performed({ locationId: transactionId }: Answer & { kind: 'response' }, summary: string): SubmitVerdict {
  const reason = `${summary}; that says that the request was performed`
  if (transactionId !== null)
    return { kind: 'probe', transactionId, reason: `${reason}: asking for ${transactionId}, which Location names` }
  return { kind: 'uncertain', code: null, reason: `${reason}, without an id`, breach: 'missing_id' }
}

/** Nobody can know whether it arrived: the policy decides, and `hold` is the one that never sends again by itself. */
function inDoubt(summary: string, { policy, attempt, limits }: SubmitCircumstances): SubmitVerdict {
  const reason = `${summary}; it may or may not have arrived`
  switch (policy) {
    case 'hold':
      return { kind: 'uncertain', code: null, reason, breach: null }
    case 'resend':
      return { kind: 'resend', afterMs: Math.min(backoffMs(limits, attempt - 1), limits.backoffMaxMs), reason }
    case 'probe':
      return { kind: 'probe', transactionId: null, reason }
    default:
      return policy satisfies never
  }
}

/**
 * E002: the service has this transaction already. If no earlier attempt can have brought it there, the id is
 * another's and a new one helps (docs/interface.md, 7.2). Otherwise it was ours, and under a new id it would be there twice.
 * An answer 500 counts as such an attempt: the service may have stored the record before it fell over.
 */
function duplicate(
  summary: string,
  { earlierInDoubt, serverErrors, renewedKeys }: SubmitHistory,
  code = 'E002',
): SubmitVerdict {
  if (earlierInDoubt || serverErrors > 0)
    return {
      kind: 'uncertain',
      code,
      reason: `${summary}; an earlier attempt ${code === 'E002' ? 'arrived' : 'may have arrived'}`,
      breach: null,
    }
  if (renewedKeys < renewalsMax) return { kind: 'renew-key', pause: null, reason: summary }
  return { kind: 'failed', code, reason: `${summary}; ${renewalsMax} new ids did not help` }
}

/**
 * A 400 judges the data, and would have judged an earlier attempt the same way. Any other refusal after an attempt in
 * doubt may mean that the service has the record already, as a 409 without a readable code does. And some say even of a
 * first attempt that it may have it: those that judge the exchange and not the data, and those that name an id.
 */
function refused(
  { status, code }: Answer & { kind: 'response' },
  { summary, namesId }: SubmitReading,
  history: SubmitHistory,
): SubmitVerdict {
  const { post } = statusRow(status)
  if (history.earlierInDoubt && post !== 'invalid' && code !== 'E001')
    return { kind: 'uncertain', code, reason: `${summary}; an earlier attempt may have arrived`, breach: null }
  return namesId || post === 'refused-in-doubt'
    ? { kind: 'rejected', code, reason: `${summary}; the service may have it all the same`, leftTrace: true }
    : { kind: 'rejected', code, reason: summary, leftTrace: false }
}

/** So often a record may meet a pause while others get through; then it is itself the cause. */
const pausesMax = 3

/** All sending pauses, unless only this record is answered so, as by a firewall. */
function paused(
  { status, code }: Answer & { kind: 'response' },
  summary: string,
  pause: PauseCall,
  { met, earlierInDoubt }: SubmitHistory,
): SubmitVerdict {
  const times = timesMet(pause, met)
  const moved = statusRow(status).post === 'moved'
  if (times < pausesMax) return { kind: 'pause', pause, times, mayHaveArrived: moved }
  const reason = `${summary}; it was answered so ${times} times while others got through, so it is this record`
  return earlierInDoubt || moved
    ? { kind: 'uncertain', code, reason: `${reason}; an earlier attempt may have arrived`, breach: null }
    : { kind: 'rejected', code, reason, leftTrace: false }
}

/** A pause that another record met and left behind passes by itself: a record that meets it again begins anew. */
function timesMet({ reason }: PauseCall, met: MetPause | null): number {
  if (met === null || met.reason !== reason || met.othersRecovered) return 1
  return met.othersThrough ? met.times + 1 : met.times
}

/** The service says it took the record, but not under which id, so that it cannot be tracked. */
function withoutId({ json, code }: Answer & { kind: 'response' }, summary: string): SubmitVerdict {
  const [breach, what] =
    json === undefined ? (['unreadable_answer', 'cannot be read'] as const) : (['missing_id', 'has no id'] as const)
  return { kind: 'uncertain', code, reason: `the service took it, but its answer ${what}: ${summary}`, breach }
}

function serverError(code: string | null, summary: string, { history, limits }: SubmitCircumstances): SubmitVerdict {
  return history.serverErrors < serverErrorsMax
    ? { kind: 'retry', afterMs: backoffMs(limits, history.serverErrors), reason: summary }
    : { kind: 'failed', code, reason: `${summary}; ${serverErrorsMax} retries did not help` }
}

function backoffMs({ backoffMinMs }: SubmitLimits, doublings: number): number {
  return backoffMinMs * 2 ** Math.max(0, doublings)
}
