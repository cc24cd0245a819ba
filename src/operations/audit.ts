import type { UnkeptAmounts } from '../ledger/audit/eraseRecords.ts'
import type { AuditedAct } from '../ledger/audit/readActs.ts'
import type { AuditEntry, AuditedRecord, AuditStep, PrunedRecord } from '../ledger/audit/readAudit.ts'
import { loadMappings, type Mappings } from '../mapping/loadMappings.ts'
import { mapOutboxRecord } from '../mapping/mapRecord.ts'
import type { Amounts, State } from '../model.ts'

/** A line of an audit: what its command prints in each of its forms, and the console shows and hands out. */
export type AuditLine =
  | (AuditedLine & { amounts: Amounts | null; customer: string | null; currency: string | null; hands: AuditStep[] })
  | PrunedRecord
  | AuditedAct
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
  const { payload: _, body, ...record } = entry
  const amounts = amountsOf(entry, mappings)
  return { ...record, amounts, ...partiesOf(body, amounts), hands: entry.steps.filter(isByPerson) }
}

/**
 * The customer and the currency that a request names. An amount without a currency code is in euro (docs/interface.md, 2.5); of a request that
 * was emptied neither is known.
 */
function partiesOf(body: string | null, amounts: Amounts | null): { customer: string | null; currency: string | null } {
  if (body === null) return { customer: null, currency: null }
  const request = readObject(body)
  const named = textOf(request.currency) ?? textOf(readObject(request.data).currency)
  const hasAmounts = Object.keys(amounts ?? {}).length > 0
  return { customer: textOf(request.customerId), currency: named ?? (hasAmounts ? 'EUR' : null) }
}

function readObject(value: unknown): Record<string, unknown> {
  try {
    const read: unknown = typeof value === 'string' ? JSON.parse(value) : value
    return typeof read === 'object' && read !== null ? (read as Record<string, unknown>) : {}
  } catch {
    return {}
  }
}

const textOf = (value: unknown): string | null => (typeof value === 'string' && value !== '' ? value : null)

/** The names of all amounts that the mapping files know, in order. Pure. */
export const amountNames = (mappings: Mappings): string[] =>
  [
    ...new Set(
      [...mappings.values()].flatMap(({ fields }) => fields.flatMap(({ name, isAmount }) => (isAmount ? [name] : []))),
    ),
  ].toSorted()

/** The records of a month, type, outcome and currency, and their amounts added up. */
export interface AuditSum {
  /** Of the end, in UTC, as 2026-11; null: not ended. */
  month: string | null
  type: string
  outcome: State
  currency: string | null
  records: number
  /** Records of which no amount is known: they were pruned, emptied before amounts were kept, or never mapped. */
  withoutAmounts: number
  /** By name, exact. */
  amounts: Amounts
}

/** Adds an audit up. */
export interface AuditSums {
  add(line: AuditLine): void
  /** In the order of month, type, outcome and currency; what has not ended comes last. */
  rows(): AuditSum[]
}

export function createAuditSums(): AuditSums {
  const sums = new Map<string, AuditSum>()
  return {
    add(line) {
      if (line.kind === 'act') return
      const month = line.endedMs === null ? null : new Date(line.endedMs).toISOString().slice(0, 7)
      const { amounts: given, currency } = line.kind === 'pruned' ? { amounts: null, currency: null } : line
      const { type, state: outcome } = line
      const group = JSON.stringify([month ?? '9', type, outcome, currency ?? ''])
      const none: AuditSum = { month, type, outcome, currency, records: 0, withoutAmounts: 0, amounts: {} }
      const { records, withoutAmounts, amounts, ...sum } = sums.get(group) ?? none
      const added: Record<string, string> = { ...amounts }
      const decimals = Object.entries(given ?? {}).filter(([, value]) => /^-?\d+(\.\d+)?$/.test(value))
      for (const [name, value] of decimals) added[name] = addDecimals(added[name] ?? '0', value)
      sums.set(group, {
        ...{
          ...sum,
          records: records + 1,
          withoutAmounts: withoutAmounts + (decimals.length === 0 ? 1 : 0),
          amounts: added,
        },
      })
    },
    rows: () => [...sums].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, sum]) => sum),
  }
}

/** Adds decimals by their digits, with as many decimals as the longer one has. */
export function addDecimals(a: string, b: string): string {
  const scale = Math.max(decimalsOf(a), decimalsOf(b))
  const scaled = (text: string) => BigInt(text.replace('.', '') + '0'.repeat(scale - decimalsOf(text)))
  const sum = scaled(a) + scaled(b)
  const digits = String(sum < 0n ? -sum : sum).padStart(scale + 1, '0')
  const whole = digits.slice(0, digits.length - scale)
  return `${sum < 0n ? '-' : ''}${whole}${scale === 0 ? '' : `.${digits.slice(-scale)}`}`
}

const decimalsOf = (text: string) => text.split('.')[1]?.length ?? 0

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
