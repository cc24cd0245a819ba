import type { RecordName } from '../ledger/audit/readOperatorActs.ts'
import { readCaptureObstacles } from '../ledger/capture.ts'
import {
  findSubmissions,
  type ListedSubmission,
  type SubmissionReference,
} from '../ledger/operator/selectSubmissions.ts'
import type { OutboxRecord } from '../model/outbox.ts'
import { locateUncapturedRow, readRecordWithoutQueriedContent } from '../outbox/readRows.ts'
import { quoteForShell } from '../plainText.ts'
import type { Database } from '../postgres/database.ts'
import { type Databases, withOutbox } from './databases.ts'

export type FoundSubmissions =
  | { kind: 'found'; submissions: ListedSubmission[] }
  | { kind: 'missing'; problems: string[] }
  | { kind: 'invalid'; problems: string[] }

export const referenceHelp =
  "the submission's id, its first or last 6 or more hex digits, outbox:N for the outbox row N, transaction:ID, key:K, or an idempotency key"

export const searchHelp = `${referenceHelp}; the row's id and the key also without a prefix`

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
function parsePossibleReferences(name: string): SubmissionReference[] {
  const [, prefix = '', rest = ''] = /^([a-z]+):(.*)$/s.exec(name) ?? []
  const kind = prefixes.find((each) => each === prefix)
  if (kind !== undefined) return rest === '' ? [] : [{ kind, value: rest }]
  return name.trim() === '' ? [] : [...readHexDigits(name), { kind: 'transaction', value: name }]
}

function readHexDigits(name: string): SubmissionReference[] {
  const digits = name.replaceAll('-', '').toLowerCase()
  if (!/^[0-9a-f]{6,32}$/.test(digits)) return []
  const range = { kind: 'range', value: [digits.padEnd(32, '0'), digits.padEnd(32, 'f')] } as const
  return digits.length === 32
    ? [range, { kind: 'idempotency-key', value: digits }]
    : [range, { kind: 'ending', value: digits }]
}

/** Returns what a word may mean where nothing is changed: also an outbox row's id or a key, without a prefix. */
function parseSearchedReferences(word: string): SubmissionReference[] {
  const references = parsePossibleReferences(word)
  const [likeliest] = references
  if (likeliest === undefined || hasPrefix(word)) return references
  return [...references, { kind: 'outbox', value: word }, { kind: 'key', value: word }]
}

const hasPrefix = (word: string): boolean => prefixes.some((prefix) => word.startsWith(`${prefix}:`))

/**
 * Finds the records of any state that a word may mean, the likeliest first, and of a key the newest first. The console
 * and `outboxd show` share this search.
 * @returns null if the word names nothing, such as `outbox:`
 */
export async function searchRecords(ledger: Database, word: string, limit: number): Promise<ListedSubmission[] | null> {
  const references = parseSearchedReferences(hasPrefix(word) ? word : word.trim())
  if (references.length === 0) return null
  const found = new Map<string, ListedSubmission>()
  for (const reference of references) {
    for (const submission of await findSubmissions(ledger, reference, limit)) found.set(submission.id, submission)
    // A record's whole id means this record only.
    if (found.has(word.trim().toLowerCase())) break
  }
  return [...found.values()].slice(0, limit)
}

