import { type Answer, refusalAnswer } from '../endpoints/problemAnswer.ts'
import type { Admission, Arrival, SandboxParts } from '../exchange.ts'
import type { LiveSettings } from '../sandboxSettings.ts'
import { isListedAddress } from './addresses.ts'
import type { RateDecision } from './clientRateLimits.ts'
import { isFormContentType } from './maskSecrets.ts'

export async function admitApiRequest(parts: SandboxParts, arrival: Arrival): Promise<Admission> {
  const page = refusePage(parts, arrival)
  if (page) return page
  const { address, authorization } = arrival
  const caller = await parts.tokens.identify(authorization)
  const client = caller.kind === 'client' ? caller.id : null
  const live = parts.liveSettingsOf(client)
  const requester = { ...arrival, client, tokenId: caller.kind === 'client' ? caller.tokenId : null }
  const arrivedUs = parts.clock.nowUs()
  const entry = parts.rateLimits.admit(requester, arrivedUs)
  const pass = { arrivedUs, client, ...toAdmission(entry, live, 'api') }
  if (!entry.admitted) return { ...pass, refusal: beyondLimit(live, entry.retryAfterSeconds) }
  if (caller.kind === 'refused') return { ...pass, refusal: unauthorized(caller.detail, authorization, live) }
  if (!isListedAddress(address, live.allowedAddresses)) return { ...pass, refusal: notListed(arrival, live) }
  return { ...pass, refusal: undefined }
}

export async function admitTokenRequest(parts: SandboxParts, arrival: Arrival): Promise<Admission> {
  const page = refusePage(parts, arrival)
  if (page) return page
  const { contentType, body } = arrival
  const client = isFormContentType(contentType)
    ? parts.clients.findAuthenticatedClientId(new URLSearchParams(body))
    : null
  const live = parts.liveSettingsOf(client)
  const arrivedUs = parts.clock.nowUs()
  const entry = parts.rateLimits.admit({ ...arrival, client, tokenId: null }, arrivedUs)
  const refusal = entry.admitted ? undefined : beyondLimit(live, entry.retryAfterSeconds)
  return { arrivedUs, client, ...toAdmission(entry, live, 'token'), refusal }
}

export async function admitWithoutChecks({ clock }: SandboxParts): Promise<Admission> {
  return { arrivedUs: clock.nowUs(), client: null, counted: false, headers: {}, refusal: undefined }
}

/**
 * Returns the origin of the web page that sent the request, if the page belongs to another site. @see Fetch Metadata
 * Request Headers (W3C)
 */
export function findForeignSiteText(header: (name: string) => string | undefined): string | undefined {
  const [origin, site] = [header('origin'), header('sec-fetch-site')]
  if (origin !== undefined && origin.toLowerCase() !== `http://${header('host')?.toLowerCase()}`) return origin
  return site === undefined || site === 'same-origin' || site === 'none' ? undefined : 'another site'
}

/** Does not count the refusal, so that a page cannot use up the limit of its visitor's address. */
function refusePage({ clock }: SandboxParts, { header }: Arrival): Admission | undefined {
  const page = findForeignSiteText(header)
  if (page === undefined) return undefined
  const refusal = refusalAnswer(403, `A web page of ${page} sent the request. Web pages may not use the service.`)
  return { arrivedUs: clock.nowUs(), client: null, counted: false, headers: {}, refusal }
}

function toAdmission({ counted, remaining, uncount }: RateDecision, live: LiveSettings, answering: 'api' | 'token') {
  const headers = remainingHeader(remaining, live, answering)
  const givenBack = () => remainingHeader(uncount(), live, answering)
  return { counted, headers, ...(counted && !live.rateLimitFailures ? { uncountFailedRequest: givenBack } : {}) }
}

/** @see docs/reference/interface.md, 8 */
function remainingHeader(
  remaining: number,
  { remainingHeader: isOn, remainingValue, rateLimitRequests }: LiveSettings,
  answering: 'api' | 'token',
): Record<string, string> {
  const told = { true: remaining, double: 2 * remaining, full: rateLimitRequests, zero: 0 }[remainingValue]
  return isOn === 'all' || isOn === answering ? { 'x-ratelimit-remaining': String(told) } : {}
}

function beyondLimit(
  { rateLimitRequests, rateLimitWindowSeconds, rateLimitPerSecond }: LiveSettings,
  retryAfterSeconds: number,
): Answer {
  const orShort = rateLimitPerSecond === null ? '' : `, or more than ${rateLimitPerSecond} in one second`
  const detail = `More than ${rateLimitRequests} requests in ${rateLimitWindowSeconds} seconds${orShort}.`
  return refusalAnswer(429, detail, {}, { 'retry-after': String(retryAfterSeconds) })
}

function notListed({ address, authorization }: Arrival, live: LiveSettings): Answer {
  const { addressStatus, addressNamed } = live
  const detail = addressNamed ? `The address ${address} is not allow-listed.` : 'Not allowed.'
  return addressStatus === 401 ? unauthorized(detail, authorization, live) : refusalAnswer(addressStatus, detail)
}

/** WWW-Authenticate names no error if the request has no token. @see RFC 6750, 3 */
function unauthorized(
  detail: string,
  authorization: string | undefined,
  { wwwAuthenticate }: Pick<LiveSettings, 'wwwAuthenticate'>,
): Answer {
  if (wwwAuthenticate === 'none') return refusalAnswer(401, detail)
  const hasToken = /^Bearer +\S/i.test(authorization ?? '')
  const error = hasToken && wwwAuthenticate === 'error' ? `, error="invalid_token", error_description="${detail}"` : ''
  return refusalAnswer(401, detail, {}, { 'www-authenticate': `Bearer realm="sandbox"${error}` })
}
