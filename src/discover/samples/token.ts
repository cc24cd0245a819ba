import { tokenResponse } from '../../service/responses.ts'
import { type Exchange, isSuccess, jsonOf, lineOf, type Seen } from '../exchange.ts'
import { type Sample, Stopped } from '../question.ts'

export interface TokenTaken {
  accessToken: string
  exchange: Exchange
}

/** The token with which all else is asked (docs/interface.md, 4.1). */
export const tokenSample: Sample<TokenTaken> = {
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

/** The token of an answer, as the daemon would read it; null where it could not. */
export function accessTokenIn(seen: Seen): string | null {
  const read = isSuccess(seen) ? tokenResponse.safeParse(jsonOf(seen)) : null
  return read?.success ? read.data.access_token : null
}

/** What to look at where the issuer gave none. */
export function explainNoToken(seen: Seen): string {
  if (seen.kind === 'no-answer') return seen.detail
  const said = `the issuer answered ${lineOf(seen)}`
  if (isSuccess(seen))
    return seen.json === undefined
      ? `${said}, which is no JSON: look at SERVICE_AUTH_URL`
      : 'the issuer answered without an access_token that a Bearer header can carry'
  if (seen.status >= 300 && seen.status < 400) return `${said}; redirects are not followed: look at SERVICE_AUTH_URL`
  if (seen.status === 404 || seen.status === 405) return `${said}: look at SERVICE_AUTH_URL`
  return seen.status < 500
    ? `${said}: look at SERVICE_CLIENT_ID and SERVICE_CLIENT_SECRET, and whether this machine’s address is on the allow-list`
    : said
}
