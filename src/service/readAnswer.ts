import { randomUUID } from 'node:crypto'
import { boundText } from '../boundText.ts'
import {
  type Answer,
  type AnswerReading,
  isSuccessStatus,
  type Outcome,
  type PauseToRaise,
  type ServiceRequest,
} from '../model/service.ts'
import {
  type GetAnswerMeaning,
  type HttpStatusMeaning,
  meaningOfHttpStatus,
  namesIdInLocation,
  type PostAnswerMeaning,
  type TokenAnswerMeaning,
} from '../model/statuses.ts'
import { type Resource, serviceResources } from '../resources.ts'
import {
  findErrorMessage,
  isServiceErrorCode,
  readAcceptance,
  readIdInSubmitAnswer,
  readTransactionStatus,
} from './responses.ts'

/**
 * Reads an answer to a POST. Never throws.
 *
 * 404, 405 and 410 without the service's own code cause a pause, because the address serves nothing.
 */
export function readSubmitAnswer(answer: Answer, resource: Resource): AnswerReading {
  return read(
    answer,
    resource,
    pauseFor(answer, ({ post }) => post),
  )
}

export function readGetAnswer(answer: Answer, resource: Resource): AnswerReading {
  return read(answer, resource, findPauseForGetAnswer(answer))
}

export function findPauseForGetAnswer(answer: Answer): PauseToRaise | null {
  return pauseFor(answer, ({ get }) => get)
}

function read(answer: Answer, resource: Resource, pause: PauseToRaise | null): AnswerReading {
  if (answer.kind === 'no-answer')
    return {
      submittedId: null,
      acceptance: 'unclear',
      hasTransactionId: false,
      transaction: null,
      pause,
      summary: answer.detail,
    }
  const success = isSuccessStatus(answer.status)
  const id =
    readIdInSubmitAnswer(resource, answer.json) ?? (namesIdInLocation(answer.status) ? answer.locationId : null)
  return {
    submittedId: success ? id : null,
    acceptance: readAcceptance(answer.json, answer.code),
    hasTransactionId: id !== null,
    transaction: success ? readTransactionStatus(resource, answer.json) : null,
    pause,
    summary: describeAnswer(answer),
  }
}

export function requestOutcomeOf(answer: Answer): Outcome {
  if (answer.kind === 'no-answer') return answer.cause === 'timeout' ? 'timeout' : 'network'
  const { outcome, heedsCode } = meaningOfHttpStatus(answer.status)
  return heedsCode && answer.code === 'E003' && outcome !== 'ok' ? 'unavailable' : outcome
}

export function createHarmlessRequest(resource: Resource): ServiceRequest {
  return { endpoint: serviceResources[resource].ask, body: randomUUID(), idempotencyKey: null }
}

/**
 * Returns the pause for a token request that gave no token.
 *
 * @see docs/why/contract.md, "What an answer means"; RFC 6749, 5.2
 */
export function readPauseFromTokenAnswer(answer: Answer): PauseToRaise {
  if (answer.kind === 'no-answer') return unanswered(`asking for a token: ${answer.detail}`)
  const { token, heedsCode } = meaningOfHttpStatus(answer.status)
  if (token === 'answered') {
    const what = `${issuer} answered ${answer.status} without a usable token`
    const why = answer.excerpt.trim()
    return { ...unanswered(why === '' ? what : `${what}: ${why}`), logDetail: what }
  }
  return called(answer, tokenPauses[heedsCode && answer.code === 'E003' ? 'unavailable' : token], issuer)
}

export function describeAnswer(answer: Answer & { kind: 'response' }, who = 'the service'): string {
  const { status, code, json, excerpt } = answer
  const message = (findErrorMessage(json) ?? boundText(excerpt.replace(/\s+/g, ' ').trim(), 300)) || 'without a body'
  const head = code === null || message.includes(code) ? `${status}` : `${status} ${code}`
  return `${who} answered ${head}: ${message}`
}

