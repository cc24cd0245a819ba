import { isExactNumber, isObject, type PayloadObject, type PayloadValue, readPayload } from '../yaml/exactJson.ts'

/** A field of payloads, found from its column or from some payloads. */
export interface SourceField {
  readonly path: string
  readonly kind: 'text' | 'number' | 'double' | 'money' | 'boolean' | 'time' | 'localTime' | 'uuid' | 'array' | 'other'
  /** A column's type, for messages. */
  readonly about: string
}

/** @param type from the catalog, without a length */
export function sourceFieldOfColumn(name: string, type: string, exactType: string): SourceField {
  const path = /^[^.[\]"]+$/.test(name) ? name : `[${JSON.stringify(name)}]`
  return { path, kind: kinds.find(([types]) => types.test(type))?.[1] ?? 'other', about: exactType }
}

const kinds: readonly [RegExp, SourceField['kind']][] = [
  [/^(smallint|integer|bigint|numeric)$/, 'number'],
  [/^(real|double precision)$/, 'double'],
  [/^money$/, 'money'],
  [/^boolean$/, 'boolean'],
  [/^timestamp with time zone$/, 'time'],
  [/^(timestamp without time zone|date)$/, 'localTime'],
  [/^uuid$/, 'uuid'],
  [/\[\]$/, 'array'],
  [/^(text|character varying|character|citext|name)$/, 'text'],
]

const depthMax = 3
const fieldsMax = 200

/** Collects the fields of some payloads by path, without values. */
export function sourceFieldsOfPayloads(payloads: readonly string[]): SourceField[] {
  const fields = new Map<string, SourceField>()
  for (const text of payloads) {
    const read = readPayload(text)
    if (read.kind === 'payload') addFields(fields, read.payload, '', 1)
  }
  return [...fields.values()].slice(0, fieldsMax)
}

function addFields(fields: Map<string, SourceField>, object: PayloadObject, prefix: string, depth: number): void {
  for (const [key, value] of Object.entries(object)) {
    const step = /^[^.[\]"]+$/.test(key) ? key : `[${JSON.stringify(key)}]`
    const path = prefix === '' || step.startsWith('[') ? `${prefix}${step}` : `${prefix}.${step}`
    if (isObject(value)) {
      if (depth < depthMax) addFields(fields, value, path, depth + 1)
    } else if (value !== null && !fields.has(path)) fields.set(path, { path, kind: kindOf(value), about: '' })
  }
}

function kindOf(value: PayloadValue): SourceField['kind'] {
  if (isExactNumber(value)) return 'number'
  if (Array.isArray(value)) return 'array'
  if (typeof value === 'boolean') return 'boolean'
  return typeof value === 'string' && uuid.test(value) ? 'uuid' : 'text'
}

const uuid = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i
