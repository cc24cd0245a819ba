import { type Answer, type PauseCall, statusRow } from '../model.ts'
import { cappedMs, sayAnswer, withHint } from './pauseCall.ts'

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
  const call = (reason: PauseCall['reason'], hint?: string): PauseCall => ({
    reason,
    askedMs: reason === 'throttled' ? cappedMs(answer.retryAfterMs) : null,
    ...(hint === undefined ? said : withHint(said, hint)),
  })
  const { token, heedsCode } = statusRow(status)
  if (heedsCode && answer.code === 'E003' && token !== 'answered') return call('unavailable')
  switch (token) {
    case 'answered': {
      const detail = `${issuer} answered ${status} without a usable token`
      return { ...call('unreachable'), detail, ownWords: detail }
    }
    case 'moved':
      return call('unauthorized', 'redirects are not followed: look at SERVICE_AUTH_URL')
    case 'wrong-address':
      return call('unauthorized', 'look at SERVICE_AUTH_URL')
    case 'refused':
      return call('unauthorized', refusedHint)
    case 'throttled':
    case 'unavailable':
    case 'unreachable':
      return call(token)
    default:
      return token satisfies never
  }
}

const issuer = 'the token issuer'

const refusedHint =
  'look at SERVICE_CLIENT_ID and SERVICE_CLIENT_SECRET, and whether this machine’s address is on the allow-list'
