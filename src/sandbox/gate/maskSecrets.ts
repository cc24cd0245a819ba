import { parseExactly } from '../endpoints/parseExactly.ts'
import type { Endpoint } from '../endpoints/requestSchemas.ts'

const masked = '***'

/** Characters of each text that the ledger keeps of a request without valid credentials. */
const strangerMax = 1024

/** Any other field of a token request may hold a secret under a mistyped name. */
const openFields = ['grant_type', 'client_id', 'scope']

const secretName = /secret|passw|passphrase|pwd|token|assertion|authorization|credential|apikey|privatekey/

/** Bodies without any of these need no closer look. A backslash may hide a name. */
const suspicious = /secret|pass|pwd|token|assertion|authorization|credential|key|\\u/i

interface Arrived {
  endpoint: Endpoint | 'other'
  contentType: string
  body: string
}

/**
 * The body as the ledger keeps it: without the values of fields named like a secret, and not at all if no endpoint
 * got it: a mistyped path of the token endpoint gets the secret.
 */
export function maskBody({ endpoint, contentType, body }: Arrived, isSecret: (text: string) => boolean): string {
  if (body === '') return ''
  if (endpoint === 'other') return leftOut(body, 'sent to no endpoint')
  if (endpoint === 'token') return isForm(contentType) ? maskTokenForm(body, isSecret) : leftOut(body, 'no form')
  if (!suspicious.test(body)) return body
  return maskJson(body) ?? (isForm(contentType) ? maskForm(body) : leftOut(body, 'it may hold a secret'))
}

/**
 * The path of a request to no endpoint, as the ledger keeps it: other segments than plain words and short numbers,
 * and all after one named like a secret, are replaced by their length.
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

export function bound(text: string, fullLength: number = text.length): string {
  return text.length <= strangerMax ? text : `${text.slice(0, strangerMax)}… (${fullLength} characters)`
}

export function leftOut(body: string, why: string): string {
  return `(${body.length} characters, left out: ${why})`
}

export function isForm(contentType: string): boolean {
  return /^application\/x-www-form-urlencoded\s*(;|$)/i.test(contentType)
}

/** Ignores case and separators: client_secret, clientSecret, Client-Secret. */
function isSecretName(name: string): boolean {
  return secretName.test(name.toLowerCase().replaceAll(/[^a-z0-9]/g, ''))
}

/** Masks names, too: after a mistyped separator a name may hold a secret. */
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

/** Undefined if it is not JSON. */
function maskJson(body: string): string | undefined {
  try {
    const json = parseExactly(body)
    return namesSecret(body) ? JSON.stringify(json, (name, value) => (isSecretName(name) ? masked : value)) : body
  } catch {
    return undefined // no JSON, or nested beyond what the parser takes
  }
}

/** Reads the text, because the parser hides the first of two fields with the same name. */
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
