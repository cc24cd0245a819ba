import {
  type Invalid,
  invalid,
  isExactNumber,
  nameJsonKind,
  type PayloadValue,
  quoteForMessage,
} from '../yaml/exactJson.ts'
import { didYouMeanHint } from '../yaml/nearestWord.ts'
import { convertToUtc } from './datetime.ts'
import {
  countDecimals,
  countWholeDigits,
  type Decimal,
  type DecimalSeparator,
  numberCharactersMax,
  parseJsonNumber,
  parsePlainNumber,
  type Rounding,
  roundDecimal,
  writeDecimal,
} from './decimal.ts'
import type { ConversionResult, ConvertValue } from './mapping.ts'
import { type FieldSpec, parseFieldTypeName } from './mappingSchema.ts'

/** The schema must have accepted `spec`. */
export function chooseConverter(spec: FieldSpec): ConvertValue {
  const name = parseFieldTypeName(spec.type)
  switch (name) {
    case 'string':
      return stringConverter(spec.maxLength ?? Number.POSITIVE_INFINITY)
    case 'enum':
      return enumConverter(spec.values ?? [])
    case 'uuid':
      return convertUuid
    case 'boolean':
      return convertBoolean
    case 'integer':
      return integerConverter(spec)
    case 'decimal':
      return decimalConverter(spec)
    case 'datetime':
      return datetimeConverter(spec.timezone ?? null)
    case 'array':
      return (value, source) => (Array.isArray(value) ? json(source) : notA('an array', value))
    case null:
      throw new TypeError(`${spec.type} has not passed its schema`)
    default:
      return name satisfies never
  }
}

export function parseDecimalType(type: string): { precision: number; scale: number } | null {
  const match = /^decimal\(\s*(\d+)\s*,\s*(\d+)\s*\)$/.exec(type)
  return match === null ? null : { precision: Number(match[1]), scale: Number(match[2]) }
}

const wholeNumber = /^-?\d+$/
const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i
const int64 = { least: -(2n ** 63n), most: 2n ** 63n - 1n }

function json(text: string): ConversionResult {
  return { kind: 'value', json: text }
}

function notA(expected: string, value: PayloadValue): Invalid {
  return invalid(`is ${nameJsonKind(value)}, not ${expected}`, 'wrong_type')
}

/** Reads a text, or a whole number as text, such as a customer number. */
function readText(value: PayloadValue): string | null {
  if (typeof value === 'string') return value
  return isExactNumber(value) && wholeNumber.test(value.rawJSON) ? value.rawJSON : null
}

/** Counts code points, as JSON Schema does. */
function stringConverter(lengthMax: number): ConvertValue {
  return (value, source) => {
    const text = readText(value)
    if (text === null) return notA('text', value)
    const length = text.length > lengthMax ? countCharacters(text) : text.length
    if (length > lengthMax)
      return invalid(`has ${length} characters, at most ${lengthMax} are allowed: ${quoteForMessage(text)}`, 'too_long')
    return json(typeof value === 'string' ? source : JSON.stringify(text))
  }
}

function countCharacters(text: string): number {
  let characters = 0
  for (const _ of text) characters++
  return characters
}

function enumConverter(values: readonly string[]): ConvertValue {
  const allowed = new Set(values)
  const listed = values.length > 8 ? `${values.slice(0, 8).join(', ')}, …` : values.join(', ')
  return (value) => {
    const text = readText(value)
    if (text === null) return notA(`one of ${listed}`, value)
    if (!allowed.has(text))
      return invalid(`is not one of ${listed}: ${quoteForMessage(text)}${didYouMeanHint(text, values)}`, 'not_one_of')
    return json(JSON.stringify(text))
  }
}

function convertUuid(value: PayloadValue): ConversionResult {
  if (typeof value !== 'string') return notA('a uuid', value)
  if (!uuid.test(value))
    return invalid(`is not a uuid like 123e4567-e89b-12d3-a456-426614174000: ${quoteForMessage(value)}`, 'no_uuid')
  return json(`"${value.toLowerCase()}"`) // RFC 9562, 4: a uuid is written in lower case
}

