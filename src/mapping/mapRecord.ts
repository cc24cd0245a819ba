import { randomUUID, randomUUIDv7 } from 'node:crypto'
import type { Amounts, CapturedRecord, OutboxRecord } from '../model/outbox.ts'
import type { Resource } from '../resources.ts'
import {
  type Invalid,
  invalid,
  isExactNumber,
  nameJsonKind,
  type PayloadObject,
  type PayloadValue,
  quoteForMessage,
  readPayload,
  type ValueFault,
  writeJson,
} from '../yaml/exactJson.ts'
import { didYouMeanHint } from '../yaml/nearestWord.ts'
import type { Mappings } from './loadMappings.ts'
import type { Field, FieldError, MappedField, Mapping, MappingResult } from './mapping.ts'

/**
 * Maps a record to its request, or to every reason why it cannot be sent. Pure; never throws.
 *
 * @param payload JSON text as the ERP wrote it
 * @param submissionId the value of `${submission.id}`
 */
export function mapRecord(mapping: Mapping, payload: string, submissionId: string): MappingResult {
  const read = readPayload(payload)
  if (read.kind === 'invalid')
    return { kind: 'invalid', errors: [{ field: 'payload', from: '', kind: read.fault, message: read.message }] }
  const fields: MappedField[] = []
  const errors: FieldError[] = []
  for (const field of mapping.fields) {
    const outcome = mapField(field, read.payload)
    if (outcome.kind === 'invalid')
      errors.push({ field: field.name, from: field.from ?? '', kind: outcome.fault, message: outcome.message })
    else fields.push({ field: field.name, from: field.from, source: outcome.source, value: outcome.value })
  }
  if (errors.length > 0) return { kind: 'invalid', errors }
  const values = fields.map((field) => field.value)
  const body = mapping.body(values, submissionId) ?? '{}'
  return { kind: 'mapped', body, fields, amounts: amountsOf(mapping, values) }
}

/** @param values JSON text per field; an amount has quotes if it is sent as text */
function amountsOf({ fields }: Mapping, values: readonly (string | null)[]): Amounts {
  return Object.fromEntries(
    fields.flatMap(({ name, isAmount }, i) => (isAmount && values[i] ? [[name, values[i].replaceAll('"', '')]] : [])),
  )
}

type FieldOutcome = { kind: 'value'; source: string | null; value: string | null } | Invalid

/** Null in the payload counts as missing. A default replaces only a missing value, never a wrong or an empty value. */
function mapField(field: Field, payload: PayloadObject): FieldOutcome {
  const read = field.read(payload)
  if (read.kind === 'invalid') return read
  const isNull = read.kind === 'found' && read.value === null
  if (read.kind === 'missing' || read.value === null) {
    if (field.constantOrDefault === null && field.required)
      return isNull ? invalid('is null', 'null') : invalid('is missing', 'missing')
    return { kind: 'value', source: isNull ? 'null' : null, value: field.constantOrDefault }
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
  if (value === '' && field.required) return invalid('is empty', 'empty')
  const converted = field.convert(value, value === found ? source : writeJson(value))
  return converted.kind === 'invalid' ? converted : { kind: 'value', source, value: converted.json }
}

function lookUp(table: ReadonlyMap<string, string>, value: PayloadValue): string | Invalid {
  if (typeof value === 'object' && !isExactNumber(value))
    return invalid(`is ${nameJsonKind(value)}, which a lookup table cannot hold`, 'wrong_type')
  const text = isExactNumber(value) ? value.rawJSON : String(value)
  return (
    table.get(text) ??
    invalid(
      `is not in the lookup table: ${quoteForMessage(text)}${didYouMeanHint(text, table.keys())}`,
      'not_in_lookup',
    )
  )
}

export type MappedOrRefusedRecord =
  | {
      kind: 'mapped'
      resource: Resource
      tracked: boolean
      sendsOwnId: boolean
      /** JSON text. */
      body: string
      fields: readonly MappedField[]
      amounts: Amounts
    }
  | {
      kind: 'refused'
      resource: Resource | null
      /** All errors in one line. */
      reason: string
      errors: readonly FieldError[]
    }

/** Never throws, so that an unexpected error rejects only its own record. */
export function mapOutboxRecord(
  mappings: Mappings,
  record: Pick<OutboxRecord, 'type' | 'payload' | 'unreadable' | 'noRecord'>,
  submissionId: string,
): MappedOrRefusedRecord {
  const mapping = mappings.get(record.type)
  if (mapping === undefined) {
    const known = [...mappings.keys()].sort()
    return refused(
      null,
      `no mapping file for the type "${record.type}" (there are: ${known.join(', ')})${didYouMeanHint(record.type, known)}`,
      'no_mapping',
    )
  }
  if ((record.noRecord ?? null) !== null) return refused(mapping, `nothing is sent for this row: ${record.noRecord}`)
  if (record.payload === null) return refused(mapping, record.unreadable ?? 'the payload is missing')
  try {
    return mapPayload(mapping, record.payload, submissionId)
  } catch (error) {
    return refused(mapping, `the mapping failed: ${(error as Error).message}`)
  }
}

function mapPayload(mapping: Mapping, payload: string, submissionId: string): MappedOrRefusedRecord {
  const { endpoint: resource, track: tracked, sendsSubmissionId: sendsOwnId } = mapping
  const mapped = mapRecord(mapping, payload, submissionId)
  if (mapped.kind === 'mapped') return { ...mapped, resource, tracked, sendsOwnId }
  const reason = mapped.errors.map(({ field, from, message }) => `${field}${from ? ` (from ${from})` : ''} ${message}`)
  return { kind: 'refused', resource, reason: reason.join('; '), errors: mapped.errors }
}

function refused(mapping: Mapping | null, reason: string, kind: ValueFault = 'invalid'): MappedOrRefusedRecord {
  return {
    kind: 'refused',
    resource: mapping?.endpoint ?? null,
    reason,
    errors: [{ field: 'payload', from: '', kind, message: reason }],
  }
}

/** Maps a row that enters the ledger. */
export function toCapturedRecord(mappings: Mappings, row: OutboxRecord): CapturedRecord {
  const id = randomUUIDv7()
  const { unreadable: _, noRecord = null, ...record } = row
  const kept = { ...record, id, idempotencyKey: randomUUID() }
  const unmapped = { ...kept, body: null, tracked: true, sendsOwnId: false }
  // Without a payload, a replay has to read the document again.
  if (noRecord !== null) return { ...unmapped, payload: null, resource: null, error: null, discarded: noRecord }
  const mapped = mapOutboxRecord(mappings, row, id)
  if (mapped.kind === 'refused')
    return { ...unmapped, resource: mapped.resource, error: mapped.reason, fieldErrors: mapped.errors }
  const { resource, tracked, sendsOwnId, body, amounts } = mapped
  return { ...kept, resource, tracked, sendsOwnId, body, amounts, error: null }
}

/** For a row that cannot be read. */
export const toRejectedRecord = (outboxId: string, error: string): CapturedRecord => ({
  id: randomUUIDv7(),
  outboxId,
  type: '',
  key: null,
  resource: null,
  payload: null,
  body: null,
  tracked: true,
  sendsOwnId: false,
  idempotencyKey: randomUUID(),
  createdAt: null,
  created: null,
  error,
})
