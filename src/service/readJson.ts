import { boundText } from '../boundText.ts'
import { resources } from '../resources.ts'
import { type ExaminedJson, examineJson } from '../yaml/exactJson.ts'

/**
 * JSON from outside as values that can be stored and written back without harm; undefined if it is not JSON.
 *
 * - A number that a double would not write back with the same digits (`1.10`, 20 digits) becomes `JSON.rawJSON`, so that
 *   `JSON.stringify` gives the service's own digits.
 * - What is nested deeper than 100 levels becomes a text that says so: nothing recurses over it.
 * - NUL and lone surrogates, which Postgres refuses, become U+FFFD.
 * - Each of `secrets` becomes `[redacted]` wherever a string echoes it in words. What is used, and not only shown, is not
 *   changed by a secret that is short enough to be part of it by chance: `test-95` stays that where the secret is `test`.
 */
export function readJson(text: string, secrets: readonly string[]): unknown {
  return readExamined(text, examineJson(text, depthMax), secrets)
}

/** What an answer's body says, and whether it says a thing twice. */
export interface ReadBody {
  /** Undefined if it is not JSON, or if nobody can tell which value of a key of its outermost object counts. */
  json: unknown
  repeatsKey: boolean
}

/**
 * Reads the body of an answer: two equal keys are a breach of contract, as they are in payloads. A refusal stays readable,
 * because no record completes by a refusal.
 */
export function readBody(text: string, secrets: readonly string[], isSuccess: boolean): ReadBody {
  const examined = examineJson(text, depthMax)
  const json = readExamined(text, examined, secrets)
  const isDoubtful = isSuccess && examined.topKeyFlaw?.kind === 'repeated'
  return {
    json: isDoubtful ? undefined : json,
    repeatsKey: json !== undefined && examined.keyFlaw?.kind === 'repeated',
  }
}

/** The deepest nesting that is kept; a result may have any. */
const depthMax = 100
const tooDeepText = JSON.stringify(`[nested deeper than ${depthMax} levels]`)

function readExamined(whole: string, { tooDeep }: ExaminedJson, secrets: readonly string[]): unknown {
  const ends = [0, ...tooDeep.map(([, end]) => end)]
  const starts = [...tooDeep.map(([start]) => start), whole.length]
  const text = ends.map((end, i) => whole.slice(end, starts[i])).join(tooDeepText)
  try {
    return JSON.parse(text, (key, value, context) => {
      if (typeof value === 'number') return exactNumber(value, context.source)
      if (typeof value === 'string') return cleanText(value, secretsIn(key, value, secrets))
      return cleanKeys(value)
    })
  } catch {
    return undefined
  }
}

export const redacted = '[redacted]'

/** Where ids, statuses and codes stand (responses.ts, errorCode.ts): they are used as they came. */
const usedFields: ReadonlySet<string> = new Set([
  ...Object.values(resources).map(({ idField }) => idField),
  'status',
  'code',
  'errorCode',
  'error_code',
  'type',
])

/** The interface's own words; the service says them whatever the secret is. */
const ownWord = /^\s*(E\d{3}|accepted|pending|completed|failed)\s*$/i

/** A shorter one is part of an id by chance. */
const longSecretMin = 8

function secretsIn(field: string, value: string, secrets: readonly string[]): readonly string[] {
  if (ownWord.test(value)) return []
  return usedFields.has(field) ? secrets.filter(({ length }) => length >= longSecretMin) : secrets
}

/** The same harmlessness for text that is not JSON. */
export function cleanText(text: string, secrets: readonly string[]): string {
  const clean = boundText(text)
  const echoed = secrets.filter((secret) => secret !== '' && clean.includes(secret))
  // In one pass, the longest first: a secret that is part of another, or of our own mark, breaks neither.
  const patterns = echoed.toSorted((a, b) => b.length - a.length)
  return patterns.length === 0 ? clean : clean.replace(new RegExp(patterns.map(RegExp.escape).join('|'), 'g'), redacted)
}

/** The text of a JSON string, or of a number with its own digits, as ids come from services that forget the quotes. */
export function textOf(value: unknown): string | null {
  if (typeof value === 'string') return value
  if (typeof value === 'number') return String(value)
  return JSON.isRawJSON(value) ? JSON.stringify(value) : null
}

function exactNumber(value: number, source: string | undefined): unknown {
  return source === undefined || String(value) === source ? value : JSON.rawJSON(source)
}

function cleanKeys(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value) || JSON.isRawJSON(value)) return value
  const entries = Object.entries(value)
  if (entries.every(([key]) => cleanText(key, []) === key)) return value
  return Object.fromEntries(entries.map(([key, inner]) => [cleanText(key, []), inner]))
}
