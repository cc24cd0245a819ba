import type { Answer, PauseCall } from '../model.ts'
import { describeAnswer, pauseCall } from './pauseCall.ts'

/**
 * The pause that a token request without a token calls for.
 *
 * @see docs/contract.md, "What an answer means"; RFC 6749, 5.2 for the words that the issuer uses with 400 and 401
 */
export function decideToken(answer: Answer): PauseCall {
  if (answer.kind === 'no-answer')
    return { reason: 'unreachable', askedMs: null, detail: `asking for a token: ${answer.detail}` }
  const { status } = answer
  const summary = describeAnswer(answer, 'the token issuer')
  if (status >= 200 && status < 300)
    return {
      reason: 'unreachable',
      askedMs: null,
      detail: `the token issuer answered ${status} without a usable token`,
    }
  if (status >= 300 && status < 400)
    return {
      reason: 'unauthorized',
      askedMs: null,
      detail: `${summary}; redirects are not followed: look at SERVICE_AUTH_URL`,
    }
  const shared = pauseCall(answer)
  if (shared !== null && shared.reason !== 'unauthorized') return { ...shared, detail: summary }
  return status >= 400 && status < 500
    ? { reason: 'unauthorized', askedMs: null, detail: `${summary}; ${hint(status)}` }
    : { reason: 'unreachable', askedMs: null, detail: summary }
}

function hint(status: number): string {
  return status === 404 || status === 405
    ? 'look at SERVICE_AUTH_URL'
    : 'look at SERVICE_CLIENT_ID and SERVICE_CLIENT_SECRET, and whether this machine’s address is on the allow-list'
}
