import { createHash } from 'node:crypto'
import { boundText } from '../boundText.ts'

export interface ExactNumber {
  readonly rawJSON: string
}

/** A JSON value whose numbers keep their own digits. */
export type PayloadValue = string | boolean | null | ExactNumber | readonly PayloadValue[] | PayloadObject
export interface PayloadObject {
  readonly [key: string]: PayloadValue
}

declare global {
  // TypeScript 7.0 lacks the JSON.parse source text access proposal (in Node since 21).
  interface JSON {
    rawJSON(text: string): ExactNumber
    isRawJSON(value: unknown): value is ExactNumber
    parse(text: string, reviver: (key: string, value: unknown, context: { source?: string }) => unknown): unknown
  }
}

const depthMax = 100
const payloadCharactersMax = 10_000_000
const quotedCharactersMax = 60

/**
 * Reads a record's payload. Every number keeps its own digits.
 *
 * Refuses a repeated key in one object (which amount is right?) and `__proto__`, which JSON.parse accepts. Refuses
 * nesting deeper than 100, so that recursion is safe.
 */
export function readPayload(text: string): { kind: 'payload'; payload: PayloadObject } | Invalid {
  if (text.length > payloadCharactersMax)
    return invalid(`is longer than ${payloadCharactersMax} characters`, 'too_long')
  if (text.startsWith('\uFEFF'))
    return invalid('begins with a byte order mark (U+FEFF), which JSON does not allow', 'no_json')
  const { tooDeep, keyFlaw } = findJsonFlaws(text, depthMax)
  if (tooDeep.length > 0) return invalid(`is nested deeper than ${depthMax} levels`)
  let value: PayloadValue
  try {
    value = JSON.parse(text, keepDigits) as PayloadValue
  } catch (error) {
    // Cleans the message, because V8 quotes the text around the error and may cut a surrogate pair.
    return invalid(`is not JSON: ${boundText((error as Error).message, 200)}`, 'no_json')
  }
  if (keyFlaw !== null) return invalid(keyFlaw.message)
  if (!isObject(value)) return invalid(`is ${nameJsonKind(value)}, not an object`, 'wrong_type')
  return { kind: 'payload', payload: value }
}

export function isExactNumber(value: unknown): value is ExactNumber {
  return JSON.isRawJSON(value)
}

export function isObject(value: PayloadValue): value is PayloadObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !isExactNumber(value)
}

export function writeJson(value: PayloadValue): string {
  return typeof value === 'object' && isExactNumber(value) ? value.rawJSON : JSON.stringify(value)
}

export function toPlainValue(value: PayloadValue): unknown {
  if (isExactNumber(value)) return Number(value.rawJSON)
  if (Array.isArray(value)) return value.map(toPlainValue)
  if (!isObject(value)) return value
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, toPlainValue(member)]))
}

/** Quotes the text, cut at 60 characters. */
export function quoteForMessage(text: string): string {
  return JSON.stringify(boundText(text, quotedCharactersMax))
}

export function nameJsonKind(value: PayloadValue): string {
  if (typeof value === 'string') return 'text'
  if (value === null || typeof value === 'boolean') return String(value)
  if (isExactNumber(value)) return 'a number'
  return Array.isArray(value) ? 'an array' : 'an object'
}

function keepDigits(_key: string, value: unknown, context: { source?: string }): unknown {
  return typeof value === 'number' && context.source !== undefined ? JSON.rawJSON(context.source) : value
}

export interface JsonFlaws {
  /** Ranges of values nested deeper than `depthMax`. Recursion over these values may fail. */
  tooDeep: [start: number, end: number][]
  /** The first repeated key, or `__proto__`; null if the text has neither. */
  keyFlaw: KeyFlaw | null
  /** Like `keyFlaw`, but only of the outermost object. */
  topKeyFlaw: KeyFlaw | null
}

interface KeyFlaw {
  kind: 'repeated' | 'proto'
  message: string
}

/**
 * Scans the strings and brackets of a text without recursion, so that any text may be given.
 */
