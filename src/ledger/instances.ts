import type { Submission } from '../model.ts'
import type { Database } from '../postgres/database.ts'
import { isAlive, silentMaxMs } from './instanceLife.ts'
import { parseSubmissions, submissionColumns } from './submissionRow.ts'

/** Says that this instance lives. @returns the number of the reload that it has not answered; null where there is none */
export async function writeHeartbeat(
  db: Database,
  instance: { id: string; version: string; host: string },
): Promise<number | null> {
  const { rows } = await db.query<{ reloadAsked: number | null }>(
    `insert into outboxd.instance as i (id, version, host) values ($1, $2, $3)
     on conflict (id) do update set beat_at = clock_timestamp(),
       started_at = case when ${isAlive('i')} then i.started_at else clock_timestamp() end
     returning case when reload_answered < reload_asked then reload_asked end as "reloadAsked"`,
    [instance.id, instance.version, instance.host],
  )
  return rows[0]?.reloadAsked ?? null
}

/** Forgets an instance that leaves with nothing in hand, so that nobody believes for another 12 s that it lives. */
export async function deleteInstance(db: Database, instanceId: string): Promise<void> {
  await db.query('delete from outboxd.instance where id = $1', [instanceId])
}

/**
 * The submissions that a dead instance was sending: its last sign of life is more than 12 s old. What a living one has
 * on the wire is left to it, however old: only it can know.
 *
 * After an outage of the database every sign of life is old, and answers have waited to be written. So only an instance
 * that has itself been heard without a gap for as long, and until now, may judge: by then the others have been heard
 * again, too, and what they had in hand is written.
 */
export async function readOrphaned(db: Database, instanceId: string): Promise<Submission[]> {
  const { rows } = await db.query(
    `select ${submissionColumns} from outboxd.submission s
     where s.state = 'sending' and not s.probing and s.instance_id <> $1 and exists (
       select from outboxd.instance me
       where me.id = $1 and me.beat_at - me.started_at > $2 * interval '1 ms' and ${isAlive('me')}
     ) and not exists (
       select from outboxd.instance i
       where i.id = s.instance_id and ${isAlive('i')}
     ) limit 1000`,
    [instanceId, silentMaxMs],
  )
  return parseSubmissions(rows)
}

/**
 * The submissions that the ledger says this instance is sending, and that it does not have in hand: the ledger went back to
 * before their outcome was written, or refused to take it. A claim is in hand from before its COMMIT until its outcome is
 * written, so nothing has to be waited for.
 */
export async function readForgotten(
  db: Database,
  instanceId: string,
  holds: (submission: Pick<Submission, 'id' | 'claimId'>) => boolean,
): Promise<Submission[]> {
  const isOwn = `s.state = 'sending' and not s.probing and s.instance_id = $1`
  const sending = await db.query<Pick<Submission, 'id' | 'claimId'>>(
    `select s.id, s.claim_id as "claimId" from outboxd.submission s where ${isOwn} limit 1000`,
    [instanceId],
  )
  const ids = sending.rows.filter((each) => !holds(each)).map(({ id }) => id)
  if (ids.length === 0) return []
  const { rows } = await db.query(
    `select ${submissionColumns} from outboxd.submission s where ${isOwn} and s.id = any($2::uuid[])`,
    [instanceId, ids],
  )
  return parseSubmissions(rows).filter((each) => !holds(each)) // this instance may have claimed it again in between
}

/** Forgets instances that have been silent for a day. */
export async function deleteStaleInstances(db: Database): Promise<void> {
  await db.query(`delete from outboxd.instance where beat_at < clock_timestamp() - interval '1 day'`)
}

/** Gives a live submission whose job was lost a new one to be asked about at once. @returns id and job of each */
export async function recreateMissingJobs(
  db: Database,
  queueSchema: string,
): Promise<{ submissionId: string; jobId: string; rarely: boolean }[]> {
  const { rows } = await db.query<{ submissionId: string; jobId: string; rarely: boolean }>(
    `update outboxd.submission s set job_id = gen_random_uuid(), revision = revision + 1
     where s.job_id is not null and s.poll_at < clock_timestamp() and not exists (
       select from ${queueSchema}.job j where j.id = s.job_id and j.state in ('created', 'retry', 'active')
     ) returning s.id as "submissionId", s.job_id as "jobId", s.polled_rarely as rarely`,
  )
  return rows
}
