import type { Amounts, OutboxRecord } from '../model.ts'
import type { Resource } from '../resources.ts'
import { didYouMean } from '../yaml/nearestWord.ts'
import type { Mappings } from './loadMappings.ts'
import type { FieldError, MappedField, Mapping } from './mapping.ts'
import { mapRecord } from './mapRecord.ts'

/** What becomes of an outbox row: a frozen request, or why there can be none. */
export type MappedRecord =
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
      /** Null where no mapping says where it would have gone. */
      resource: Resource | null
      /** Every error in one line, for the person who mends it. */
      reason: string
      errors: readonly FieldError[]
    }

/**
 * Maps an outbox row by the mapping of its type, for the daemon and for whoever asks what the daemon would make of it.
 * Never throws: what a mapping did not foresee is its record's own trouble too.
 */
export function mapOutboxRecord(
  mappings: Mappings,
  record: Pick<OutboxRecord, 'type' | 'payload' | 'unreadable'>,
  submissionId: string,
): MappedRecord {
  const mapping = mappings.get(record.type)
  if (mapping === undefined) {
    const known = [...mappings.keys()].sort()
    return refused(
      null,
      `no mapping file for the type "${record.type}" (there are: ${known.join(', ')})${didYouMean(record.type, known)}`,
    )
  }
  if (record.payload === null) return refused(mapping, record.unreadable ?? 'the payload is missing')
  try {
    return mapPayload(mapping, record.payload, submissionId)
  } catch (error) {
    return refused(mapping, `mapping it failed: ${(error as Error).message}`)
  }
}

function mapPayload(mapping: Mapping, payload: string, submissionId: string): MappedRecord {
  const { endpoint: resource, track: tracked, sendsSubmissionId: sendsOwnId } = mapping
  const mapped = mapRecord(mapping, payload, submissionId)
  if (mapped.kind === 'mapped') return { ...mapped, resource, tracked, sendsOwnId }
  const reason = mapped.errors.map(({ field, from, message }) => `${field}${from ? ` (from ${from})` : ''} ${message}`)
  return { kind: 'refused', resource, reason: reason.join('; '), errors: mapped.errors }
}

/** A row that is refused as a whole, whatever its fields. */
function refused(mapping: Mapping | null, reason: string): MappedRecord {
  return {
    kind: 'refused',
    resource: mapping?.endpoint ?? null,
    reason,
    errors: [{ field: 'payload', from: '', message: reason }],
  }
}
