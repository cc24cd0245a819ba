import type { Exchange, Outcome, SandboxParts } from '../exchange.ts'
import { isFormContentType } from '../gate/maskSecrets.ts'
import type { LiveSettings } from '../sandboxSettings.ts'
import { isUtf8Request } from './apiRefusals.ts'
import { type Answer, refusalAnswer, successAnswer, tokenErrorAnswer } from './problemAnswer.ts'

const secondsIn = { seconds: 1, milliseconds: 0.001, minutes: 60 }

/** POST /oauth/token. @see docs/reference/interface.md, 4.1; RFC 6749, 4.4 and 5 */
export async function grantToken(parts: SandboxParts, exchange: Exchange): Promise<Outcome> {
  const { client } = exchange
  const form = new URLSearchParams(exchange.body)
  const live = parts.liveSettingsOf(client)
  const refusal = refuse(exchange, form, live)
  if (refusal) return { answer: said(refusal, live, exchange) }
  const { tokenLifetimeSeconds, expiresInUnit, tokenForm } = live
  const expiresIn = Math.ceil(tokenLifetimeSeconds / secondsIn[expiresInUnit])
  if (live.newTokenEndsOld) await parts.tokens.revoke(client)
  const token = await parts.tokens.issue(client, Math.round(expiresIn * secondsIn[expiresInUnit]), tokenForm)
  const headers = { 'cache-control': 'no-store', pragma: 'no-cache' }
  return { answer: { ...successAnswer(granted(token, expiresIn, live)), headers } }
}

const moreFields = { scope: 'data orders', ext_expires_in: 7200, 'not-before-policy': 0 }

function granted(token: string, expiresIn: number, { expiresInForm, tokenType, tokenMoreFields }: LiveSettings) {
  return {
    access_token: token,
    token_type: tokenType,
    expires_in: { number: expiresIn, text: String(expiresIn), absent: undefined }[expiresInForm],
    ...(tokenMoreFields ? moreFields : {}),
  }
}

interface Refusal {
  status: number
  error: string
  description: string
}

function said({ status, error, description }: Refusal, { tokenErrorShape }: LiveSettings, exchange: Exchange): Answer {
  const answer = tokenErrorAnswer(status, error, description, exchange.authorization)
  return tokenErrorShape === 'oauth' ? answer : refusalAnswer(status, description, {}, answer.headers)
}

function refuse(exchange: Exchange, form: URLSearchParams, { wrongSecretStatus }: LiveSettings): Refusal | undefined {
  if (!isFormContentType(exchange.contentType)) {
    return invalid('The Content-Type must be application/x-www-form-urlencoded.')
  }
  if (!isUtf8Request(exchange) || !isEncodedUtf8(exchange.body)) return invalid('The form must be UTF-8.')
  const repeated = ['grant_type', 'client_id', 'client_secret'].find((field) => form.getAll(field).length > 1)
  if (repeated) return invalid(`${repeated} is given more than once.`)
  if (!form.get('grant_type')) return invalid('grant_type is missing.')
  if (exchange.authorization && !form.get('client_secret')) {
    const description = 'Client id and secret belong in the form, not in an Authorization header.'
    return { status: 401, error: 'invalid_client', description }
  }
  const missing = ['client_id', 'client_secret'].find((field) => !form.get(field))
  if (missing) return invalid(`${missing} is missing.`)
  if (exchange.client === '') {
    return { status: wrongSecretStatus, error: 'invalid_client', description: 'Client id or secret is wrong.' }
  }
  if (form.get('grant_type') !== 'client_credentials') {
    return invalid('grant_type must be client_credentials.', 'unsupported_grant_type')
  }
  return undefined
}

function invalid(description: string, error = 'invalid_request'): Refusal {
  return { status: 400, error, description }
}

/** False for invalid UTF-8, which URLSearchParams would turn into U+FFFD. */
function isEncodedUtf8(form: string): boolean {
  try {
    return (form.match(/(?:%[0-9a-f]{2})+/gi) ?? []).every((encoded) => decodeURIComponent(encoded) !== undefined)
  } catch {
    return false
  }
}
