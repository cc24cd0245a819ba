import type { Arrival } from '../exchange.ts'

const masked = '***'

/** Fields of a token request that stay readable. Others may hold a secret under a mistyped name. */
const openFields = ['grant_type', 'client_id', 'scope']

const secretName = /secret|passw|passphrase|pwd|token|assertion|authorization|credential|apikey|privatekey/

/** Only bodies that match are searched for secrets. `\u` matches, because an escape may hide a name. */
const suspicious = /secret|pass|pwd|token|assertion|authorization|credential|key|\\u/i

type Arrived = Pick<Arrival, 'endpoint' | 'contentType' | 'body'>

/**
 * Masks the values of fields named like a secret. Drops a body that was sent to an unknown path, because that path may
 * be a mistyped token path.
 */
export function maskBody({ endpoint, contentType, body }: Arrived, isSecret: (text: string) => boolean): string {
  if (body === '') return ''
  if (endpoint === 'other') return omissionNote(body, 'sent to no endpoint')
  if (endpoint === 'token')
    return isFormContentType(contentType) ? maskTokenForm(body, isSecret) : omissionNote(body, 'no form')
  if (!suspicious.test(body)) return body
  return (
    maskJson(body) ?? (isFormContentType(contentType) ? maskForm(body) : omissionNote(body, 'it may hold a secret'))
  )
}

/**
 * Masks an unknown path: replaces each segment by its length, except plain words and short numbers.
 * After a segment named like a secret, every segment is replaced.
 */
export function maskUnknownPath(path: string): string {
  let isAfterSecret = false
  const segments = path.split('/').map((segment) => {
    const isPlain = /^([a-z]{1,24}|v?\d{1,6}|[a-z]{1,24}\.json)?$/i.test(segment)
    const shown = isPlain && !(isAfterSecret && segment !== '') ? segment : `(${segment.length})`
    isAfterSecret ||= isSecretName(segment)
    return shown
  })
  return segments.join('/')
}

function omissionNote(body: string, why: string): string {
  return `(${body.length} characters, left out: ${why})`
}

export function isFormContentType(contentType: string): boolean {
  return /^application\/x-www-form-urlencoded\s*(;|$)/i.test(contentType)
}

/** Ignores case and separators: client_secret and Client-Secret are the same. */
function isSecretName(name: string): boolean {
  return secretName.test(name.toLowerCase().replaceAll(/[^a-z0-9]/g, ''))
}

/** Masks field names, too, because a mistyped separator makes the secret a part of the name. */
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

/**
 * Masks the JSON text itself, because a parser drops the first of two equal names. Returns undefined if the body is not
 * JSON, or if a secret is a list or an object.
 */
function maskJson(body: string): string | undefined {
  try {
    JSON.parse(body)
  } catch {
    return undefined
  }
  let isWhole = true
  const changed = body.replace(jsonPair, (pair: string, name: string, colon: string, value: string) => {
    if (!isSecretName(unescaped(name))) return pair
    isWhole &&= !/^[[{]/.test(value)
    return `${name}${colon}"${masked}"`
  })
  return isWhole ? changed : undefined
}

const jsonPair = /("(?:[^"\\]|\\.)*")(\s*:\s*)("(?:[^"\\]|\\.)*"|[^",}\]\s]+)/g

function unescaped(text: string): string {
  try {
    return JSON.parse(text)
  } catch {
    return text // not a name: the pattern matched across two strings
  }
}
