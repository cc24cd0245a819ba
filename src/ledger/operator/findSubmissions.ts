import { type Database, epochMs } from '../../postgres/database.ts'
import { hasTransactionIdSql } from '../transactions.ts'
import { hasKey, type ListedSubmission, listedColumns, unfinishedSince } from './selectSubmissions.ts'

/** How a person names a submission. */
export type SubmissionReference =
  /** The id of its outbox row. */
  | { kind: 'outbox'; outboxId: string }
  /** Whole ids: uuids. */
  | { kind: 'ids'; ids: readonly string[] }
  /** The ids that begin alike: uuids, both ends included. A whole id is a range of one. */
  | { kind: 'range'; from: string; to: string }
  /** The ids that end in these hex digits, six at least. */
  | { kind: 'ending'; digits: string }
  | { kind: 'idempotency-key'; idempotencyKey: string }
  | { kind: 'transaction'; transactionId: string }
  | { kind: 'key'; key: string }

/** The submissions that the reference fits, up to `limit`; those of a key newest first. */
export async function findSubmissions(
  db: Database,
  reference: SubmissionReference,
  limit: number,
): Promise<ListedSubmission[]> {
  const { rows } = await db.query<ListedSubmission>(findSql[reference.kind], [limit, ...valuesOf(reference)])
  return rows
}

function valuesOf(reference: SubmissionReference): (string | readonly string[])[] {
  switch (reference.kind) {
    case 'ids':
      return [reference.ids]
    case 'outbox':
      return [reference.outboxId]
    case 'range':
      return [reference.from, reference.to]
    case 'ending':
      return [reference.digits]
    case 'idempotency-key':
      return [reference.idempotencyKey]
    case 'transaction':
      return [reference.transactionId]
    case 'key':
      return [reference.key]
    default:
      return reference satisfies never
  }
}

const find = (condition: string, order = 's.id') => `
  select ${listedColumns}, ${epochMs(`coalesce(s.ended_at, ${unfinishedSince})`)} as "sinceMs"
  from outboxd.submission s where ${condition} order by ${order} limit $1`

/** One statement for each kind of reference; each has its index. $1 is the limit. */
export const findSql: Record<SubmissionReference['kind'], string> = {
  outbox: find('s.outbox_id = $2'),
  ids: find('s.id = any($2::uuid[])'),
  range: find('s.id between $2::uuid and $3::uuid'),
  ending: find(`right(s.id::text, 6) = right($2::text, 6) and replace(s.id::text, '-', '') like '%' || $2::text`),
  'idempotency-key': find('s.idempotency_key = $2::uuid'),
  transaction: find(hasTransactionIdSql('$2::text')),
  key: find(hasKey('$2::text'), 's.seq desc'),
}
