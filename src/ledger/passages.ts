import type { Passage } from '../model.ts'
import type { Database } from '../postgres/database.ts'

/**
 * Counts records that the service itself has answered. Where it judged one, the pauses that a trial had ended before are
 * forgotten: now they are proven to be over for records, too. The counters are locked in one order, so that two instances never wait for
 * each other in a circle.
 */
export async function recordPassages(db: Database, passages: readonly Passage[]): Promise<void> {
  await db.query(
    `with forgotten as (delete from outboxd.pause where cleared_at is not null and $2),
     r as (select resource, coalesce(met, '') as met from json_to_recordset($1) as r(resource text, met text))
     insert into outboxd.passage as p (resource, met, count, at)
     select r.resource, r.met, count(*), ${passagesOf('r')} + (select count(*) from r each where each.resource = r.resource)
     from r group by r.resource, r.met order by r.resource, r.met
     on conflict (resource, met) do update set count = p.count + excluded.count, at = greatest(p.at, excluded.at)`,
    [JSON.stringify(passages), passages.some(({ judged }) => judged)],
  )
}

/** How many records of the resource of `s` have got through. */
export function passagesOf(s: string): string {
  return `(select coalesce(sum(p.count), 0)::bigint from outboxd.passage p where p.resource = ${s}.resource)`
}

/** So many passages ago a record that met a pause and left it behind still says that it passes by itself. */
const recentPassages = 8

/**
 * What the submission `s` has met, as JSON: null where its answers have called for no pause. A service of whose answers
 * every third is 503 makes records meet the pause three times by bad luck, and others recover from it all the while.
 */
export const metPause = (s: string): string =>
  `case when ${s}.met_pause is not null then json_build_object('reason', ${s}.met_pause, 'times', ${s}.met_times,
     'othersThrough', ${s}.met_passages < ${passagesOf(s)},
     'othersRecovered', exists (select from outboxd.passage p where p.resource = ${s}.resource
        and p.met = ${s}.met_pause and p.at > least(${s}.met_passages, ${passagesOf(s)} - ${recentPassages}))) end`

/**
 * What the polls of the submission `s` have met, as JSON. A record that was accepted or completed since then got through;
 * its own can only have been before. The log is read from there on, and only for a transaction that was refused. Where
 * nobody else has anything under way, a trial that was answered well since speaks for all others: its pause is kept until a
 * record goes.
 */
export const refusedPolls = (s: string): string =>
  `json_build_object('times', ${s}.refused_polls, 'othersThrough', ${s}.refused_polls > 0 and (exists (
     select from outboxd.submission_event e where e.id > ${s}.refused_event
       and e.from_state in ('sending', 'accepted') and e.to_state in ('accepted', 'completed')
       and e.from_state <> e.to_state)
     or exists (select from outboxd.pause p where p.cleared_at > (
       select e.at from outboxd.submission_event e where e.id = ${s}.refused_event))))`

/** The event up to which all is before now. */
export const lastEvent = '(select coalesce(max(e.id), 0) from outboxd.submission_event e)'
