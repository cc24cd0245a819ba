import { boundText } from '../boundText.ts'
import type { Answer, PauseCall } from '../model.ts'
import { isServiceCode } from './errorCode.ts'
import { messageIn } from './responses.ts'

/** The longest that Retry-After may hold everyone back (docs/contract.md, "What an answer means"). */
const throttledMaxMs = 300_000

/**
 * The pause that an answer calls for, to a POST and a GET alike; null where it calls for none. A 401 is taken for a
 * second one: the caller has repeated the first with a new token.
 *
 * @see docs/contract.md, "What an answer means"
 */
export function pauseCall(answer: Answer): PauseCall | null {
  if (answer.kind === 'no-answer')
    return answer.sent ? null : { reason: 'unreachable', askedMs: null, detail: answer.detail, ownWords: answer.detail }
  if (answer.code === 'E003' || answer.status === 503)
    return { reason: 'unavailable', askedMs: null, ...sayAnswer(answer) }
  if (answer.status === 429)
    return { reason: 'throttled', askedMs: cappedMs(answer.retryAfterMs), ...sayAnswer(answer) }
  const hint = unauthorizedHint(answer.status)
  return hint === null ? null : { reason: 'unauthorized', askedMs: null, ...withHint(sayAnswer(answer), hint) }
}

/**
 * The pause that an answer to a POST calls for. 404, 405 and 410 say that nothing is served at that address, and so
 * nothing about the record: it stays queued until the address or what stands there is mended. With E001 it is the
 * service that speaks, of the record's customer.
 */
export function submitPauseCall(answer: Answer): PauseCall | null {
  const shared = pauseCall(answer)
  if (shared !== null || answer.kind === 'no-answer') return shared
  if (!nothingThere.has(answer.status) || isServiceCode(answer.code)) return null
  return { reason: 'unreachable', askedMs: null, ...withHint(sayAnswer(answer), nothingThereHint) }
}

const nothingThereHint =
  'nothing takes submissions at that address: look at SERVICE_BASE_URL, or ask the operator of the service whether it is being changed (outboxd check)'

/** Both ways to say what was answered: for the operator, and for the log, without a word of the service's. */
export function sayAnswer(answer: Answer & { kind: 'response' }, who?: string): { detail: string; ownWords: string } {
  return { detail: describeAnswer(answer, who), ownWords: nameAnswer(answer, who) }
}

/** What to look at, after both ways to say what was answered. */
export function withHint(said: ReturnType<typeof sayAnswer>, hint: string): typeof said {
  return { detail: `${said.detail}; ${hint}`, ownWords: `${said.ownWords}; ${hint}` }
}

const nothingThere: ReadonlySet<number> = new Set([404, 405, 410])

/** An answer in one line for the operator: status, code, and the service's words where it has any. */
export function describeAnswer(answer: Answer & { kind: 'response' }, who = 'the service'): string {
  const { status, code, json, excerpt } = answer
  const message = (messageIn(json) ?? boundText(excerpt.replace(/\s+/g, ' ').trim(), 300)) || 'without a body'
  const head = code === null || message.includes(code) ? `${status}` : `${status} ${code}`
  return `${who} answered ${head}: ${message}`
}

/** The same without the service's words, for the log: its status and, where there is one, its code. */
function nameAnswer({ status, code }: Answer & { kind: 'response' }, who = 'the service'): string {
  return `${who} answered ${status}${code === null ? '' : ` ${code}`}`
}

function cappedMs(askedMs: number | null): number | null {
  return askedMs === null ? null : Math.min(askedMs, throttledMaxMs)
}

function unauthorizedHint(status: number): string | null {
  if (status === 401) return 'a new token did not help: this machine’s address may not be on the service’s allow-list'
  if (status === 403) return 'the client may not do this: ask the operator of the service for the permission'
  if (status >= 300 && status < 400)
    return 'redirects are not followed: look at SERVICE_BASE_URL, or at a proxy in between'
  return null
}
