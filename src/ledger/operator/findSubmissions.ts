import type { Database } from '../../postgres/database.ts'
import { type ListedSubmission, listedColumns, unfinishedSince } from './selectSubmissions.ts'

/** How a person names a submission. */
export type SubmissionReference =
  /** The id of its outbox row. */
  | { kind: 'outbox'; outboxId: string }
  /** The ids that begin alike: uuids, both ends included. A whole id is a range of one. */
  | { kind: 'range'; from: string; to: string }

/** The submissions that the reference fits, up to `limit`. */
export async function findSubmissions(
  db: Database,
  reference: SubmissionReference,
  limit: number,
): Promise<ListedSubmission[]> {
  const [condition, values] =
    reference.kind === 'outbox'
      ? ['s.outbox_id = $2', [reference.outboxId]]
      : ['s.id between $2::uuid and $3::uuid', [reference.from, reference.to]]
  const { rows } = await db.query<ListedSubmission>(
    `select ${listedColumns}, extract(epoch from coalesce(s.ended_at, ${unfinishedSince}))::float8 * 1000 as "sinceMs"
     from outboxd.submission s where ${condition} order by s.id limit $1`,
    [limit, ...values],
  )
  return rows
}
