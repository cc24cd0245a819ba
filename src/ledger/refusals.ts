import type { Refusal } from '../model/dispatch.ts'
import type { PauseToRaise } from '../model/service.ts'
import { type Database, inTransaction } from '../postgres/database.ts'
import type { Resource } from '../resources.ts'
import { hasLaterVersionAmongSql, newerOutboxIdOfDocumentSql, overtakingOutboxIdOfDocumentSql } from './documents.ts'
import { isKeyBlockedByFailureSql, lockSubmissionsAndReadKeys, withKeysLockedThenReleased } from './keyOrder.ts'
import { logOperatorAct, type Operator } from './operator/operator.ts'
import { raiseProblems } from './problems.ts'
import { resetColumnsByLifetimeSql } from './submissions.ts'

/** If this many records in a row with different keys get equal refusals, the data is probably not the cause. */
const refusalsMax = 10
/** Records of a run. More than `refusalsMax`, because records with one key count as one. */
const rememberedMax = 100

export interface MassRefusal {
  pause: PauseToRaise
  queued: string[]
}

/**
 * Adds a refusal to the run of its resource, over all instances. The tenth equal refusal is a mass refusal, and the
 * run's records are queued again. From then on each further refusal is one, too, until a record gets through or an
 * operator believes the refusals.
 */
export async function noteRefusal(db: Database, refusal: Refusal, who: string): Promise<MassRefusal | null> {
  const run = await extendRun(db, refusal)
  if (run === null || (!run.isMass && run.records < refusalsMax)) return null
  const { resource, summary: said } = refusal
  // Pauses all resources, because all records share address, certificate and token.
  const detail = `${said}. ${refusalsMax} records in a row (endpoint ${resource}) got this refusal, so their contents are probably not the cause, and all sending is paused. Check the address, the client certificate and the mapping (\`outboxd check\`)`
  const message = `mass refusal: ${said}`
  const queued = await queueRejectedAgain(db, run.submissions, { who, message })
  // A record that was not queued stays listed: if a later record of its key is refused, too, both are queued again.
  const left = run.submissions.filter((id) => !queued.includes(id))
  await db.query('update outboxd.refusal_run set is_mass = true, submissions = $2 where resource = $1', [
    resource,
    left,
  ])
  await raiseProblems(db, [{ kind: 'mass_refusal', subject: resource, detail, retryInMs: null }])
  return { pause: { reason: 'unauthorized', askedMs: null, detail }, queued }
}

interface Run {
  submissions: string[]
  records: number
  isMass: boolean
}

/** @returns null if an operator believes refusals with this fingerprint */
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
 * Queues these records again if they are still rejected and cannot have arrived. Leaves out a record if a later one of
 * its key may have arrived, because it would be sent out of order. Leaves out an older version of a document if a newer
 * one is sent or queued.
 */
export async function queueRejectedAgain(
  db: Database,
  ids: readonly string[],
  { who, message }: { who: string; message: string },
): Promise<string[]> {
  const locked = await lockSubmissionsAndReadKeys(
    db,
    ids.map((id) => ({ id })),
  )
  const keys = [...new Set(locked.flatMap(({ key }) => key ?? []))]
  return withKeysLockedThenReleased(db, locked, async () => {
    // Waits for claims of later records that are not committed yet, so that the next statement sees what they send.
    if (keys.length > 0)
      await db.query(
        `select from outboxd.submission where key = any($1) and state = 'queued' and not held order by due_at, seq for update`,
        [keys],
      )
    const { rows } = await db.query<{ id: string }>(
      `with queued as (
         update outboxd.submission s set state = 'queued', revision = revision + 1, held = key is not null, due_at = now(),
           ${resetColumnsByLifetimeSql('step')}, ended_at = null, report_due = true
         where id = any($1) and state = 'rejected' and not in_doubt and not may_have_arrived and not exists (
           select from outboxd.submission l
           where hashtextextended(l.key, 0) = hashtextextended(s.key, 0) and l.key = s.key and l.seq > s.seq and l.attempt > 0
             and (l.state not in ('queued', 'rejected') or l.in_doubt or l.may_have_arrived)
         ) and (s.document is null
           or ${isKeyBlockedByFailureSql} and s.key is not null and ${overtakingOutboxIdOfDocumentSql('s')} is null
           or ${newerOutboxIdOfDocumentSql('s')} is null and not ${hasLaterVersionAmongSql('s', '$1::uuid[]')}
         ) returning id, attempt, seq
       ), event as (
         insert into outboxd.submission_event (submission_id, from_state, to_state, attempt, cause, message, actor, who)
         select id, 'rejected', 'queued', attempt, 'mass_refusal', $2, 'daemon', $3 from queued order by seq
       )
       select id from queued`,
      [ids, message, who],
    )
    // Holds all queued records of these keys again, also released ones. Then only the first of each key is released.
    if (keys.length > 0)
      await db.query(
        `update outboxd.submission set held = true where key = any($1) and state = 'queued' and not held`,
        [keys],
      )
    return rows.map(({ id }) => id)
  })
}

/** Takes refusals as the service's judgement of the data for `durationMs`. @returns the summaries of these refusals */
export function believeMassRefusals({ ledger, actor }: Operator, durationMs: number): Promise<string[]> {
  return inTransaction(ledger, async (db) => {
    await db.query('delete from outboxd.believed_refusal where until < clock_timestamp()')
    const { rows } = await db.query<{ said: string }>(
      `with run as (delete from outboxd.refusal_run where is_mass returning resource, fingerprint, said),
       mended as (delete from outboxd.problem where kind = 'mass_refusal' and subject in (select resource from run))
       insert into outboxd.believed_refusal (fingerprint, said, until)
       select distinct on (fingerprint) fingerprint, said, clock_timestamp() + $1 * interval '1 ms' from run
       on conflict (fingerprint) do update set said = excluded.said, until = excluded.until
       returning said`,
      [durationMs],
    )
    const said = rows.map((row) => row.said)
    if (said.length > 0) await logOperatorAct(db, actor, 'resume --believe-refusals', { said })
    return said
  })
}

export async function endRefusalRuns(db: Database, resources: readonly Resource[]): Promise<void> {
  await db.query(
    `with ended as (delete from outboxd.refusal_run where resource = any($1) returning resource)
     delete from outboxd.problem where kind = 'mass_refusal' and subject in (select resource from ended)`,
    [resources],
  )
}
