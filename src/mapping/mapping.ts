import type { Amounts } from '../model/outbox.ts'
import type { Resource } from '../resources.ts'
import type { Invalid, PayloadObject, PayloadValue, ValueFault } from '../yaml/exactJson.ts'
import type { FieldSpec } from './mappingSchema.ts'

/** One mapping file, checked and compiled (docs/start/mapping.md). */
export interface Mapping {
  readonly type: string
  readonly endpoint: Resource
  /** False if a record is complete when the service accepts it, without polls. */
  readonly track: boolean
  /** True if the body contains `${submission.id}`, so that the service knows the record by our id. */
  readonly sendsSubmissionId: boolean
  /** Null if the outbox row has the payload. */
  readonly source: SourceQuery | null
  /** Null if a row is the record. */
  readonly document: DocumentTable | null
  readonly fields: readonly Field[]
  readonly body: RenderBodyPart
  /** What lists of the console show of a payload. */
  readonly list: readonly ListColumn[]
  /** A digest of the file's values, without `list`, layout and comments. Instances compare their digests. */
  readonly digest: string
}

export interface SourceQuery {
  /** One SELECT without a semicolon at its end. $1 is the list of ids; for keys of several columns, a JSON list of objects. */
  readonly sql: string
  readonly file: string
}

export interface ListColumn {
  readonly heading: string
  readonly read: ReadPath
  readonly isAmount: boolean
}

/** Rows of the type stand for documents: a change of one writes its key to the outbox. */
export interface DocumentTable {
  /** As in SQL. */
  readonly table: string
  /** Names as in the catalog. */
  readonly key: readonly string[]
  /** SQL about the row `h`; null if every document is sent. */
  readonly condition: string | null
}

export interface Field {
  readonly name: string
  /** The path in the payload; null for a constant. */
  readonly from: string | null
  readonly read: ReadPath
  readonly required: boolean
  readonly trim: boolean
  /** The JSON text to send for each text in the payload; null if the field has no lookup. */
  readonly lookup: ReadonlyMap<string, string> | null
  /** JSON text of the constant or the default; null if the field has neither. */
  readonly constantOrDefault: string | null
  readonly spec: Pick<FieldSpec, 'type' | 'maxLength' | 'values' | 'as' | 'round' | 'decimal_separator' | 'timezone'>
  readonly isAmount: boolean
  readonly convert: ConvertValue
}

export function describeField(field: Field): string {
  const { spec, from, trim, lookup, constantOrDefault, required } = field
  const parts = [
    spec.type,
    spec.maxLength === undefined ? null : `at most ${spec.maxLength} characters`,
    spec.values === undefined ? null : `one of ${spec.values.join(', ')}`,
    trim ? 'white space at both ends removed' : null,
    lookup === null ? null : `translated by a lookup of ${lookup.size} values`,
    spec.decimal_separator === undefined ? null : `with "${spec.decimal_separator}" before the decimals of a text`,
    spec.round === undefined ? null : `rounded ${spec.round}`,
    spec.as === undefined ? null : 'sent as text',
    spec.type === 'datetime' ? describeZone(spec.timezone) : null,
    constantOrDefault === null ? null : describeConstantOrDefault(constantOrDefault, from === null),
    required ? 'required' : null,
  ]
  return parts.filter((part) => part !== null).join('; ')
}

const describeZone = (zone: string | undefined) =>
  zone === undefined ? 'sent in UTC' : `converted from ${zone} to UTC`

const describeConstantOrDefault = (json: string, isConstant: boolean) =>
  isConstant ? `always ${json}` : `${json} if it is missing`

/** The result is invalid if a value on the way has the wrong kind. */
export type ReadPath = (payload: PayloadObject) => PayloadRead
export type PayloadRead = { kind: 'found'; value: PayloadValue } | { kind: 'missing' } | Invalid

/**
 * Converts a value, neither missing nor null, to the JSON text to send.
 * @param source JSON text of `value`, with its own digits
 */
export type ConvertValue = (value: PayloadValue, sourceJson: string) => ConversionResult
export type ConversionResult = { kind: 'value'; json: string } | Invalid

/**
 * Returns JSON text, or null to leave the part out, because its value is missing.
 * @param values JSON text per field, in the order of `Mapping.fields`; null if the value is missing
 * @param submissionId the submission's id, not as JSON
 */
export type RenderBodyPart = (values: readonly (string | null)[], submissionId: string) => string | null

export type MappingResult =
  | {
      kind: 'mapped' /** The request's body, JSON text. */
      body: string
      fields: readonly MappedField[]
      amounts: Amounts
    }
  | { kind: 'invalid' /** The errors of all fields; never empty. */; errors: readonly FieldError[] }

/** For `outboxd map`. */
export interface MappedField {
  readonly field: string
  /** The path in the payload; null for a constant. */
  readonly from: string | null
  /** JSON text as in the payload; null if the value is missing. */
  readonly source: string | null
  /** The JSON text to send; null if an optional field is missing. */
  readonly value: string | null
}

/** `message` continues a sentence that begins with the field: "total_amount is missing". */
export interface FieldError {
  /** The field's name under `fields:`, or `payload` if the payload as a whole cannot be read. */
  readonly field: string
  /** The path in the payload; empty for the payload as a whole. */
  readonly from: string
  readonly kind: ValueFault
  readonly message: string
}
