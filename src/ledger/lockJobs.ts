import type { Database } from '../postgres/database.ts'
import { queueName, queueSchema } from './queue.ts'

/*
 * Whoever locks several things of the ledger in one transaction does so in one order, so that no two wait for each other
 * in a circle:
 *
 *   1  jobs of polls           writeSteps completes them, which is its fence; moveTimes moves them all
 *   2  ids of transactions     lockTransactionIds
 *   3  submissions             lockSubmissions, by their ids
 *   4  lines of keys           lockKeys
 *
 * Who claims work waits for none of these: he skips what is locked.
 */

/** Locks the polls to come of these submissions, as they are now, until the transaction ends. */
export async function lockJobsOf(db: Database, submissions: readonly { id: string }[]): Promise<void> {
  await db.query(
    `select from ${queueSchema}.job where name = '${queueName}' and id = any(array(
       select job_id from outboxd.submission where id = any($1::uuid[]) and job_id is not null
     )) order by id for update`,
    [submissions.map(({ id }) => id)],
  )
}

/** Locks jobs, but for those that somebody else has locked. @returns the ids of those that are ours until the transaction ends */
export async function lockFreeJobs(db: Database, jobIds: readonly string[]): Promise<ReadonlySet<string>> {
  const { rows } = await db.query<{ id: string }>(
    `select id from ${queueSchema}.job where name = '${queueName}' and id = any($1::uuid[]) order by id for update skip locked`,
    [jobIds],
  )
  return new Set(rows.map(({ id }) => id))
}
