import type { ResourceEndpoint } from '../resources.ts'

export interface ServiceRequest {
  endpoint: ResourceEndpoint
  /** JSON text for a POST, an id for a GET. */
  body: string
  idempotencyKey: string | null
  /** Only with tracing. */
  traceparent?: string | undefined
}

export type Answer =
  | {
      kind: 'response'
      status: number
      json: unknown
      excerpt: string
      /** An error code anywhere in the body, such as E001. */
      code: string | null
      /** The last part of Location, if it may be an id and the host is the service's. */
      locationId: string | null
      retryAfterMs: number | null
      rateRemaining: number | null
      dateMs: number | null
      tookMs: number
    }
  | {
      kind: 'no-answer'
      /** False only if no byte left this machine. */
      sent: boolean
      cause: NoAnswerCause
      /** Without credentials and tokens. */
      detail: string
      tookMs: number
    }

/**
 * `host`: this host lacked what the request needed, such as a file descriptor, so the request did not leave. That says
 * nothing about the service.
 */
export type NoAnswerCause = 'timeout' | 'network' | 'host'

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/** UUIDs compare without case (RFC 9562, 4), other ids exactly. */
export const toComparableId = (id: string): string => (uuid.test(id) ? id.toLowerCase() : id)

export const isSameId = (one: string, other: string): boolean => toComparableId(one) === toComparableId(other)

/** What became of a claimed request. One without an answer counts for as long as it may still arrive. */
export type RequestEnd = 'answered' | 'unanswered' | 'unsent'

/** @param answer null if the request was not made */
export function endOfRequest(answer: { kind: 'response' } | { kind: 'no-answer'; sent: boolean } | null): RequestEnd {
  if (answer === null || (answer.kind === 'no-answer' && !answer.sent)) return 'unsent'
  return answer.kind === 'response' ? 'answered' : 'unanswered'
}

export const isHostFault = (answer: Answer): answer is Answer & { kind: 'no-answer' } =>
  answer.kind === 'no-answer' && answer.cause === 'host'

export const isSuccessStatus = (status: number): boolean => status >= 200 && status < 300

export const requestOutcomes = [
  'ok',
  'rejected',
  'unauthorized',
  'throttled',
  'unavailable',
  'server_error',
  'timeout',
  'network',
] as const
export type Outcome = (typeof requestOutcomes)[number]

/** A request that the ledger counts (docs/reference/interface.md, 8). */
export interface MadeRequest {
  kind: 'submit' | 'status'
  outcome: Outcome
  tookMs: number
}

/** How an answer breaks the contract. The last four contradict what `outboxd discover` saw (DISCOVERED_CONTRACT). */
export const contractBreaches = [
  'unreadable_answer',
  'missing_id',
  'unknown_status',
  'other_transaction',
  'duplicate_id',
  'unknown_code',
  'rate_limit_lower',
  'other_success_status',
  'other_error_status',
  'other_unknown_status',
  'no_rate_remaining',
] as const
export type Breach = (typeof contractBreaches)[number]

export const pauseReasons = [
  'throttled',
  'unavailable',
  'unauthorized',
  'unreachable',
  'operator',
  /** The ledger may have lost data. */
  'history',
  /** LEDGER_STANDBY is synchronous, but COMMITs wait for no standby. */
  'standby',
] as const
export type PauseReason = (typeof pauseReasons)[number]

type BreakerCause = Exclude<PauseReason, 'operator' | 'history' | 'standby'>

export const isPauseOfBreaker = (reason: PauseReason): reason is BreakerCause =>
  reason !== 'operator' && reason !== 'history' && reason !== 'standby'

export interface PauseToRaise {
  reason: BreakerCause
  /** How long the service asked us to wait. Null if it did not say: the pause then has the usual length. */
  askedMs: number | null
  detail: string
  /** `detail` without the service's words, for the log. */
  logDetail?: string
}

export type TokenVerdict =
  | { kind: 'token'; accessToken: string }
  | { kind: 'pause'; pause: PauseToRaise }
  /** No request is free for a token, or the issuer has not answered yet. */
  | { kind: 'not-now' }

/** `unclear`: the answer has an error code and an id. */
export type AcceptanceReading = 'yes' | 'no' | 'unclear'

export interface TransactionStatus {
  transactionId: string | null
  status: string
  /** JSON text with the service's digits. */
  result: string | null
  errorCode: string | null
}

export interface AnswerReading {
  submittedId: string | null
  acceptance: AcceptanceReading
  /** True if the answer has an id, whatever its HTTP status. */
  hasTransactionId: boolean
  transaction: TransactionStatus | null
  /** A 401 causes a pause only if a new token gets 401, too. */
  pause: PauseToRaise | null
  summary: string
}
