import type { RecordName } from '../ledger/audit/readOperatorActs.ts'
import {
  findSubmissions,
  type ListedSubmission,
  type SubmissionReference,
} from '../ledger/operator/selectSubmissions.ts'
import { isRowWaiting, readRecordWithoutQueriedContent } from '../outbox/readRows.ts'
import { isRowBeforeStart } from '../outbox/startPosition.ts'
import { quoteForShell } from '../plainText.ts'
import type { Database } from '../postgres/database.ts'
import { type Databases, withOutbox } from './databases.ts'

export type FoundSubmissions =
  | { kind: 'found'; submissions: ListedSubmission[] }
  | { kind: 'missing'; problems: string[] }
  | { kind: 'invalid'; problems: string[] }

export const referenceHelp =
  "the submission's id, its first or last 6 or more hex digits, outbox:N for the outbox row N, transaction:ID, key:K, or an idempotency key"

export const submissionIdPattern = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

export function parseRecordOption(text: string | undefined, problems: string[]): RecordName | null {
  if (text === undefined) return null
  const name = text.trim()
  if (/^outbox:./s.test(name)) return { outboxId: name.slice('outbox:'.length) }
  if (submissionIdPattern.test(name)) return { id: name.toLowerCase() }
  problems.push(`--record ${text}: give a whole submission id, or outbox:N for the outbox row N`)
  return null
}

const prefixes = ['outbox', 'transaction', 'key'] as const

/**
 * Returns what a name may mean, the likeliest first. Hex digits may also be the end of an id, because ids made at one
 * time begin alike. Other texts without a prefix are transaction ids.
 */
export function parsePossibleReferences(name: string): SubmissionReference[] {
  const [, prefix = '', rest = ''] = /^([a-z]+):(.*)$/s.exec(name) ?? []
  const kind = prefixes.find((each) => each === prefix)
  if (kind !== undefined) return rest === '' ? [] : [{ kind, value: rest }]
  return name.trim() === '' ? [] : [...readHexDigits(name), { kind: 'transaction', value: name }]
}

function readHexDigits(name: string): SubmissionReference[] {
  const digits = name.replaceAll('-', '').toLowerCase()
  if (!/^[0-9a-f]{6,32}$/.test(digits)) return []
  const range = { kind: 'range', from: digits.padEnd(32, '0'), to: digits.padEnd(32, 'f') } as const
  return digits.length === 32
    ? [range, { kind: 'idempotency-key', value: digits }]
    : [range, { kind: 'ending', value: digits }]
}

export interface ReferencedSubmissions {
  by: SubmissionReference['kind']
  submissions: ListedSubmission[]
}

export async function findSubmissionsByReference(
  ledger: Database,
  referenceText: string,
  limit: number,
): Promise<ReferencedSubmissions | null> {
  for (const reference of parsePossibleReferences(referenceText)) {
    const submissions = await findSubmissions(ledger, reference, limit)
    if (submissions.length > 0) return { by: reference.kind, submissions }
  }
  return null
}

export async function findEachSubmissionByReference(
  ledger: Database,
  referenceTexts: readonly string[],
): Promise<FoundSubmissions> {
  const found = new Map<string, ListedSubmission>()
  const missing: string[] = []
  const wrong: string[] = []
  const ids = referenceTexts.filter((name) => submissionIdPattern.test(name)).map((name) => name.toLowerCase())
  const byId = ids.length === 0 ? [] : await findSubmissions(ledger, { kind: 'ids', ids }, ids.length)
  for (const submission of byId) found.set(submission.id, submission)
  for (const name of referenceTexts) {
    if (found.has(name.toLowerCase())) continue
    const named = await findSubmissionsByReference(ledger, name, 2)
    const [first, second] = named?.submissions ?? []
    if (first !== undefined && second === undefined) found.set(first.id, first)
    else if (named !== null && first !== undefined && second !== undefined)
      wrong.push(severalMessage(name, named.by, [first, second]))
    else if (isName(name)) missing.push(`there is no record ${name}`)
    else
      wrong.push(
        `there is no record ${name}: give ${referenceHelp}. \`outboxd list --containing TEXT\` searches all records`,
      )
  }
  if (wrong.length > 0) return { kind: 'invalid', problems: [...wrong, ...missing] }
  if (missing.length > 0) return { kind: 'missing', problems: missing }
  return { kind: 'found', submissions: [...found.values()] }
}

/** True for a text with a prefix, or of hex digits. */
function isName(name: string): boolean {
  const [likeliest] = parsePossibleReferences(name)
  return likeliest !== undefined && (likeliest.kind !== 'transaction' || name.startsWith('transaction:'))
}

function severalMessage(
  name: string,
  by: SubmissionReference['kind'],
  [first, second]: [ListedSubmission, ListedSubmission],
): string {
  const more =
    by === 'range' || by === 'ending' ? 'give more digits' : `\`outboxd show ${quoteForShell(name)}\` lists them`
  return `several records match ${name}, such as ${first.id} and ${second.id}: ${more}`
}

/** @param name a reference, or an outbox row's id without prefix */
export async function explainMissingRecord(databases: Databases, name: string): Promise<string> {
  const [reference] = parsePossibleReferences(name)
  const outboxId = reference?.kind === 'outbox' ? reference.value : name
  return (
    (await explainMissingRecordOfRow(databases, outboxId)) ??
    `there is no record ${name}, and the outbox has no row ${outboxId}`
  )
}

export async function explainMissingRecordOfRow(databases: Databases, outboxId: string): Promise<string | null> {
  const record = await withOutbox(databases, (outbox) => readRecordWithoutQueriedContent(outbox, outboxId))
  if (record === null) return null
  const isWaiting = await withOutbox(databases, async (outbox) =>
    (await isRowBeforeStart(outbox, outboxId)) ? false : isRowWaiting(outbox, outboxId),
  ).catch(() => true)
  return isWaiting
    ? `the row ${outboxId} waits in the outbox and is not captured yet. \`outboxd status\` says why, \`outboxd map --outbox ${quoteForShell(outboxId)}\` shows its request`
    : `the ledger has no record of the row ${outboxId}, and it is not sent: it does not wait, lies before the start position, or its record was deleted after RETENTION_DAYS. If the ledger has lost it, \`outboxd recover --dry-run\` shows it`
}
