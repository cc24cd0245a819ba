import { isExactNumber, isObject, type PayloadObject, type PayloadValue, readPayload } from '../yaml/exactJson.ts'

/** A field of payloads, known from a column or from sample payloads. */
export interface SourceField {
  readonly name: string
  readonly path: string
  readonly kind: 'text' | 'number' | 'boolean' | 'time' | 'localTime' | 'uuid' | 'array' | 'other'
}

/** @param type without a length */
export function sourceFieldOfColumn(name: string, type: string): SourceField {
  return { name, path: stepOf(name), kind: kinds.find(([types]) => types.test(type))?.[1] ?? 'other' }
}

const kinds: readonly [RegExp, SourceField['kind']][] = [
  [/^(smallint|integer|bigint|numeric)$/, 'number'],
  [/^boolean$/, 'boolean'],
  [/^timestamp with time zone$/, 'time'],
  [/^(timestamp without time zone|date)$/, 'localTime'],
  [/^uuid$/, 'uuid'],
  [/\[\]$/, 'array'],
  [/^(text|character varying|character|citext|name)$/, 'text'],
]

const stepOf = (name: string) => (/^[^.[\]"]+$/.test(name) ? name : `[${JSON.stringify(name)}]`)

const depthMax = 3
const fieldsMax = 200

/** Collects the paths and kinds of the fields of sample payloads, without values. */
export function sourceFieldsOfPayloads(payloads: readonly string[]): SourceField[] {
  const fields = payloads.flatMap((text) => {
    const read = readPayload(text)
    return read.kind === 'payload' ? fieldsOf(read.payload, '', 1) : []
  })
  return [...new Map(fields.map((field) => [field.path, field])).values()].slice(0, fieldsMax)
}

function fieldsOf(object: PayloadObject, prefix: string, depth: number): SourceField[] {
  return Object.entries(object).flatMap(([name, value]) => {
    const step = stepOf(name)
    const path = prefix === '' || step.startsWith('[') ? `${prefix}${step}` : `${prefix}.${step}`
    if (isObject(value)) return depth < depthMax ? fieldsOf(value, path, depth + 1) : []
    return value === null ? [] : [{ name, path, kind: kindOf(value) }]
  })
}

function kindOf(value: PayloadValue): SourceField['kind'] {
  if (isExactNumber(value)) return 'number'
  if (Array.isArray(value)) return 'array'
  if (typeof value === 'boolean') return 'boolean'
  return typeof value === 'string' && uuid.test(value) ? 'uuid' : 'text'
}

const uuid = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i