function convertBoolean(value: PayloadValue): ConversionResult {
  if (typeof value === 'boolean') return json(String(value))
  if (value === 'true' || value === 'false') return json(value)
  if (typeof value === 'string')
    return invalid(`is neither true nor false: ${quoteForMessage(value)}; a lookup can translate it`, 'no_boolean')
  return notA('true or false', value)
}

function integerConverter(spec: FieldSpec): ConvertValue {
  return (value) => {
    const number = readNumber(value, spec)
    if ('kind' in number) return number
    if (countDecimals(number) > 0) return invalid(`is not a whole number: ${quoteNumber(value)}`, 'no_integer')
    const tooLarge = countWholeDigits(number) > 19
    const digits = tooLarge ? '' : writeDecimal(number, 0)
    if (tooLarge || BigInt(digits) < int64.least || BigInt(digits) > int64.most) {
      return invalid(`is beyond 64 bits: ${quoteNumber(value)}`, 'too_large')
    }
    return json(spec.as === 'string' ? `"${digits}"` : digits)
  }
}

function decimalConverter(spec: FieldSpec): ConvertValue {
  const { precision, scale } = parseDecimalType(spec.type) ?? { precision: 0, scale: 0 }
  const rounding: Rounding | null = spec.round ?? null
  const type = `decimal(${precision},${scale})`
  return (value) => {
    const exact = readNumber(value, spec)
    if ('kind' in exact) return exact
    const decimals = countDecimals(exact)
    if (decimals > scale && rounding === null) {
      return invalid(
        `has ${count(decimals, 'decimal')}, ${type} takes ${scale}: ${quoteNumber(value)}`,
        'too_many_decimals',
      )
    }
    const number = rounding === null ? exact : roundDecimal(exact, scale, rounding)
    const whole = countWholeDigits(number)
    if (whole > precision - scale) {
      const held = `${type} takes ${precision - scale}: ${quoteNumber(value)}`
      return invalid(`has ${count(whole, 'digit')} before the point, ${held}`, 'too_large')
    }
    const written = writeDecimal(number, scale)
    return json(spec.as === 'string' ? `"${written}"` : written)
  }
}

function datetimeConverter(zone: string | null): ConvertValue {
  return (value) =>
    typeof value === 'string' ? convertToUtc(value, zone) : notA('an ISO 8601 date-time in text', value)
}

/** `hint` helps with a text that has the marks of `odd`. */
const plainNumberForms = {
  '.': {
    like: '1234.50',
    odd: /,/,
    hint: '; write a point for the decimals and nothing between thousands, or say decimal_separator: ","',
  },
  ',': { like: '1234,50', odd: /\./, hint: '; nothing may separate thousands' },
} satisfies Record<DecimalSeparator, object>

const threeDigitsAfterSeparator = /^[+-]?\d+[.,]\d{3}$/

function readNumber(value: PayloadValue, { decimal_separator: separator }: FieldSpec): Decimal | Invalid {
  if (isExactNumber(value))
    return parseJsonNumber(value.rawJSON) ?? invalid(`is longer than ${numberCharactersMax} characters`, 'too_long')
  if (typeof value !== 'string') return notA('a number', value)
  if (value === '') return invalid('is empty, not a number', 'empty')
  if (separator === undefined && threeDigitsAfterSeparator.test(value))
    return invalid(
      `may have decimals or thousands after its separator: ${quoteForMessage(value)}; say decimal_separator: "." or ","`,
      'ambiguous_number',
    )
  const number = parsePlainNumber(value, separator ?? '.')
  if (number !== null) return number
  if (value.length > numberCharactersMax) return invalid(`is longer than ${numberCharactersMax} characters`, 'too_long')
  const { like, odd, hint } = plainNumberForms[separator ?? '.']
  const advice = odd.test(value) ? hint : ''
  return invalid(`is not a plain number like ${like}: ${quoteForMessage(value)}${advice}`, 'no_number')
}

function quoteNumber(value: PayloadValue): string {
  return quoteForMessage(isExactNumber(value) ? value.rawJSON : String(value))
}

function count(number: number, noun: string): string {
  return `${Number.isFinite(number) ? number : 'too many to count'} ${noun}${number === 1 ? '' : 's'}`
}
