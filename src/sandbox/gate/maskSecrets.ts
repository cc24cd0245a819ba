import { parseExactly } from '../endpoints/parseExactly.ts'
import type { Endpoint } from '../endpoints/requestSchemas.ts'

/** What the ledger shows in place of a secret. */
const masked = '***'

/** How much the ledger keeps of what somebody sent who has not shown who he is. */
const strangerMax = 1024

/** Of a token request, the fields that hold no secret. Whatever else is sent there may be one under a mistyped name. */
export const openFields = ['grant_type', 'client_id', 'scope']

const secretName = /secret|passw|passphrase|pwd|token|assertion|authorization|credential|apikey|privatekey/

/** A body without a trace of these names needs no closer look. A backslash may hide any of them. */
const suspicious = /secret|pass|pwd|token|assertion|authorization|credential|key|\\u/i

/** What arrived, as far as it decides what may be kept of it. */
interface Arrived {
  endpoint: Endpoint | 'other'
  contentType: string
  body: string
}

/**
 * The body as the ledger keeps it: as it came, unless a field's name says that it holds a secret.
 *
 * A body that was sent to no endpoint is not kept: who mistypes the token's path sends his secret there.
 *
 * @param isSecret whether a text holds a secret that the sandbox knows
 */
export function maskBody({ endpoint, contentType, body }: Arrived, isSecret: (text: string) => boolean): string {
  if (body === '') return ''
  if (endpoint === 'other') return leftOut(body, 'sent to no endpoint')
  if (endpoint === 'token') return isForm(contentType) ? maskTokenForm(body, isSecret) : leftOut(body, 'no form')
  if (!suspicious.test(body)) return body
  return maskJson(body) ?? (isForm(contentType) ? maskForm(body) : leftOut(body, 'it may hold a secret'))
}

/**
 * The path as the ledger keeps it, where nothing is served: plain words, versions and short numbers; of any other segment
 * its length alone, and so of all that follows one that is named like a secret.
 */
export function maskPath(path: string): string {
  let isAfterSecret = false
  const segments = path.split('/').map((segment) => {
    const isPlain = /^([a-z]{1,24}|v?\d{1,6}|[a-z]{1,24}\.json)?$/i.test(segment)
    const shown = isPlain && !(isAfterSecret && segment !== '') ? segment : `(${segment.length})`
    isAfterSecret ||= isSecretName(segment)
    return shown
  })
  return bound(segments.join('/'), path.length)
}

/** What the ledger keeps of a text that came from somebody unknown: its beginning. */
export function bound(text: string, fullLength: number = text.length): string {
  return text.length <= strangerMax ? text : `${text.slice(0, strangerMax)}… (${fullLength} characters)`
}

/** In place of a body that is not kept. */
export function leftOut(body: string, why: string): string {
  return `(${body.length} characters, left out: ${why})`
}

export function isForm(contentType: string): boolean {
  return /^application\/x-www-form-urlencoded\s*(;|$)/i.test(contentType)
}

/** Case and separators ignored: client_secret, clientSecret, Client-Secret. */
export function isSecretName(name: string): boolean {
  return secretName.test(name.toLowerCase().replaceAll(/[^a-z0-9]/g, ''))
}

/** Known fields with values that look like theirs; a name may be a secret, too, where a separator was mistyped. */
function maskTokenForm(body: string, isSecret: (text: string) => boolean): string {
  const isOpen = (name: string, value: string) =>
    openFields.includes(name) && /^[\w.~:@/ -]{0,128}$/.test(value) && !isSecret(value)
  const shownName = (name: string) => (/^[a-z_-]{1,40}$/i.test(name) && !isSecret(name) ? name : masked)
  return mapForm(body, (name, value) => [shownName(name), isOpen(name, value) ? value : masked])
}

function maskForm(body: string): string {
  return mapForm(body, (name, value) => [name, isSecretName(name) ? masked : value])
}

function mapForm(body: string, change: (name: string, value: string) => [string, string]): string {
  return new URLSearchParams([...new URLSearchParams(body)].map(([name, value]) => change(name, value))).toString()
}

/** JSON without its secrets, its other numbers to the digit; the very text where there are none, undefined where it is no JSON. */
function maskJson(body: string): string | undefined {
  try {
    const json = parseExactly(body)
    return namesSecret(body) ? JSON.stringify(json, (name, value) => (isSecretName(name) ? masked : value)) : body
  } catch {
    return undefined // no JSON, or nested beyond what the parser takes
  }
}

/** Looks at the text: of a field that comes twice, the parser hides the first. */
function namesSecret(json: string): boolean {
  const names = json.matchAll(/("(?:[^"\\]|\\.)*")\s*:/g)
  return names.some(([, name = '""']) => isSecretName(unescaped(name)))
}

function unescaped(text: string): string {
  try {
    return JSON.parse(text)
  } catch {
    return text // the end of one string and the beginning of the next
  }
}