export async function findEachSubmissionByReference(
  ledger: Database,
  referenceTexts: readonly string[],
): Promise<FoundSubmissions> {
  const found = new Map<string, ListedSubmission>()
  const missing: string[] = []
  const wrong: string[] = []
  const ids = referenceTexts.filter((name) => submissionIdPattern.test(name)).map((name) => name.toLowerCase())
  const byId = ids.length === 0 ? [] : await findSubmissions(ledger, { kind: 'ids', value: ids }, ids.length)
  for (const submission of byId) found.set(submission.id, submission)
  for (const name of referenceTexts) {
    if (found.has(name.toLowerCase())) continue
    const [first, second] = await findByLikeliestReference(ledger, name)
    if (first !== undefined && second === undefined) found.set(first.id, first)
    else if (first !== undefined && second !== undefined)
      wrong.push(
        `several records match ${name}, such as ${first.id} and ${second.id}: \`outboxd show ${quoteForShell(name)}\` lists them`,
      )
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

/** A change takes the likeliest meaning of a name only, at most two records of it. */
async function findByLikeliestReference(ledger: Database, name: string): Promise<ListedSubmission[]> {
  for (const reference of parsePossibleReferences(name)) {
    const submissions = await findSubmissions(ledger, reference, 2)
    if (submissions.length > 0) return submissions
  }
  return []
}

/** True for a text with a prefix, or of hex digits. */
function isName(name: string): boolean {
  const [likeliest] = parsePossibleReferences(name)
  return likeliest !== undefined && (likeliest.kind !== 'transaction' || name.startsWith('transaction:'))
}

/** Says why a search found no record: its row waits, the ledger has lost it, or nothing has this name. */
export async function explainMissingRecord(databases: Databases, word: string): Promise<string> {
  const [reference] = parsePossibleReferences(word)
  const isOtherKind = hasPrefix(word) && reference?.kind !== 'outbox'
  if (isOtherKind) return `there is no record ${word}`
  const outboxId = reference?.kind === 'outbox' ? reference.value : word.trim()
  const ofRow = await explainMissingRecordOfRow(databases, outboxId)
  if (ofRow !== null) return ofRow
  const inTexts = hasPrefix(word) ? '' : '. `outboxd list --containing TEXT` searches the texts of all records'
  return `there is no record ${word}, and the outbox has no row ${outboxId}${inTexts}`
}

async function explainMissingRecordOfRow(databases: Databases, outboxId: string): Promise<string | null> {
  const record = await withOutbox(databases, (outbox) => readRecordWithoutQueriedContent(outbox, outboxId))
  if (record === null) return null
  const row = await withOutbox(databases, (outbox) => locateUncapturedRow(outbox, record)).catch(() => null)
  if (row === null)
    return `the row ${outboxId} is not captured, and whether it waits could not be read. \`outboxd status\` and \`outboxd check\` say what is wrong`
  switch (row.place) {
    case 'before start':
      return `the row ${outboxId} lies before the start position, so it is not sent`
    case 'left out by filter':
      return `the row ${outboxId} is not sent, because the filter in outbox.yaml leaves it out`
    case 'behind position': {
      const { ofRow } = await readCaptureObstacles(databases.ledger, record)
      if (ofRow !== null) return `the row ${outboxId} is not captured yet: ${ofRow}`
      return `the row ${outboxId} lies behind the position up to which the table was read, so it is not sent. \`outboxd capture --dry-run\` lists such rows, \`outboxd capture\` sends them`
    }
    case 'done':
      return `the ledger has no record of the row ${outboxId}, and it is not sent: it does not wait, or its record was deleted after RETENTION_DAYS. If the ledger has lost it, \`outboxd recover --dry-run\` shows it`
    case 'waits':
      return `the row ${outboxId} waits in the outbox and is not captured yet: ${await explainWait(databases, record, row.firstOfKey)}. \`outboxd map --outbox ${quoteForShell(outboxId)}\` shows its request`
    default:
      return row.place satisfies never
  }
}

async function explainWait({ ledger }: Databases, record: OutboxRecord, firstOfKey: string | null): Promise<string> {
  const { outboxId, type, key } = record
  const { ofRow, ofType, isBehindRecords } = await readCaptureObstacles(ledger, record)
  if (ofRow !== null) return ofRow
  if (ofType !== null) return `no row of the type ${type} is captured: ${ofType}`
  if (firstOfKey !== null && firstOfKey !== outboxId)
    return `it waits behind the row ${firstOfKey} of its key. \`outboxd show ${quoteForShell(`outbox:${firstOfKey}`)}\` says why that row is not captured`
  const after = isBehindRecords
    ? `, perhaps after captured records of its key (\`outboxd show ${quoteForShell(`key:${key}`)}\`)`
    : ''
  return `a daemon captures it in its turn${after}. \`outboxd status\` says whether one runs, and what stops capture`
}
