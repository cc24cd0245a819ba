import type { Mappings } from '../mapping/loadMappings.ts'
import { mapRecord } from '../mapping/mapRecord.ts'
import type { OutboxRecord } from '../model.ts'
import { storableText } from '../postgres/storableText.ts'
import type { Mapped } from './capture/capturedRecord.ts'

/**
 * Maps an outbox row by the mapping of its type; refuses it, in words that Postgres can hold, where that cannot be done.
 * Never throws: what a mapping did not foresee is its record's own trouble too.
 */
export function mapOutboxRecord(mappings: Mappings, record: OutboxRecord, submissionId: string): Mapped {
  try {
    const mapped = mapByType(mappings, record, submissionId)
    return mapped.kind === 'refused' ? { ...mapped, reason: storableText(mapped.reason) } : mapped
  } catch (error) {
    const resource = mappings.get(record.type)?.endpoint ?? null
    return { kind: 'refused', resource, reason: storableText(`mapping it failed: ${(error as Error).message}`) }
  }
}

function mapByType(mappings: Mappings, record: OutboxRecord, submissionId: string): Mapped {
  const mapping = mappings.get(record.type)
  if (!mapping) {
    const known = [...mappings.keys()].sort().join(', ')
    return {
      kind: 'refused',
      resource: null,
      reason: `no mapping file for the type "${record.type}" (there are: ${known})`,
    }
  }
  const resource = mapping.endpoint
  if (record.payload === null) {
    return { kind: 'refused', resource, reason: record.unreadable ?? 'the payload is missing' }
  }
  const mapped = mapRecord(mapping, record.payload, submissionId)
  if (mapped.kind === 'mapped') {
    const { track: tracked, sendsSubmissionId: sendsOwnId } = mapping
    return { kind: 'mapped', resource, tracked, sendsOwnId, body: mapped.body }
  }
  const reason = mapped.errors.map(({ field, from, message }) => `${field}${from ? ` (from ${from})` : ''} ${message}`)
  return { kind: 'refused', resource, reason: reason.join('; ') }
}
