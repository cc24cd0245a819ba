import type { Amounts } from '../model.ts'
import type { Resource } from '../resources.ts'
import type { Invalid, PayloadObject, PayloadValue } from '../yaml/exactJson.ts'
import type { FieldSpec } from './mappingSchema.ts'

/** One mapping file, checked and compiled: what a record of `type` becomes (docs/start/mapping.md). */
export interface Mapping {
  /** Outbox rows of this type. */
  readonly type: string
  /** Where the request goes. */
  readonly endpoint: Resource
  /** False: done as soon as the service accepts it; nobody polls. */
  readonly track: boolean
  /** True where the body contains `${submission.id}`: the service then knows the record by our id. */
  readonly sendsSubmissionId: boolean
  /** The query that gives the payload; null: it stands in the outbox row. */
  readonly source: SourceQuery | null
  readonly fields: readonly Field[]
  readonly body: Render
  /** Of what the file means: instances compare it. */
  readonly digest: string
}

/** The entry `source:` of a mapping file. */
export interface SourceQuery {
  /** One SELECT without a semicolon at its end. $1 is the list of ids. */
  readonly sql: string
  /** How messages name the file. */
  readonly file: string
}

/** One entry under `fields:`, compiled. */
export interface Field {
  readonly name: string
  /** The path as the file says it; null for a constant. */
  readonly from: string | null
  readonly read: ReadPath
  readonly required: boolean
  readonly trim: boolean
  /** Value table: the client's text to the JSON text to send; null: no table. */
  readonly lookup: ReadonlyMap<string, string> | null
  /** JSON text of the constant, or of the default for a missing or null value; null: neither. */
  readonly fallback: string | null
  /** What the file says of the type. */
  readonly spec: Pick<FieldSpec, 'type' | 'maxLength' | 'values' | 'as' | 'round' | 'timezone'>
  /** Of a decimal type. */
  readonly isAmount: boolean
  /** An array cannot stand inside a longer text. */
  readonly isArray: boolean
  readonly convert: Convert
}

/** Follows a path. `invalid`: something on the way is neither missing nor what the path expects there. */
export type ReadPath = (payload: PayloadObject) => PayloadRead
export type PayloadRead = { kind: 'found'; value: PayloadValue } | { kind: 'missing' } | Invalid

/**
 * Turns a client's value, neither missing nor null, into the JSON text to send.
 *
 * @param source JSON text of `value`, with its own digits
 */
export type Convert = (value: PayloadValue, source: string) => Converted
export type Converted = { kind: 'value'; json: string } | Invalid

/**
 * Writes a part of the body as JSON text; null: the part is left out, because its field is missing.
 *
 * @param values       JSON text per field, in the order of `Mapping.fields`; null: missing
 * @param submissionId the plain id
 */
export type Render = (values: readonly (string | null)[], submissionId: string) => string | null

export type Mapped =
  | {
      kind: 'mapped' /** The frozen request, JSON text. */
      body: string
      fields: readonly MappedField[]
      amounts: Amounts
    }
  | { kind: 'invalid' /** Every field's error, never empty. */; errors: readonly FieldError[] }

/** How one field went: for people to look at before anything is sent. */
export interface MappedField {
  readonly field: string
  /** The path in the payload; null for a constant. */
  readonly from: string | null
  /** JSON text as the client wrote it (insignificant spaces aside); null where the payload has none. */
  readonly source: string | null
  /** JSON text sent; null where an optional field is missing and its key left out. */
  readonly value: string | null
}

/** Why a record does not map. `message` continues a sentence that begins with the field: "total_amount is missing". */
export interface FieldError {
  /** The service's name of the field, or `payload` where the payload as a whole cannot be read. */
  readonly field: string
  /** The path in the payload; empty for the payload as a whole. */
  readonly from: string
  readonly message: string
}
