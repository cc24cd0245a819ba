import type { Exchange, Outcome, Parts } from './exchange.ts'
import { isForm } from './maskSecrets.ts'
import { type Answer, ok, tokenError } from './problemAnswer.ts'
import { sameSecret } from './sameSecret.ts'

const secondsIn = { seconds: 1, milliseconds: 0.001, minutes: 60 }

/** POST /oauth/token. @see docs/interface.md, 4.1; RFC 6749, 4.4 and 5 */
export async function grantToken(parts: Parts, exchange: Exchange): Promise<Outcome> {
  const form = new URLSearchParams(exchange.body)
  const refusal = refuse(parts, exchange, form)
  if (refusal) return { answer: refusal }
  const { tokenLifetimeSeconds, expiresInUnit } = parts.live()
  const token = await parts.tokens.issue(parts.credentials.clientId, tokenLifetimeSeconds)
  const expires_in = Math.ceil(tokenLifetimeSeconds / secondsIn[expiresInUnit])
  const body = { access_token: token, token_type: 'Bearer', expires_in }
  return { answer: { ...ok(body), headers: { 'cache-control': 'no-store', pragma: 'no-cache' } } }
}

function refuse(parts: Parts, exchange: Exchange, form: URLSearchParams): Answer | undefined {
  if (!isForm(exchange.contentType)) {
    return tokenError(400, 'invalid_request', 'The Content-Type must be application/x-www-form-urlencoded.')
  }
  const repeated = ['grant_type', 'client_id', 'client_secret'].find((field) => form.getAll(field).length > 1)
  if (repeated) return tokenError(400, 'invalid_request', `${repeated} is given more than once.`)
  if (!form.get('grant_type')) return tokenError(400, 'invalid_request', 'grant_type is missing.')
  if (exchange.authorization && !form.get('client_secret')) {
    return tokenError(401, 'invalid_client', 'Client id and secret belong in the form, not in an Authorization header.')
  }
  const missing = ['client_id', 'client_secret'].find((field) => !form.get(field))
  if (missing) return tokenError(400, 'invalid_request', `${missing} is missing.`)
  if (!isOurClient(parts, form)) return tokenError(401, 'invalid_client', 'Client id or secret is wrong.')
  if (form.get('grant_type') !== 'client_credentials') {
    return tokenError(400, 'unsupported_grant_type', 'grant_type must be client_credentials.')
  }
  return undefined
}

function isOurClient({ credentials }: Parts, form: URLSearchParams): boolean {
  const sameId = sameSecret(form.get('client_id') ?? '', credentials.clientId)
  return sameSecret(form.get('client_secret') ?? '', credentials.clientSecret) && sameId
}
