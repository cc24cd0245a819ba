import type { PauseCall, Refusal } from '../model.ts'
import type { Database } from '../postgres/database.ts'
import type { Resource } from '../resources.ts'
import { inLines, type KeyOnFailure, lockSubmissions } from './keyOrder.ts'
import { raiseProblems } from './problems.ts'
import { forgotten } from './submissions.ts'

/** So many records that share no key are not refused in the same words by their own fault. */
const refusalsMax = 10
/** Of a run of records of one key no more than the last are remembered. */
const rememberedMax = 100

/** What is taken for our configuration: its records are queued again, and everybody pauses. */
export interface MassRefusal {
  pause: PauseCall
  queued: string[]
}

/**
 * Notes that a record was rejected in words that are not the service's judgement under a code. The tenth in a row, over
 * all instances, makes it a mass refusal: those of the run are queued again, since a refusal says that nothing arrived.
 * From then on each one like it does, until a record gets through or an operator takes them at their word.
 */
export async function noteRefusal(
  db: Database,
  refusal: Refusal,
  { who, keyOnFailure }: { who: string; keyOnFailure: KeyOnFailure },
): Promise<MassRefusal | null> {
  const run = await extendRun(db, refusal)
  if (run === null || (!run.isMass && run.records < refusalsMax)) return null
  const { resource, summary: said } = refusal
  // Address, certificate and token are everybody's: which of them it is, nobody knows yet.
  const detail = `${said}; record after record of ${resource} was answered so, which says nothing about them, and nothing at all is sent, whatever its resource: look at the address, the client certificate and the mapping (outboxd check); if it is right, outboxd resume --believe-refusals`
  await db.query(`update outboxd.refusal_run set is_mass = true, submissions = '{}' where resource = $1`, [resource])
  await raiseProblems(db, [{ kind: 'mass_refusal', subject: resource, detail, retryInMs: null }])
  const cause = `mass refusal: ${said}`
  return {
    pause: { reason: 'unauthorized', askedMs: null, detail },
    queued: await queueAgain(db, run.submissions, { who, keyOnFailure, cause }),
  }
}

interface Run {
  submissions: string[]
  /** Those that share a key count as one. */
  records: number
  isMass: boolean
}

/** @returns null where an operator takes refusals like it at their word */
async function extendRun(db: Database, refusal: Refusal): Promise<Run | null> {
  const { rows } = await db.query<Run>(
    `with run as (
       insert into outboxd.refusal_run as r (resource, fingerprint, said, submissions)
       select $1, $2, $3, array[$4::uuid]
       where not exists (select from outboxd.believed_refusal where fingerprint = $2 and until > clock_timestamp())
       on conflict (resource) do update set fingerprint = excluded.fingerprint, said = excluded.said,
         is_mass = r.is_mass and r.fingerprint = excluded.fingerprint,
         submissions = case when r.fingerprint <> excluded.fingerprint then excluded.submissions
           else (array_prepend($4::uuid, array_remove(r.submissions, $4::uuid)))[1:${rememberedMax}] end
       returning submissions, is_mass
     )
     select submissions, is_mass as "isMass", (select count(distinct coalesce(s.key, s.id::text))::int
       from outboxd.submission s where s.id = any(submissions)) as records from run`,
    [refusal.resource, refusal.fingerprint, refusal.summary, refusal.submissionId],
  )
  return rows[0] ?? null
}

/**
 * Queues what was rejected again: those that nobody has touched since and of which nothing can have arrived. They are
 * locked before their lines, as everywhere (lockJobs.ts).
 */
async function queueAgain(
  db: Database,
  ids: readonly string[],
  { who, keyOnFailure, cause }: { who: string; keyOnFailure: KeyOnFailure; cause: string },
): Promise<string[]> {
  await lockSubmissions(
    db,
    ids.map((id) => ({ id })),
  )
  const { rows: lines } = await db.query<{ key: string }>(
    'select distinct key from outboxd.submission where id = any($1) and key is not null',
    [ids],
  )
  return inLines(db, lines, keyOnFailure, async () => {
    const { rows } = await db.query<{ id: string }>(
      `with queued as (
         update outboxd.submission set state = 'queued', revision = revision + 1, held = key is not null, due_at = now(),
           ${forgotten('step')}, ended_at = null, report_due = true
         where id = any($1) and state = 'rejected' and not in_doubt and not may_have_arrived returning id, attempt, seq
       ), event as (
         insert into outboxd.submission_event (submission_id, from_state, to_state, attempt, cause, who)
         select id, 'rejected', 'queued', attempt, $2, $3 from queued order by seq
       )
       select id from queued`,
      [ids, cause, who],
    )
    // Those that had moved up in their lines wait again.
    if (lines.length > 0)
      await db.query(
        `update outboxd.submission set held = true where key = any($1) and state = 'queued' and not held`,
        [lines.map(({ key }) => key)],
      )
    return rows.map(({ id }) => id)
  })
}

/** Takes mass refusals at their word for so long: their records are rejected. @returns what was said in them */
export async function believeRefusals(db: Database, forMs: number): Promise<string[]> {
  await db.query('delete from outboxd.believed_refusal where until < clock_timestamp()')
  const { rows } = await db.query<{ said: string }>(
    `with run as (delete from outboxd.refusal_run where is_mass returning resource, fingerprint, said),
     mended as (delete from outboxd.problem where kind = 'mass_refusal' and subject in (select resource from run))
     insert into outboxd.believed_refusal (fingerprint, said, until)
     select distinct on (fingerprint) fingerprint, said, clock_timestamp() + $1 * interval '1 ms' from run
     on conflict (fingerprint) do update set said = excluded.said, until = excluded.until
     returning said`,
    [forMs],
  )
  return rows.map(({ said }) => said)
}

/** The resources of records that the service itself has judged: what was refused before them was no mass refusal. */
export async function endRuns(db: Database, resources: readonly Resource[]): Promise<void> {
  await db.query(
    `with ended as (delete from outboxd.refusal_run where resource = any($1) returning resource)
     delete from outboxd.problem where kind = 'mass_refusal' and subject in (select resource from ended)`,
    [resources],
  )
}