/**
 * True if two answers differ only in ids, times, numbers and quotes of the request. If an impossible address gets the
 * same answer as ours, our address is probably wrong.
 */
export function isSameAnswerExceptIds(one: Answer, other: Answer): boolean {
  if (one.kind !== 'response' || other.kind !== 'response') return false
  return one.status === other.status && one.code === other.code && generalised(one) === generalised(other)
}

const generalised = ({ excerpt }: { excerpt: string }) =>
  excerpt
    .replace(/[^\s"'<>]*\/api\/v1[^\s"'<>]*/g, '#')
    .replace(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{16,}/gi, '#')
    .replace(/\d+/g, '#')

interface PauseRow {
  reason: PauseToRaise['reason']
  hint?: string
}

const apiPauses: Partial<Record<PostAnswerMeaning | GetAnswerMeaning, PauseRow>> = {
  'token-refused': {
    reason: 'unauthorized',
    hint: 'a new token did not help: this machine’s address may not be on the service’s allow-list',
  },
  forbidden: {
    reason: 'unauthorized',
    hint: 'this client has no permission: ask the operator of the service for it',
  },
  moved: {
    reason: 'unauthorized',
    hint: 'redirects are not followed: check SERVICE_BASE_URL and proxies in between',
  },
  'nothing-there': {
    reason: 'unreachable',
    hint: 'nothing takes submissions at this address: check SERVICE_BASE_URL with `outboxd check`, and ask the operator of the service whether the address was changed',
  },
  throttled: { reason: 'throttled' },
  unavailable: { reason: 'unavailable' },
}

const proxyWantsPassword: PauseRow = {
  reason: 'unauthorized',
  hint: 'a proxy on the way to the service wants credentials: ask its operator',
}

const issuer = 'the token issuer'

const tokenPauses: Record<Exclude<TokenAnswerMeaning, 'answered'>, PauseRow> = {
  moved: { reason: 'unauthorized', hint: 'redirects are not followed: check SERVICE_AUTH_URL' },
  'wrong-address': { reason: 'unauthorized', hint: 'check SERVICE_AUTH_URL' },
  refused: {
    reason: 'unauthorized',
    hint: 'check SERVICE_CLIENT_ID and SERVICE_CLIENT_SECRET, and whether this machine’s address is on the allow-list',
  },
  throttled: { reason: 'throttled' },
  unavailable: { reason: 'unavailable' },
  unreachable: { reason: 'unreachable' },
}

function pauseFor(
  answer: Answer,
  meaningIn: (row: HttpStatusMeaning) => PostAnswerMeaning | GetAnswerMeaning,
): PauseToRaise | null {
  if (answer.kind === 'no-answer') return answer.sent ? null : unanswered(answer.detail)
  const row = meaningOfHttpStatus(answer.status)
  const meaning = row.heedsCode && answer.code === 'E003' ? 'unavailable' : meaningIn(row)
  if (meaning === 'nothing-there' && isServiceErrorCode(answer.code)) return null
  const pause = answer.status === 407 ? proxyWantsPassword : apiPauses[meaning]
  return pause === undefined ? null : called(answer, pause)
}

/** A longer Retry-After is cut to this. */
const retryAfterMaxMs = 300_000

/** `logDetail` is for the log, which may not quote the service. */
function called(answer: Answer & { kind: 'response' }, { reason, hint }: PauseRow, who = 'the service'): PauseToRaise {
  const { status, code, retryAfterMs } = answer
  const end = hint === undefined ? '' : `; ${hint}`
  const hearsRetryAfter = reason === 'throttled' || reason === 'unavailable'
  return {
    reason,
    askedMs: hearsRetryAfter && retryAfterMs !== null ? Math.min(retryAfterMs, retryAfterMaxMs) : null,
    detail: `${describeAnswer(answer, who)}${end}`,
    logDetail: `${who} answered ${status}${code === null ? '' : ` ${code}`}${end}`,
  }
}

const unanswered = (detail: string): PauseToRaise => ({
  reason: 'unreachable',
  askedMs: null,
  detail,
  logDetail: detail,
})
