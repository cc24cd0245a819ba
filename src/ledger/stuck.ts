import type { RaisedProblem } from '../model.ts'
import type { Database } from '../postgres/database.ts'

/**
 * Returns one problem for the accepted records that the service has not ended for `stuckAfterMs`. Its subject is empty.
 * Returns another for the records that were sent and that the service does not say it has. Its subject is `sending`.
 * Both are counted in the small index of records that are polled.
 */
export async function findStuck(db: Database, stuckAfterMs: number): Promise<Omit<RaisedProblem, 'kind'>[]> {
  const { rows } = await db.query<{ probing: boolean; count: number; oldest: string; since: string }>(
    `select probing, count(*)::int as count, (array_agg(outbox_id order by at))[1] as oldest,
       to_char(min(at) at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS"Z"') as since
     from outboxd.submission, lateral (select coalesce(accepted_at, sent_at) as at) asked
     where job_id is not null and at < clock_timestamp() - $1 * interval '1 ms'
     group by probing order by probing`,
    [stuckAfterMs],
  )
  return rows.map(({ probing, count, oldest, since }) => {
    const records = count === 1 ? 'record' : 'records'
    const what = probing
      ? `the service has not said what became of ${count} ${records} sent to it`
      : `the service has not ended ${count} accepted ${records}`
    const detail = `${what}, the oldest outbox:${oldest} since ${since}`
    return { subject: probing ? 'sending' : '', detail, retryInMs: null }
  })
}
