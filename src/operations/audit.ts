import type { UnkeptAmounts } from '../ledger/audit/eraseRecords.ts'
import type { AuditedAct } from '../ledger/audit/readActs.ts'
import type { AuditEntry, AuditedRecord, AuditStep, PrunedRecord } from '../ledger/audit/readAudit.ts'
import { loadMappings, type Mappings } from '../mapping/loadMappings.ts'
import { mapOutboxRecord } from '../mapping/mapOutboxRecord.ts'
import type { Amounts } from '../model.ts'

/** A line of an audit: what its command prints in each of its forms, and the console shows and hands out. */
export type AuditLine = (AuditedLine & { amounts: Amounts | null; hands: AuditStep[] }) | PrunedRecord | AuditedAct
type AuditedLine = Omit<AuditedRecord, 'payload' | 'body'>

/** The mapping files, or none where they are broken: an audit needs them only for records that are older than the amounts that the log keeps. */
export function mappingsAtHand(folder: string): Mappings {
  try {
    return loadMappings(folder)
  } catch {
    return new Map()
  }
}

/** Adds what a reader wants to know of a record: its amounts, and which of its steps persons took. Pure. */
export function auditLine(entry: AuditEntry, mappings: Mappings): AuditLine {
  if (entry.kind !== 'record') return entry
  const { payload: _, body: __, ...record } = entry
  return { ...record, amounts: amountsOf(entry, mappings), hands: entry.steps.filter(isByPerson) }
}

const isByPerson = ({ who }: AuditStep) => who.startsWith('operator')

/**
 * The amounts of the request that was made last. A record that was captured before they were kept is mapped once more, and believed where
 * that makes the very request that is frozen; null where nobody can tell any more.
 */
function amountsOf({ id, type, steps, payload, body }: AuditedRecord, mappings: Mappings): Amounts | null {
  const kept = steps.findLast(({ amounts }) => amounts !== null)?.amounts
  if (kept) return kept
  return payload === null || body === null ? null : contentAmounts({ id, type, payload, body }, mappings)
}

/** Of a record whose amounts its log does not have: those of its payload, where that makes the very body that is frozen. */
export function contentAmounts({ id, type, payload, body }: UnkeptAmounts, mappings: Mappings): Amounts | null {
  const mapped = mapOutboxRecord(mappings, { type, payload, unreadable: null }, id)
  return mapped.kind === 'mapped' && mapped.body === body ? mapped.amounts : null
}
