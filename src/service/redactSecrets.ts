import { boundText } from '../boundText.ts'

export const redactedMark = '[redacted]'

/**
 * Matches `secrets`, also if signs are percent-encoded, escaped as in JSON, or HTML entities, and in Base64, such as in
 * an Authorization header that a proxy repeats.
 */
export function compileSecrets(secrets: readonly string[]): RegExp | null {
  // The longest first: a secret may be part of another.
  const longestFirst = secrets.filter((secret) => secret !== '').toSorted((a, b) => b.length - a.length)
  if (longestFirst.length === 0) return null
  const key = longestFirst.join('\0')
  const known = compiled.get(key)
  if (known !== undefined) return known
  const pattern = new RegExp(
    longestFirst.flatMap((secret) => [secretPattern(secret), ...base64Patterns(secret)]).join('|'),
    'g',
  )
  if (compiled.size >= compiledMax) compiled.clear()
  compiled.set(key, pattern)
  return pattern
}

const compiled = new Map<string, RegExp>()
const compiledMax = 8
/** A longer secret's pattern may be too large. */
const spelledMax = 2_000

export function redactAndBoundText(text: string, secrets: RegExp | null): string {
  const clean = boundText(text)
  return secrets === null ? clean : clean.replace(secrets, redactedMark)
}

const secretPattern = (secret: string): string =>
  secret.length > spelledMax
    ? RegExp.escape(secret)
    : (secret.toWellFormed().match(/\\+|[^\\]/gu) ?? []).map(tokenPattern).join('')

/** Shorter texts are too common, and tokens are long. */
const base64Bytes = { min: 8, max: 200 }

/**
 * Returns what Base64 of a longer text has for the secret: three forms, by the place where the secret begins in its
 * group of three bytes. Leaves out the signs that depend on the bytes around it.
 *
 * @see RFC 4648, 4 and 5
 */
function base64Patterns(secret: string): string[] {
  const bytes = Buffer.from(secret)
  if (bytes.length < base64Bytes.min || bytes.length > base64Bytes.max) return []
  return [0, 1, 2].map((before) => {
    const text = Buffer.concat([Buffer.alloc(before), bytes])
      .toString('base64')
      .replace(/=+$/, '')
    const isWhole = (before + bytes.length) % 3 === 0
    const known = text.slice(Math.ceil((before * 4) / 3), isWhole ? undefined : -1)
    return known.replace(/[+/]/g, (sign) => (sign === '+' ? '[+-]' : '[/_]'))
  })
}

/** One pattern for a run of backslashes: one for each would take exponential time. */
function tokenPattern(token: string): string {
  const spelled = characterPattern(token)
  return token.startsWith('\\') ? `${spelled}{${token.length},${2 * token.length}}` : spelled
}

/** The character itself comes last, because another spelling may begin with it, such as `%25`. */
function characterPattern(token: string): string {
  const character = token.startsWith('\\') ? '\\' : token
  if (/[a-z0-9]/i.test(character)) return character
  const code = character.codePointAt(0) ?? 0
  const escaped = character === '\\' ? [] : [`\\${character}`, JSON.stringify(character).slice(1, -1)]
  const encoded = [
    Array.from(Buffer.from(character), (byte) => `%${hex(byte, 2)}`).join(''),
    Array.from({ length: character.length }, (_, i) => String.raw`\\u${hex(character.charCodeAt(i), 4)}`).join(''),
    `&#0*${code};`,
    `&#x0*${hex(code, 1)};`,
    ...(htmlNames.has(character) ? [`&${htmlNames.get(character)};`] : []),
  ].map(inAnyCase)
  const spellings = [
    ...encoded,
    ...(character === ' ' ? [String.raw`\+`] : []),
    ...[...escaped, character].map(RegExp.escape),
  ]
  // A sign that matches in two ways makes a mismatch exponential.
  return `(?:${[...new Set(spellings)].join('|')})`
}

/** V8 matches `(?i:a|b)` wrongly in a large pattern or after many patterns. */
const inAnyCase = (pattern: string): string =>
  pattern.replace(/[a-z]/g, (letter) => `[${letter}${letter.toUpperCase()}]`)

const hex = (value: number, digits: number): string => value.toString(16).padStart(digits, '0')

const htmlNames = new Map([
  ['&', 'amp'],
  ['<', 'lt'],
  ['>', 'gt'],
  ['"', 'quot'],
  ["'", 'apos'],
])
