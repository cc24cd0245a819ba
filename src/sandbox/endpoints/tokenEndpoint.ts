import type { Exchange, Outcome, Parts } from '../exchange.ts'
import { isForm } from '../gate/maskSecrets.ts'
import { type Answer, ok, tokenError } from './problemAnswer.ts'
import { saysUtf8 } from './requestBody.ts'

const secondsIn = { seconds: 1, milliseconds: 0.001, minutes: 60 }

/**
 * POST /oauth/token.
 *
 * @param client whose id and secret the form has, or ''
 * @see docs/interface.md, 4.1; RFC 6749, 4.4 and 5
 */
export async function grantToken(parts: Parts, exchange: Exchange, client: string): Promise<Outcome> {
  const { address, arrivedUs } = exchange
  const tooMany = parts.failures.refusal(address, arrivedUs)
  if (tooMany) return { answer: tooMany }
  const form = new URLSearchParams(exchange.body)
  const refusal = refuse(exchange, form, client)
  if (refusal) return { answer: parts.failures.count(address, arrivedUs) ?? refusal }
  const { tokenLifetimeSeconds, expiresInUnit } = parts.live(client)
  const expires_in = Math.ceil(tokenLifetimeSeconds / secondsIn[expiresInUnit])
  const token = await parts.tokens.issue(client, Math.round(expires_in * secondsIn[expiresInUnit]))
  const body = { access_token: token, token_type: 'Bearer', expires_in }
  const headers = { 'cache-control': 'no-store', pragma: 'no-cache' }
  return { answer: { ...ok(body), headers } }
}

function refuse(exchange: Exchange, form: URLSearchParams, client: string): Answer | undefined {
  if (!isForm(exchange.contentType)) {
    return tokenError(400, 'invalid_request', 'The Content-Type must be application/x-www-form-urlencoded.')
  }
  if (!saysUtf8(exchange) || !decodes(exchange.body)) {
    return tokenError(400, 'invalid_request', 'The form must be UTF-8.')
  }
  const repeated = ['grant_type', 'client_id', 'client_secret'].find((field) => form.getAll(field).length > 1)
  if (repeated) return tokenError(400, 'invalid_request', `${repeated} is given more than once.`)
  if (!form.get('grant_type')) return tokenError(400, 'invalid_request', 'grant_type is missing.')
  if (exchange.authorization && !form.get('client_secret')) {
    const detail = 'Client id and secret belong in the form, not in an Authorization header.'
    return tokenError(401, 'invalid_client', detail, exchange.authorization)
  }
  const missing = ['client_id', 'client_secret'].find((field) => !form.get(field))
  if (missing) return tokenError(400, 'invalid_request', `${missing} is missing.`)
  if (client === '') {
    return tokenError(401, 'invalid_client', 'Client id or secret is wrong.', exchange.authorization)
  }
  if (form.get('grant_type') !== 'client_credentials') {
    return tokenError(400, 'unsupported_grant_type', 'grant_type must be client_credentials.')
  }
  return undefined
}

/** Whether what is percent-encoded is UTF-8: URLSearchParams would make U+FFFD of it. */
function decodes(form: string): boolean {
  try {
    return (form.match(/(?:%[0-9a-f]{2})+/gi) ?? []).every((encoded) => decodeURIComponent(encoded) !== undefined)
  } catch {
    return false
  }
}
