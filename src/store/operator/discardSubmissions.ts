import type { Database } from '../database.ts'

/**
 * Gives up failed, rejected and uncertain submissions. What went wrong stays with them.
 *
 * @param seen as they were read: those that took a step since are left alone
 * @returns the ids of those that were discarded
 */
export async function discardSubmissions(
  db: Database,
  seen: readonly { id: string; revision: number }[],
  { reason, who }: { reason: string; who: string },
): Promise<string[]> {
  const { rows } = await db.query<{ id: string }>(
    `with former as (
       select s.* from outboxd.submission s join unnest($1::uuid[], $2::int[]) r(id, revision) using (id)
       where s.state in ('failed', 'rejected', 'uncertain') and s.revision = r.revision order by s.id for update of s
     ), written as (
       update outboxd.submission s set state = 'discarded', revision = s.revision + 1, ended_at = clock_timestamp(),
         report_due = true
       from former f where s.id = f.id returning s.id
     ), event as (
       insert into outboxd.submission_event (submission_id, from_state, to_state, attempt, cause, who, detail)
       select f.id, f.state, 'discarded', f.attempt, 'discarded: ' || $3, $4, jsonb_build_object('reason', $3::text)
       from former f join written using (id) order by f.seq
     )
     select id from written`,
    [seen.map((each) => each.id), seen.map((each) => each.revision), reason, who],
  )
  return rows.map((row) => row.id)
}
