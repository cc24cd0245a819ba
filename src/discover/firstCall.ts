import { randomUUID } from 'node:crypto'
import { serviceResources } from '../resources.ts'
import {
  accessTokenIn,
  describeSeen,
  type Exchange,
  isRefusal,
  isSuccess,
  type SeenAnswer,
  statusAndCode,
} from './exchange.ts'
import { type Finding, likelyFinding, sureFinding, unknownFinding } from './finding.ts'
import { type QuestionParts, type Sample, Stopped } from './question.ts'

/** The token for all other questions (docs/reference/interface.md, 4.1). */
export const tokenSample: Sample<{ accessToken: string; exchange: Exchange }> = {
  name: 'a token',
  requestsMax: 1,
  recordsMax: 0,
  samples: [],
  async take(parts) {
    const exchange = await parts.askToken(parts.config.service.clientSecret)
    const accessToken = accessTokenIn(exchange.answer)
    if (accessToken === null) throw new Stopped(`there is no token: ${explainNoToken(exchange.answer)}`)
    return { accessToken, exchange }
  },
}

function explainNoToken(seen: SeenAnswer): string {
  if (seen.kind === 'no-answer') return seen.detail
  const said = `the issuer answered ${describeSeen(seen)}`
  if (isSuccess(seen))
    return seen.json === undefined
      ? `${said}, which is not JSON: look at SERVICE_AUTH_URL`
      : 'the issuer answered without an access_token that a Bearer header can carry'
  if (seen.status >= 300 && seen.status < 400) return `${said}; redirects are not followed: look at SERVICE_AUTH_URL`
  if (seen.status === 404 || seen.status === 405) return `${said}: look at SERVICE_AUTH_URL`
  if (seen.status >= 500) return said
  return `${said}: look at SERVICE_CLIENT_ID and SERVICE_CLIENT_SECRET, and whether this machine’s address is on the allow-list`
}

interface FirstCall {
  first: Exchange
  /** The answer for a path that the service does not have, asked if the first call was a success. */
  beside: Exchange | null
}

/** Asks for a transaction that does not exist. Nothing more is sent unless the service answers. */
export const firstCallSample: Sample<FirstCall> = {
  name: 'a question for an unknown transaction',
  requestsMax: 2,
  recordsMax: 0,
  samples: [tokenSample],
  async take(parts) {
    const first = await parts.call({ method: 'GET', path: `${serviceResources.data.path}/${randomUUID()}` })
    const beside = isSuccess(first.answer) ? await parts.call({ method: 'GET', path: `/api/v1/${randomUUID()}` }) : null
    const { stop } = judgeAddress({ first, beside })
    if (stop !== null) parts.stop(stop)
    return { first, beside }
  },
}

/** The first call, if the service let it in. @throws Stopped if nothing more should be asked */
export const authorizedFirstCallSample: Sample<FirstCall> = {
  name: 'a first call that is let in',
  requestsMax: 0,
  recordsMax: 0,
  samples: [firstCallSample],
  async take(parts) {
    const call = await parts.sample(firstCallSample)
    const { stop } = judgeAddress(call)
    if (stop !== null) throw new Stopped(stop)
    return call
  },
}

export const askFirstCall = async (parts: QuestionParts): Promise<Finding> =>
  judgeAddress(await parts.sample(firstCallSample)).finding

/** @returns also the reason why nothing more should be asked; null if more can be */
function judgeAddress({ first, beside }: FirstCall): { finding: Finding; stop: string | null } {
  const assumed = 'let in; else 401, as the interface says, or 403'
  const seen = first.answer
  const line = describeSeen(seen)
  if (seen.kind === 'no-answer')
    return {
      finding: unknownFinding(line, { assumed }),
      stop: `the first call with a good token was not answered: ${line}`,
    }
  const refused = (what: string, why: string, cannot: string) => ({
    finding: likelyFinding(what, why, { assumed, differs: true, cannot }),
    stop: `the first call with a good token ${why}`,
  })
  if (seen.status === 401 || seen.status === 403)
    return refused(
      `refused with ${seen.status}`,
      `was answered ${line}`,
      'every record waits (pause unauthorized) until the operator of the service lets this address in, or gives the client the permission',
    )
  if (seen.status >= 300 && seen.status < 400) {
    const why = `was answered ${seen.status} to ${(seen.headers.location ?? '(nowhere)').replace(/[?#].*$/s, '')}`
    return {
      finding: unknownFinding(`the first call ${why}. That address was not asked`, { assumed }),
      stop: `the first call with a good token ${why}`,
    }
  }
  if (isSuccess(seen) && (beside === null || !isRefusal(beside.answer)))
    return refused(
      'something else',
      `was answered ${line}, although the transaction does not exist. A path that the service does not have got the same answer, so something else answers`,
      'the service does not answer at SERVICE_BASE_URL',
    )
  if (!isSuccess(seen) && !isRefusal(seen)) return { finding: unknownFinding(line, { assumed }), stop: null }
  const why = `a good token was answered ${statusAndCode(seen)}; how the service answers other addresses cannot be tested from here`
  return { finding: sureFinding('let in', why, { assumed }), stop: null }
}
