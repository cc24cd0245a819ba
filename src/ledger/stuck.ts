import type { RaisedProblem } from '../model.ts'
import type { Database } from '../postgres/database.ts'

/**
 * What there is to say of transactions that the service has not ended for so long: one problem for all of them, or none.
 * They are counted in the small index of those that are polled.
 */
export async function findStuck(db: Database, stuckAfterMs: number): Promise<Omit<RaisedProblem, 'kind'>[]> {
  const { rows } = await db.query<{ count: number; oldest: string | null; since: string | null }>(
    `select count(*)::int as count, (array_agg(outbox_id order by accepted_at))[1] as oldest,
       to_char(min(accepted_at) at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS"Z"') as since
     from outboxd.submission
     where job_id is not null and state = 'accepted' and accepted_at < clock_timestamp() - $1 * interval '1 ms'`,
    [stuckAfterMs],
  )
  const { count = 0, oldest, since } = rows[0] ?? {}
  if (count === 0) return []
  const what = `${count} accepted ${count === 1 ? 'record' : 'records'}, the oldest outbox:${oldest} since ${since}`
  return [{ subject: '', detail: `the service has not ended ${what}`, retryInMs: null }]
}
