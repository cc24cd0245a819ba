import type { Resource, ResourceEndpoint } from '../resources.ts'

export interface ServiceRequest {
  endpoint: ResourceEndpoint
  /** JSON text for a POST; the id for a GET. */
  body: string
  /** Null for a GET. */
  idempotencyKey: string | null
}

export type Answer =
  | {
      kind: 'response'
      status: number
      /** Undefined if the body is not JSON. */
      json: unknown
      excerpt: string
      /** The error code anywhere in the body, such as E001. */
      code: string | null
      /** The end of Location, if it may be an id and the address is the service's own. */
      locationId: string | null
      repeatsKey: boolean
      retryAfterMs: number | null
      rateRemaining: number | null
      dateMs: number | null
      tookMs: number
    }
  | {
      kind: 'no-answer'
      /** False only if no byte of the request left this machine. */
      sent: boolean
      /** `suspended`: this process stood still, so it says nothing about the service or the network. */
      cause: 'timeout' | 'network' | 'suspended'
      /** For the operator, without credentials or tokens. */
      detail: string
      tookMs: number
    }

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/** UUIDs compare without case (RFC 9562, 4), any other id as it stands. */
export const comparableId = (id: string): string => (uuid.test(id) ? id.toLowerCase() : id)

export const isSameId = (one: string, other: string): boolean => comparableId(one) === comparableId(other)

/** True if this process stood still: nothing is concluded from it for other requests. */
export const wasSuspended = (answer: Answer): boolean => answer.kind === 'no-answer' && answer.cause === 'suspended'

export const isSuccess = (status: number): boolean => status >= 200 && status < 300

export const outcomes = [
  'ok',
  'rejected',
  'unauthorized',
  'throttled',
  'unavailable',
  'server_error',
  'timeout',
  'network',
] as const
export type Outcome = (typeof outcomes)[number]

/** A request made for a record, as the service's targets count it (docs/reference/interface.md, 8). */
export interface MadeRequest {
  kind: 'submit' | 'status'
  outcome: Outcome
  tookMs: number
}

/**
 * How the service can break its contract. The last four contradict what `outboxd discover` saw (DISCOVERED_CONTRACT).
 */
export const breaches = [
  'unreadable_answer',
  'missing_id',
  'unknown_status',
  'other_transaction',
  'duplicate_id',
  'duplicate_key',
  'unknown_code',
  'rate_limit_lower',
  'other_success_status',
  'other_error_status',
  'other_unknown_status',
  'no_rate_remaining',
] as const
export type Breach = (typeof breaches)[number]

export const pauseReasons = ['throttled', 'unavailable', 'unauthorized', 'unreachable', 'operator', 'history'] as const
export type PauseReason = (typeof pauseReasons)[number]

export interface PauseCall {
  reason: Exclude<PauseReason, 'operator' | 'history'>
  /** How long the service asked for; null for the reason's own steps. */
  askedMs: number | null
  detail: string
  /** The same without a word of the service's, for the log. */
  ownWords?: string
  /** Each further try costs a record, so the wait grows longer than the reason's steps. */
  patient?: boolean
  /**
   * Something answered that is not the service: the first tries follow each other quickly, because only these records
   * may meet it.
   */
  answered?: boolean
}

/** What the answer to a trial says of the pauses whose time is over. */
export type TrialVerdict =
  | { kind: 'clear' }
  | { kind: 'pause'; pause: PauseCall }
  /** The first refusal asks for a new token, the second is the pause. */
  | { kind: 'token-refused'; pause: PauseCall }

export type TokenVerdict =
  | { kind: 'token'; accessToken: string }
  | { kind: 'pause'; pause: PauseCall }
  | { kind: 'no-slot' }

/** Whether a success with an id says that the record was taken. `unclear`: an error code stands beside the id. */
export type AcceptanceReading = 'yes' | 'no' | 'unclear'

export interface TransactionStatus {
  transactionId: string | null
  status: string
  /** JSON text with the service's own digits. */
  result: string | null
  errorCode: string | null
}

/** What an answer says of its record and of all sending. */
export interface AnswerReading {
  /** The usable transactionId or orderId in a success for a POST. */
  submittedId: string | null
  taken: AcceptanceReading
  /** Whether the body has an id, under any status. */
  namesId: boolean
  transaction: TransactionStatus | null
  /** The pause it calls for, a 401 being a second one. */
  pause: PauseCall | null
  summary: string
}

export interface RequestDeps {
  /** @returns null if it may not leave any more */
  send(request: ServiceRequest, accessToken: string, mayLeave: () => boolean): Promise<Answer | null>
  /** Whether a 401 to this token says only that its time was up. */
  isRefusedForAge(accessToken: string, answer: Answer): boolean
  /** Whether a 401 says that a new token did not help, whichever request was made with it first. */
  isRefusedAgain(accessToken: string, answer: Answer): boolean
  read(answer: Answer, resource: Resource): AnswerReading
  newKey(): string
}
