import {
  type Answer,
  type Breach,
  isSuccess,
  type MetPause,
  type PauseCall,
  type UncertainPolicy,
} from '../../model.ts'

/** What an answer to a POST says, as src/service/reading.ts reads it. */
export interface SubmitReading {
  submittedId: string | null
  namesId: boolean
  pause: PauseCall | null
  summary: string
}

/** What else matters for judging an answer to a POST. */
export interface SubmitCircumstances {
  history: SubmitHistory
  policy: UncertainPolicy
  /** The number of the attempt that was answered, from 1: after one in doubt the wait grows with it. */
  attempt: number
  /** Whether the token had outlived itself by the time of the answer, so that a 401 says no more than that. */
  tokenOutlived: boolean
  limits: SubmitLimits
}

/** What a submission's history says that matters for judging its next answer. */
export interface SubmitHistory {
  /** Answers 500 so far (docs/interface.md 7.1: at most 3 retries). */
  serverErrors: number
  /** Idempotency keys renewed after E002 so far. */
  renewedKeys: number
  /** Whether an attempt before this one may have arrived without our knowing. */
  earlierInDoubt: boolean
  /** Whether the request just answered was already the repeat with a new token. */
  repeatedAfter401: boolean
  /** Null where its answers have called for no pause. */
  met: MetPause | null
}

/** What an answer to a POST means for its submission. */
export type SubmitVerdict =
  | { kind: 'accepted'; transactionId: string; breach: Breach | null }
  /** `leftTrace`: the refusal itself says that the service may have the record all the same. */
  | { kind: 'rejected'; code: string | null; reason: string; leftTrace: boolean }
  | { kind: 'failed'; code: string | null; reason: string }
  | { kind: 'uncertain'; code: string | null; reason: string; breach: Breach | null }
  /** Send again with a new idempotency key. */
  | { kind: 'renew-key'; reason: string }
  /** Answered 500: send again after a while with the same key; uses up a retry. */
  | { kind: 'retry'; afterMs: number; reason: string }
  /** Nobody knows whether it arrived, and the policy is to send again with the same key. */
  | { kind: 'resend'; afterMs: number; reason: string }
  /** Nobody knows whether it arrived, and the policy is to ask the service for the id that the mapping sends. */
  | { kind: 'probe'; reason: string }
  /** Repeat with a new token; uses up nothing. A second refusal is none where this one came of the token's age. */
  | { kind: 'new-token'; ofAge: boolean; reason: string }
  /**
   * Nothing arrived and nobody sends for a while; the record stays queued and has used up nothing. `times`: how often
   * it has met this pause while others got through; 0 where that says nothing about it.
   */
  | { kind: 'pause'; pause: PauseCall; times: number }

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
 * What an answer to a POST means for its submission: the first table of
 * docs/contract.md, "What an answer means". Never throws.
 *
 * A success with an id is looked at first, since an id or a text in it may look like an error's code; then what the
 * codes say of any status; then the statuses.
 *
 * @see docs/interface.md, 7
 */
export function decideSubmit(answer: Answer, reading: SubmitReading, now: SubmitCircumstances): SubmitVerdict {
  const { submittedId, pause, summary } = reading
  if (answer.kind === 'no-answer') return pause === null ? inDoubt(summary, now) : { kind: 'pause', pause, times: 0 }
  const { status, code } = answer
  if (submittedId !== null) return { kind: 'accepted', transactionId: submittedId, breach: null }
  if (code === 'E002') return duplicate(summary, now.history)
  if (isSuccess(status) && pause === null) return withoutId(answer, summary)
  if (pause?.reason === 'unauthorized' && status === 401 && (now.tokenOutlived || !now.history.repeatedAfter401))
    return { kind: 'new-token', ofAge: now.tokenOutlived, reason: summary }
  if (pause !== null) return paused(answer, summary, pause, now.history)
  if (status === 500) return serverError(code, summary, now)
  if (status >= 400 && status < 500) return refused(answer, reading, now.history)
  return inDoubt(summary, now)
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
      return { kind: 'probe', reason }
    default:
      return policy satisfies never
  }
}

/**
 * E002: the service has this transaction already. Where no earlier attempt can have brought it there, the id is
 * another's and a new one helps (docs/interface.md, 7.2). Otherwise it was ours, and under a new id it would be there twice.
 * An answer 500 counts as such an attempt: the service may have stored the record before it fell over.
 */
function duplicate(summary: string, { earlierInDoubt, serverErrors, renewedKeys }: SubmitHistory): SubmitVerdict {
  if (earlierInDoubt || serverErrors > 0)
    return { kind: 'uncertain', code: 'E002', reason: `${summary}; an earlier attempt arrived`, breach: null }
  if (renewedKeys < renewalsMax) return { kind: 'renew-key', reason: summary }
  return { kind: 'failed', code: 'E002', reason: `${summary}; ${renewalsMax} new ids did not help` }
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
  if (history.earlierInDoubt && status !== 400 && code !== 'E001')
    return { kind: 'uncertain', code, reason: `${summary}; an earlier attempt may have arrived`, breach: null }
  return namesId || tracesLeft.has(status)
    ? { kind: 'rejected', code, reason: `${summary}; the service may have it all the same`, leftTrace: true }
    : { kind: 'rejected', code, reason: summary, leftTrace: false }
}

/** Out of time, a conflict, too early, the client gone: nothing in them says that the record was not stored. */
const tracesLeft: ReadonlySet<number> = new Set([408, 409, 425, 499])

/** So often a record may meet a pause while others get through; then it is itself the cause. */
const pausesMax = 3

/** Nothing arrived. Nobody sends for a while, unless it is this record alone that is answered so, as by a firewall. */
function paused(
  { code }: Answer & { kind: 'response' },
  summary: string,
  pause: PauseCall,
  { met, earlierInDoubt }: SubmitHistory,
): SubmitVerdict {
  const times = timesMet(pause, met)
  if (times < pausesMax) return { kind: 'pause', pause, times }
  const reason = `${summary}; it was answered so ${times} times while others got through, so it is this record`
  return earlierInDoubt
    ? { kind: 'uncertain', code, reason: `${reason}; an earlier attempt may have arrived`, breach: null }
    : { kind: 'rejected', code, reason, leftTrace: false }
}

/** A pause that another record met and left behind passes by itself: whoever meets it again begins anew. */
function timesMet({ reason }: PauseCall, met: MetPause | null): number {
  if (met === null || met.reason !== reason || met.othersRecovered) return 1
  return met.othersThrough ? met.times + 1 : met.times
}

/** The service says it took the record, but not under which id: nobody can follow it. */
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
