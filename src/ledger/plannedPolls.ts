import type { MovedPoll, PlannedPoll } from '../model.ts'
import type { Database } from '../postgres/database.ts'
import { lockFreeJobs } from './lockJobs.ts'
import type { Queue } from './queue.ts'

/** The polls that are not yet due, the next ones first. Those in backoff after a useless answer stay where they are. */
export async function readPlannedPolls(db: Database, limit: number): Promise<PlannedPoll[]> {
  const { rows } = await db.query<PlannedPoll>(
    `select id as "submissionId", job_id as "jobId", resource, not_done_ms::float8 as "notDoneMs",
       extract(epoch from now() - accepted_at)::float8 * 1000 as "ageMs",
       extract(epoch from poll_at - now())::float8 * 1000 as "inMs"
     from outboxd.submission
     where job_id is not null and poll_at > now() and state = 'accepted' and fruitless = 0
       and not polled_rarely
     order by poll_at limit $1`,
    [limit],
  )
  return rows
}

/** Moves polls, ledger and queue together; one that has come due in between, or is in somebody's hand, stays as it is. */
export async function movePolls(db: Database, queue: Pick<Queue, 'move'>, moves: readonly MovedPoll[]): Promise<void> {
  const ours = await lockFreeJobs(
    db,
    moves.map(({ jobId }) => jobId),
  )
  const { rows } = await db.query<{ jobId: string }>(
    `update outboxd.submission s set poll_at = now() + move."inMs" * interval '1 ms'
     from json_to_recordset($1) as move("submissionId" uuid, "jobId" uuid, "inMs" float8)
     where s.id = move."submissionId" and s.job_id = move."jobId" and s.poll_at > now()
     returning s.job_id as "jobId"`,
    [JSON.stringify(moves.filter(({ jobId }) => ours.has(jobId)))],
  )
  const moved = new Set(rows.map(({ jobId }) => jobId))
  for (const { jobId, inMs } of moves) if (moved.has(jobId)) await queue.move(db, jobId, inMs)
}
