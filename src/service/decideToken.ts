import { type Answer, isSuccess, type PauseCall } from '../model.ts'
import { pauseCall, sayAnswer, withHint } from './pauseCall.ts'

/**
 * The pause that a token request without a token calls for.
 *
 * @see docs/contract.md, "What an answer means"; RFC 6749, 5.2 for the words that the issuer uses with 400 and 401
 */
export function decideToken(answer: Answer): PauseCall {
  if (answer.kind === 'no-answer') {
    const detail = `asking for a token: ${answer.detail}`
    return { reason: 'unreachable', askedMs: null, detail, ownWords: detail }
  }
  const { status } = answer
  const said = sayAnswer(answer, issuer)
  if (isSuccess(status)) {
    const detail = `${issuer} answered ${status} without a usable token`
    return { reason: 'unreachable', askedMs: null, detail, ownWords: detail }
  }
  if (status >= 300 && status < 400) {
    const hinted = withHint(said, 'redirects are not followed: look at SERVICE_AUTH_URL')
    return { reason: 'unauthorized', askedMs: null, ...hinted }
  }
  const shared = pauseCall(answer)
  if (shared !== null && shared.reason !== 'unauthorized') return { ...shared, ...said }
  return status >= 400 && status < 500
    ? { reason: 'unauthorized', askedMs: null, ...withHint(said, hint(status)) }
    : { reason: 'unreachable', askedMs: null, ...said }
}

const issuer = 'the token issuer'

function hint(status: number): string {
  return status === 404 || status === 405
    ? 'look at SERVICE_AUTH_URL'
    : 'look at SERVICE_CLIENT_ID and SERVICE_CLIENT_SECRET, and whether this machine’s address is on the allow-list'
}
