import { serviceResources } from '../resources.ts'
import { findJsonFlaws, type JsonFlaws } from '../yaml/exactJson.ts'
import { compileSecrets, redactAndBoundText } from './redactSecrets.ts'

/**
 * Reads foreign JSON as values that can be stored and written back; undefined if it is not JSON.
 *
 * - A number that a double would change becomes `JSON.rawJSON`.
 * - Values nested deeper than 100 levels become a text that says so.
 * - NUL and lone surrogates, which Postgres refuses, become U+FFFD.
 * - Repeated `secrets` become `[redacted]`. A short secret does not change ids: `test-95` stays if the secret is
 *   `test`.
 */
export function parseAndMaskJson(text: string, secrets: readonly string[]): unknown {
  return readExamined(text, findJsonFlaws(text, depthMax), secrets)
}

/**
 * Returns undefined, too, if a success repeats a key of its outermost object. A refusal with a repeated key stays
 * readable, because it completes no record.
 */
export function parseAnswerJson(text: string, secrets: readonly string[], isSuccess: boolean): unknown {
  const examined = findJsonFlaws(text, depthMax)
  return isSuccess && examined.topKeyFlaw?.kind === 'repeated' ? undefined : readExamined(text, examined, secrets)
}

const depthMax = 100
const tooDeepText = JSON.stringify(`[nested deeper than ${depthMax} levels]`)

function readExamined(whole: string, { tooDeep }: JsonFlaws, secrets: readonly string[]): unknown {
  const ends = [0, ...tooDeep.map(([, end]) => end)]
  const starts = [...tooDeep.map(([start]) => start), whole.length]
  const text = ends.map((end, i) => whole.slice(end, starts[i])).join(tooDeepText)
  const all = compileSecrets(secrets)
  const long = compileSecrets(secrets.filter(({ length }) => length >= longSecretMin))
  try {
    return JSON.parse(text, (key, value, context) => {
      if (typeof value === 'number') return exactNumber(value, context.source)
      if (typeof value === 'string') {
        const sought = usedFields.has(key) ? long : all
        return redactAndBoundText(value, ownWord.test(value) ? null : sought)
      }
      return cleanKeys(value, long)
    })
  } catch {
    return undefined
  }
}

/** Fields that responses.ts uses unchanged: ids, statuses and codes. */
const usedFields: ReadonlySet<string> = new Set([
  ...Object.values(serviceResources).map(({ idField }) => idField),
  'status',
  'code',
  'errorCode',
  'error_code',
  'type',
])

/** These words of the interface are never redacted, even if a secret equals one of them. */
const ownWord = /^\s*(E\d{3}|accepted|pending|completed|failed)\s*$/i

/** In ids, codes and keys, a shorter secret may stand by chance. */
const longSecretMin = 8

/** Returns a text, or a number's own digits, because some services forget the quotes of ids. */
export function textOrDigitsOf(value: unknown): string | null {
  if (typeof value === 'string') return value
  if (typeof value === 'number') return String(value)
  return JSON.isRawJSON(value) ? JSON.stringify(value) : null
}

function exactNumber(value: number, source: string | undefined): unknown {
  return source === undefined || String(value) === source ? value : JSON.rawJSON(source)
}

function cleanKeys(value: unknown, secrets: RegExp | null): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value) || JSON.isRawJSON(value)) return value
  const entries = Object.entries(value)
  if (entries.every(([key]) => redactAndBoundText(key, secrets) === key)) return value
  return Object.fromEntries(entries.map(([key, inner]) => [redactAndBoundText(key, secrets), inner]))
}
