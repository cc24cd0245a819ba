import type { SubmissionReference } from '../ledger/operator/findSubmissions.ts'
import type { ListedSubmission } from '../ledger/operator/selectSubmissions.ts'
import type { OperatorStore } from '../store/operatorStore.ts'

/** What came of looking for the submissions that a person named. */
export type Found =
  | { kind: 'found'; submissions: ListedSubmission[] }
  | { kind: 'missing'; problems: string[] }
  | { kind: 'invalid'; problems: string[] }

export const referenceHelp = "the submission's id, its first 6 or more hex digits, or outbox:N for the outbox row N"

/** Reads how a person names a submission; null where it is no name. */
export function readReference(text: string): SubmissionReference | null {
  if (text.startsWith('outbox:') && text.length > 'outbox:'.length)
    return { kind: 'outbox', outboxId: text.slice('outbox:'.length) }
  const digits = text.replaceAll('-', '').toLowerCase()
  if (!/^[0-9a-f]{6,32}$/.test(digits)) return null
  return { kind: 'range', from: digits.padEnd(32, '0'), to: digits.padEnd(32, 'f') }
}

/** Finds each submission by the name given for it; all of them, or none and what is wrong. */
export async function findAll(store: Pick<OperatorStore, 'find'>, names: readonly string[]): Promise<Found> {
  const found = new Map<string, ListedSubmission>()
  const missing: string[] = []
  const wrong: string[] = []
  for (const name of names) {
    const reference = readReference(name)
    if (reference === null) {
      wrong.push(`${name} names no submission: give ${referenceHelp}`)
      continue
    }
    const [first, second] = await store.find(reference, 2)
    if (first === undefined) missing.push(`there is no submission ${name}`)
    else if (second !== undefined)
      wrong.push(`${name} fits ${first.id} and ${second.id}, and perhaps more: give more digits`)
    else found.set(first.id, first)
  }
  if (wrong.length > 0) return { kind: 'invalid', problems: [...wrong, ...missing] }
  if (missing.length > 0) return { kind: 'missing', problems: missing }
  return { kind: 'found', submissions: [...found.values()] }
}