export function findJsonFlaws(text: string, depthMax: number): JsonFlaws {
  const keysSeen: Set<string>[] = [] // one per open bracket
  const found: JsonFlaws = { tooDeep: [], keyFlaw: null, topKeyFlaw: null }
  let [depth, deepStart] = [0, 0]
  for (let at = 0; at < text.length; at++) {
    const character = text.charCodeAt(at)
    if (character === 0x7b || character === 0x5b) {
      depth += 1
      if (depth <= depthMax) keysSeen.push(new Set())
      else if (depth === depthMax + 1) {
        deepStart = at
        found.tooDeep.push([at, text.length])
      }
    } else if (character === 0x7d || character === 0x5d) {
      if (depth === depthMax + 1) found.tooDeep.splice(-1, 1, [deepStart, at + 1])
      else if (depth <= depthMax) keysSeen.pop()
      depth = Math.max(0, depth - 1)
    } else if (character === 0x22) {
      const end = endOfString(text, at)
      if (depth <= depthMax && nextIsColon(text, end)) {
        const flaw = noteKey(keysSeen.at(-1), text.slice(at, end))
        found.keyFlaw ??= flaw
        if (depth === 1) found.topKeyFlaw ??= flaw
      }
      at = end - 1
    }
  }
  return found
}

/** Returns the index after the closing quote of the string that opens at `start`, or the text's end. */
function endOfString(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at++) {
    const character = text.charCodeAt(at)
    if (character === 0x5c) at++
    else if (character === 0x22) return at + 1
  }
  return text.length
}

function nextIsColon(text: string, start: number): boolean {
  let at = start
  while (text.charCodeAt(at) <= 0x20) at++
  return text.charCodeAt(at) === 0x3a
}

function noteKey(keys: Set<string> | undefined, quoted: string): KeyFlaw | null {
  const key = quoted.includes('\\') ? unescapeKey(quoted) : quoted.slice(1, -1)
  if (key === '__proto__') return { kind: 'proto', message: 'contains the key "__proto__", which is not a field name' }
  if (keys?.has(key))
    return { kind: 'repeated', message: `has the key ${quoteForMessage(key)} twice in one object: which one is meant?` }
  keys?.add(key)
  return null
}

function unescapeKey(quoted: string): string {
  try {
    return JSON.parse(quoted)
  } catch {
    return quoted // JSON.parse of the whole text will report the error
  }
}

/** What is wrong with a value. Unlike the message, this word does not quote the value, so the log may say it. */
export type ValueFault =
  | 'missing'
  | 'null'
  | 'empty'
  | 'not_in_lookup'
  | 'too_long'
  | 'not_one_of'
  | 'no_uuid'
  | 'no_boolean'
  | 'no_integer'
  | 'too_large'
  | 'too_many_decimals'
  | 'no_number'
  | 'ambiguous_number'
  | 'no_datetime'
  | 'no_json'
  | 'wrong_type'
  | 'no_mapping'
  | 'invalid'

/** `message` continues a sentence that begins with the field's name. Quoted values in `message` are cut. */
export interface Invalid {
  readonly kind: 'invalid'
  readonly fault: ValueFault
  readonly message: string
}

export function invalid(message: string, fault: ValueFault = 'invalid'): Invalid {
  return { kind: 'invalid', fault, message }
}

/**
 * Returns a short digest of a document's values. The order of keys does not matter.
 *
 * @param value plain values, arrays, objects and maps
 */
export function shortDigestOf(value: unknown): string {
  const canonical = JSON.stringify(value, (_, each: unknown) => {
    if (each instanceof Map) return Object.fromEntries([...each].toSorted(byKey))
    return isRecord(each) ? Object.fromEntries(Object.entries(each).toSorted(byKey)) : each
  })
  return createHash('sha256').update(canonical).digest('hex').slice(0, digestChars)
}

const digestChars = 12

export const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

function byKey([a]: [string, unknown], [b]: [string, unknown]): number {
  if (a === b) return 0
  return a < b ? -1 : 1
}
