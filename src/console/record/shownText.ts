import { boundText } from '../../boundText.ts'
import { isDigits, isObject, type PayloadValue, readPayload } from '../../yaml/exactJson.ts'

/** What stands in the place of a value that nobody has asked for. */
export const mask = '•••'

/** A text of a record as a page shows it. */
export interface ShownText {
  text: string
  /** There is more of it than stands here. */
  isCut: boolean
}

const charactersMax = 20_000

/**
 * JSON text in lines, numbers with their own digits; masked: its names alone, for whatever a value is, it may be a person's. A
 * text that is no object is shown as it is, or not at all. Pure.
 */
export function shownJson(json: string, isMasked: boolean): ShownText {
  const read = readPayload(json)
  const text =
    read.kind === 'payload'
      ? JSON.stringify(isMasked ? masked(read.payload) : read.payload, null, 2)
      : isMasked
        ? mask
        : json
  return { text: boundText(text, charactersMax), isCut: text.length > charactersMax }
}

/** The same of a single value's JSON text. Pure. */
export const shownValue = (json: string, isMasked: boolean): string =>
  isMasked && !['true', 'false', 'null'].includes(json) ? mask : json

function masked(value: PayloadValue): unknown {
  if (Array.isArray(value)) return value.map(masked)
  if (typeof value === 'string' || isDigits(value)) return mask
  if (!isObject(value)) return value
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, masked(member)]))
}
