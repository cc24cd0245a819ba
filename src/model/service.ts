import type { Resource, ResourceEndpoint } from '../resources.ts'

/** One request of a submission, as it goes on the wire. */
export interface ServiceRequest {
  endpoint: ResourceEndpoint
  /** JSON text for a POST; the transactionId or orderId for a GET. */
  body: string
  /** Kept over the attempts of one submission; null for a GET. */
  idempotencyKey: string | null
}

/** What came back, before anyone has judged it. */
export type Answer =
  | {
      kind: 'response'
      status: number
      /** Parsed JSON of the body, undefined if it is not JSON. */
      json: unknown
      /** The first 2 kB of the body for the operator. */
      excerpt: string
      /** The error code found anywhere in the body, such as E001; null if there is none. */
      code: string | null
      /** The end of Location, if it may be an id and the address is the service's own; null if not. */
      locationId: string | null
      /** Whether an object of its JSON has a key twice. */
      repeatsKey: boolean
      /** Retry-After in milliseconds, null if absent or unreadable. */
      retryAfterMs: number | null
      /** X-RateLimit-Remaining, null if absent or unreadable. */
      rateRemaining: number | null
      /** Date in epoch milliseconds, whole seconds; null if absent or unreadable. */
      dateMs: number | null
      tookMs: number
    }
  | {
      kind: 'no-answer'
      /** False only if it is certain that no byte of the request left this machine. */
      sent: boolean
      /** `suspended`: this process stood still meanwhile, so that it says nothing about the service or the network. */
      cause: 'timeout' | 'network' | 'suspended'
      /** What went wrong, in words, without addresses' credentials or tokens. */
      detail: string
      tookMs: number
    }

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/** An id by which others are compared: UUIDs compare without case (RFC 9562, 4), any other id as it stands. */
export const comparableId = (id: string): string => (uuid.test(id) ? id.toLowerCase() : id)

/** Whether two ids name the same transaction or order. */
export const isSameId = (one: string, other: string): boolean => comparableId(one) === comparableId(other)

/** Whether a request has no answer because this process stood still: nothing is concluded from it for other requests. */
export const wasSuspended = (answer: Answer): boolean => answer.kind === 'no-answer' && answer.cause === 'suspended'

/** Whether a status says that what was asked is done. */
export const isSuccess = (status: number): boolean => status >= 200 && status < 300

/** How a request ended, by the names that the metrics use. */
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

/** A request that was made for a record, as the service's targets count it (docs/interface.md, section 8). */
export interface MadeRequest {
  /** A POST, or a question what has become of one. */
  kind: 'submit' | 'status'
  outcome: Outcome
  tookMs: number
}

/**
 * The ways in which the service can break its contract, counted by `contract_breaches_total`. The last four contradict what
 * `outboxd discover` saw of it (DISCOVERED_CONTRACT).
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
/** Why nobody sends for a while. */
export type PauseReason = (typeof pauseReasons)[number]

/** A pause that an answer calls for. */
export interface PauseCall {
  reason: Exclude<PauseReason, 'operator' | 'history'>
  /** How long the service asked for, if it said so; otherwise the reason's own steps apply. */
  askedMs: number | null
  /** For the operator: what happened and what to look at. */
  detail: string
  /** The same without a word of the service's, for the log; left out where nothing can be said so. */
  ownWords?: string
  /** Each further try costs a record, so the wait grows longer than the reason's steps say. */
  patient?: boolean
  /** An answer came, though none of the service's own: the first tries follow each other quickly, as it may be these records. */
  answered?: boolean
}

/** What the answer to a trial says: whether the pauses whose time is over may end. */
export type TrialVerdict =
  | { kind: 'clear' }
  | { kind: 'pause'; pause: PauseCall }
  /** With the first refusal a new token is asked for, the second is the pause. */
  | { kind: 'token-refused'; pause: PauseCall }

/** What comes of asking for an access token. */
export type TokenVerdict =
  | { kind: 'token'; accessToken: string }
  | { kind: 'pause'; pause: PauseCall }
  /** Asking for one costs a request, and the budget has none left now. */
  | { kind: 'no-slot' }

/** Whether a success with an id says that the record was taken. `unclear`: an error's code stands beside it. */
export type Taken = 'yes' | 'no' | 'unclear'

/** What the service says of a transaction or order. */
export interface TransactionStatus {
  /** Null if the answer does not name it. */
  transactionId: string | null
  /** In lower case. */
  status: string
  /** JSON text with the service's own digits; null if there is none. */
  result: string | null
  errorCode: string | null
}

/** What an answer says of its record and of all sending, for the stages' decisions. */
export interface AnswerReading {
  /** The transactionId or orderId in a success for a POST; null if there is none that can be used. */
  submittedId: string | null
  /** Whether the fields beside that id say that the record was taken. */
  taken: Taken
  /** Whether the body has a transactionId or orderId, under any status. */
  namesId: boolean
  /** The transaction or order that a success describes; null if it cannot be read. */
  transaction: TransactionStatus | null
  /** The pause it calls for, a 401 being a second one; null if none. */
  pause: PauseCall | null
  /** One line for the operator. */
  summary: string
}

/** How a stage asks the service. */
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
