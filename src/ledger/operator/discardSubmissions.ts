import type { State } from '../../model.ts'
import type { Database } from '../../postgres/database.ts'
import type { Queue } from '../queue.ts'
import {
  type Actor,
  actorDetailSql,
  type Operator,
  type SeenRecord,
  withOpenQueue,
  withSubmissionsLocked,
} from './operator.ts'

/** Stops the polls of accepted records. Keeps error and transaction id. */
export async function writeDiscardedSubmissions(
  operator: Operator,
  seen: readonly (SeenRecord & { state: State })[],
): Promise<string[]> {
  const discard = (queue: Queue | null) =>
    withSubmissionsLocked(operator, seen, async (db) => {
      const discarded = await discardLocked(db, seen, operator.actor)
      const jobs = discarded.flatMap(({ formerJobId }) => formerJobId ?? [])
      if (jobs.length > 0) await queue?.remove(db, jobs)
      return discarded.map(({ id }) => id)
    })
  return seen.some(({ state }) => state === 'accepted') ? withOpenQueue(operator, discard) : discard(null)
}

/** @returns also the polls to remove */
async function discardLocked(
  db: Database,
  seen: readonly SeenRecord[],
  { who, reason, account }: Actor,
): Promise<{ id: string; formerJobId: string | null }[]> {
  const { rows } = await db.query<{ id: string; formerJobId: string | null }>(
    `with former as (
       select s.* from outboxd.submission s join unnest($1::uuid[], $2::int[]) r(id, revision) using (id)
       where s.state in ('failed', 'rejected', 'uncertain', 'accepted') and s.revision = r.revision
       order by s.id for update of s
     ), written as (
       update outboxd.submission s set state = 'discarded', revision = s.revision + 1, ended_at = clock_timestamp(),
         job_id = null, poll_at = null, polled_rarely = false, report_due = true,
         -- keeps the document from being sent again if the service may have it
         request_digest = case when f.state in ('uncertain', 'accepted') or f.may_have_arrived then s.request_digest end
       from former f where s.id = f.id returning s.id
     ), event as (
       insert into outboxd.submission_event (submission_id, from_state, to_state, attempt, cause, who, detail)
       select f.id, f.state, 'discarded', f.attempt, concat_ws(': ', 'discarded', $3::text), $4, ${actorDetailSql('$3', '$5')}
       from former f join written using (id) order by f.seq
     )
     select f.id, f.job_id as "formerJobId" from former f join written using (id)`,
    [seen.map((each) => each.id), seen.map((each) => each.revision), reason, who, account],
  )
  return rows
}
