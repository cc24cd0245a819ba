import { randomUUID } from 'node:crypto'
import { resources } from '../resources.ts'
import { accessTokenIn, type Exchange, isRefusal, isSuccess, lineOf, nameOf, type Seen } from './exchange.ts'
import { type Finding, likely, sure, unknown } from './finding.ts'
import { type Parts, type Sample, Stopped } from './question.ts'

/** The token with which all else is asked (docs/reference/interface.md, 4.1). */
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

/** What to look at if the issuer gave no token. */
function explainNoToken(seen: Seen): string {
  if (seen.kind === 'no-answer') return seen.detail
  const said = `the issuer answered ${lineOf(seen)}`
  if (isSuccess(seen))
    return seen.json === undefined
      ? `${said}, which is not JSON: look at SERVICE_AUTH_URL`
      : 'the issuer answered without an access_token that a Bearer header can carry'
  if (seen.status >= 300 && seen.status < 400) return `${said}; redirects are not followed: look at SERVICE_AUTH_URL`
  if (seen.status === 404 || seen.status === 405) return `${said}: look at SERVICE_AUTH_URL`
  return seen.status < 500
    ? `${said}: look at SERVICE_CLIENT_ID and SERVICE_CLIENT_SECRET, and whether this machine’s address is on the allow-list`
    : said
}

/** What answers at the address of the API. */
interface FirstCall {
  first: Exchange
  /** A question for a path at which nothing is served, if the first was answered with a success. */
  beside: Exchange | null
}

/**
 * A question for a transaction that does not exist, with a good token, which changes nothing. If something else than the
 * service answers, or does not let us in, nothing more is sent.
 */
export const firstCallSample: Sample<FirstCall> = {
  name: 'a question for an unknown transaction',
  requestsMax: 2,
  recordsMax: 0,
  samples: [tokenSample],
  async take(parts) {
    const first = await parts.call({ method: 'GET', path: `${resources.data.path}/${randomUUID()}` })
    const beside = isSuccess(first.answer) ? await parts.call({ method: 'GET', path: `/api/v1/${randomUUID()}` }) : null
    const { stop } = judgeAddress(first.answer, beside?.answer ?? null)
    if (stop !== null) parts.stop(stop)
    return { first, beside }
  },
}

/** The same, if the service answered and more can be asked. */
export const addressSample: Sample<FirstCall> = {
  name: 'a first call that is let in',
  requestsMax: 0,
  recordsMax: 0,
  samples: [firstCallSample],
  async take(parts) {
    const call = await parts.sample(firstCallSample)
    const { stop } = judgeAddress(call.first.answer, call.beside?.answer ?? null)
    if (stop !== null) throw new Stopped(stop)
    return call
  },
}

export async function askAddress(parts: Parts): Promise<Finding> {
  const { first, beside } = await parts.sample(firstCallSample)
  return judgeAddress(first.answer, beside?.answer ?? null).finding
}

/**
 * Says, too, why nothing more should be asked; null if more can be. Pure.
 *
 * @param beside the answer for a path at which nothing is served, if it was asked
 */
export function judgeAddress(seen: Seen, beside: Seen | null): { finding: Finding; stop: string | null } {
  const assumed = 'let in; else 401, as the interface says, or 403'
  const line = lineOf(seen)
  if (seen.kind === 'no-answer')
    return { finding: unknown(line, { assumed }), stop: `the first call with a good token was not answered: ${line}` }
  const refused = (what: string, why: string, cannot: string) => ({
    finding: likely(what, why, { assumed, differs: true, cannot }),
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
      finding: unknown(`the first call ${why}: whether that address would let it in was not asked`, { assumed }),
      stop: `the first call with a good token ${why}`,
    }
  }
  if (isSuccess(seen) && !(beside !== null && isRefusal(beside)))
    return refused(
      'something else',
      `was answered ${line}, though there is no such transaction, and a path at which nothing is served the same: that is not the service`,
      'nothing of the service answers at SERVICE_BASE_URL',
    )
  if (!isSuccess(seen) && !isRefusal(seen)) return { finding: unknown(line, { assumed }), stop: null }
  const why = `a good token was answered ${nameOf(seen)}; how another address is answered cannot be asked from here`
  return { finding: sure('let in', why, { assumed }), stop: null }
}
