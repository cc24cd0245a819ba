import { boundText } from '../boundText.ts'
import { type Answer, type GetMeaning, type PauseCall, type PostMeaning, type StatusRow, statusRow } from '../model.ts'
import { isServiceCode } from './errorCode.ts'
import { messageIn } from './responses.ts'

/** The longest that Retry-After may hold everyone back (docs/contract.md, "What an answer means"). */
const throttledMaxMs = 300_000

/**
 * The pause that an answer to a GET calls for; null if it calls for none. A 401 is taken for a second one: the caller has
 * repeated the first with a new token.
 *
 * @see statusRows in src/model/statuses.ts
 */
export function pauseCall(answer: Answer): PauseCall | null {
  return callFor(answer, ({ get }) => get)
}

/**
 * The same for an answer to a POST. 404, 405 and 410 say that nothing is served at that address, and so nothing about the
 * record: it stays queued until the address is mended. With a code of the service's own it is the service that speaks, of
 * the record.
 */
export function submitPauseCall(answer: Answer): PauseCall | null {
  return callFor(answer, ({ post }) => post)
}

function callFor(answer: Answer, meaningIn: (row: StatusRow) => PostMeaning | GetMeaning): PauseCall | null {
  if (answer.kind === 'no-answer')
    return answer.sent ? null : { reason: 'unreachable', askedMs: null, detail: answer.detail, ownWords: answer.detail }
  const row = statusRow(answer.status)
  const meaning = row.heedsCode && answer.code === 'E003' ? 'unavailable' : meaningIn(row)
  if (meaning === 'nothing-there' && isServiceCode(answer.code)) return null
  const reason = reasons[meaning]
  if (reason === undefined) return null
  const askedMs = reason === 'throttled' ? cappedMs(answer.retryAfterMs) : null
  const hint = hintFor(meaning, answer.status)
  const said = sayAnswer(answer)
  return { reason, askedMs, ...(hint === null ? said : withHint(said, hint)) }
}

const reasons: Partial<Record<PostMeaning | GetMeaning, PauseCall['reason']>> = {
  'token-refused': 'unauthorized',
  forbidden: 'unauthorized',
  moved: 'unauthorized',
  'nothing-there': 'unreachable',
  throttled: 'throttled',
  unavailable: 'unavailable',
}

function hintFor(meaning: PostMeaning | GetMeaning, status: number): string | null {
  switch (meaning) {
    case 'token-refused':
      return 'a new token did not help: this machine’s address may not be on the service’s allow-list'
    case 'forbidden':
      return status === 407
        ? 'a proxy between us and the service wants credentials: ask whoever runs it'
        : 'the client may not do this: ask the operator of the service for the permission'
    case 'moved':
      return 'redirects are not followed: look at SERVICE_BASE_URL, or at a proxy in between'
    case 'nothing-there':
      return 'nothing takes submissions at that address: look at SERVICE_BASE_URL, or ask the operator of the service whether it is being changed (outboxd check)'
    default:
      return null
  }
}

/** Both ways to say what was answered: for the operator, and for the log, without a word of the service's. */
export function sayAnswer(answer: Answer & { kind: 'response' }, who?: string): { detail: string; ownWords: string } {
  return { detail: describeAnswer(answer, who), ownWords: nameAnswer(answer, who) }
}

/** What to look at, after both ways to say what was answered. */
export function withHint(said: ReturnType<typeof sayAnswer>, hint: string): typeof said {
  return { detail: `${said.detail}; ${hint}`, ownWords: `${said.ownWords}; ${hint}` }
}

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

/** Retry-After as far as it is heeded. */
export function cappedMs(askedMs: number | null): number | null {
  return askedMs === null ? null : Math.min(askedMs, throttledMaxMs)
}
