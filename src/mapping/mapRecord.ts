import type { Amounts } from '../model.ts'
import {
  isDigits,
  nameKind,
  type PayloadObject,
  type PayloadValue,
  quote,
  readPayload,
  writeJson,
} from '../yaml/exactJson.ts'
import { type Invalid, invalid } from '../yaml/invalid.ts'
import { didYouMean } from '../yaml/nearestWord.ts'
import type { Field, FieldError, Mapped, MappedField, Mapping } from './mapping.ts'

/**
 * Turns a record into the request that is sent for it, or into every reason why it cannot be one. Pure; never throws.
 *
 * @param payload      JSON text as the client wrote it
 * @param submissionId what `${submission.id}` stands for
 */
export function mapRecord(mapping: Mapping, payload: string, submissionId: string): Mapped {
  const read = readPayload(payload)
  if (read.kind === 'invalid')
    return { kind: 'invalid', errors: [{ field: 'payload', from: '', message: read.message }] }
  const fields: MappedField[] = []
  const errors: FieldError[] = []
  for (const field of mapping.fields) {
    const outcome = mapField(field, read.payload)
    if (outcome.kind === 'invalid') errors.push({ field: field.name, from: field.from ?? '', message: outcome.message })
    else fields.push({ field: field.name, from: field.from, source: outcome.source, value: outcome.value })
  }
  if (errors.length > 0) return { kind: 'invalid', errors }
  const values = fields.map((field) => field.value)
  const body = mapping.body(values, submissionId) ?? '{}'
  return { kind: 'mapped', body, fields, amounts: amountsOf(mapping, values) }
}

/** @param values JSON text per field; those sent as text stand in quotes */
function amountsOf({ fields }: Mapping, values: readonly (string | null)[]): Amounts {
  return Object.fromEntries(
    fields.flatMap(({ name, isAmount }, i) => (isAmount && values[i] ? [[name, values[i].replaceAll('"', '')]] : [])),
  )
}

type FieldOutcome = { kind: 'value'; source: string | null; value: string | null } | Invalid

/** Null counts as missing. A default fills in for a missing value only, never for a wrong or an empty one. */
function mapField(field: Field, payload: PayloadObject): FieldOutcome {
  const read = field.read(payload)
  if (read.kind === 'invalid') return read
  const isNull = read.kind === 'found' && read.value === null
  if (read.kind === 'missing' || read.value === null) {
    if (field.fallback === null && field.required) return invalid(isNull ? 'is null' : 'is missing')
    return { kind: 'value', source: isNull ? 'null' : null, value: field.fallback }
  }
  return convertValue(field, read.value)
}

function convertValue(field: Field, found: PayloadValue): FieldOutcome {
  const source = writeJson(found)
  const value = field.trim && typeof found === 'string' ? found.trim() : found
  if (field.lookup !== null) {
    const json = lookUp(field.lookup, value)
    return typeof json === 'string' ? { kind: 'value', source, value: json } : json
  }
  if (value === '' && field.required) return invalid('is empty')
  const converted = field.convert(value, value === found ? source : writeJson(value))
  return converted.kind === 'invalid' ? converted : { kind: 'value', source, value: converted.json }
}

function lookUp(table: ReadonlyMap<string, string>, value: PayloadValue): string | Invalid {
  if (typeof value === 'object' && !isDigits(value))
    return invalid(`is ${nameKind(value)}, which a lookup table cannot hold`)
  const text = isDigits(value) ? value.rawJSON : String(value)
  return table.get(text) ?? invalid(`is not in the lookup table: ${quote(text)}${didYouMean(text, table.keys())}`)
}
