import type { EventActor, EventCause } from '../../model/eventCauses.ts'
import type { PauseReason } from '../../model/service.ts'
import type { State } from '../../model/submission.ts'
import { type Database, epochMsSql } from '../../postgres/database.ts'
import type { Resource } from '../../resources.ts'
import { isEarlierVersionUnderWaySql, type NewerVersion, newerVersionSql } from '../documents.ts'
import { isInstanceAliveSql } from '../instances.ts'
import { blocksKeySql } from '../keyOrder.ts'
import { type ListedSubmission, listedColumnsSql, stateSinceSql } from './selectSubmissions.ts'

export interface LoggedEvent {
  atMs: number
  from: State | null
  to: State
  attempt: number
  cause: EventCause
  message: string | null
  actor: EventActor
  who: string
  detail: (Record<string, unknown> & { former?: Record<string, unknown> }) | null
}

interface Blocker {
  id: string
  outboxId: string
  state: State
  /** True if it is an earlier version of the document, perhaps with another key. */
  isOwnVersion: boolean
}

export interface ActivePause {
  reason: PauseReason
  sinceMs: number
  /** Null if it lasts until an operator resumes. */
  untilMs: number | null
  detail: string
}

export interface SubmissionDetail extends Omit<ListedSubmission, 'attempts' | 'revision'> {
  resource: Resource | null
  /** The time when retention or `erase` removed payload and body. */
  emptiedMs: number | null
  erasedMs: number | null
  /** As the ERP wrote it. */
  payload: string | null
  body: string | null
  result: string | null
  attempt: number
  tracked: boolean
  probing: boolean
  inDoubt: boolean
  /** True if it is a change of a document that was sent before, and waits for a person. */
  changedAfterSent: boolean
  idByPerson: boolean
  /** The newest later version of its document. */
  newer: NewerVersion | null
  /** True if the service has said that it works on the transaction. */
  answered: boolean
  polledRarely: boolean
  held: boolean
  /** True if its state blocks later records of its key. */
  blocks: boolean
  dueMs: number | null
  pollMs: number | null
  polls: number
  fruitless: number
  /** How often its answers paused sending while submissions of others got through. */
  openedTimes: number
  /** The time when the service first said that it does not know the transaction. */
  unknownSinceMs: number | null
  reportDue: boolean
  /** Why the row cannot be written back. */
  reportTrouble: string | null
  reportAgainMs: number | null
  /** The problem's text if the row with this id is a different row now. */
  conflict: string | null
  /** The first earlier record that this one waits behind. */
  blocker: Blocker | null
  pauses: ActivePause[]
  /** Requests that may be made now. */
  free: number
  daemonLives: boolean
  /** The database's clock. */
  nowMs: number
  events: LoggedEvent[]
}

export async function readSubmissionDetail(db: Database, id: string): Promise<SubmissionDetail | null> {
  const { rows } = await db.query<SubmissionDetail>(
    `select ${listedColumnsSql}, s.error, s.resource, s.payload, s.body, s.result, s.attempt, s.tracked, s.probing,
       s.in_doubt as "inDoubt", s.changed_after_sent as "changedAfterSent", s.id_by_person as "idByPerson", ${newerVersionSql()} as newer,
       s.not_done_ms is not null as answered, coalesce(poll.is_rare, false) as "polledRarely", s.held,
       s.key is not null and ${blocksKeySql('s')} as blocks, s.polls, s.fruitless, s.opened_times as "openedTimes", s.report_due as "reportDue",
       (select p.detail from outboxd.problem p where s.report_due and p.subject = s.outbox_id
          and p.kind in ('report_refused', 'report_locked', 'mark_ineffective', 'row_missing') limit 1) as "reportTrouble",
       (select p.detail from outboxd.problem p where p.kind = 'row_conflict' and p.subject = left(s.outbox_id, 500)) as conflict,
       ${epochMsSql('case when s.report_due and s.report_put_off = s.revision then s.report_not_before end')} as "reportAgainMs",
       ${epochMsSql(`coalesce(s.ended_at, ${stateSinceSql})`)} as "sinceMs",
       ${epochMsSql('s.emptied_at')} as "emptiedMs", ${epochMsSql('s.erased_at')} as "erasedMs",
       ${epochMsSql('s.due_at')} as "dueMs", ${epochMsSql('poll.due_at')} as "pollMs", ${epochMsSql('s.unknown_since')} as "unknownSinceMs", ${epochMsSql('clock_timestamp()')} as "nowMs",
       (select json_build_object('id', b.id, 'outboxId', b.outbox_id, 'state', b.state,
            'isOwnVersion', coalesce(b.document = s.document, false))
          from outboxd.submission b
          where s.state = 'queued' and b.seq < s.seq and (s.held and b.key = s.key and ${blocksKeySql('b')} or ${isEarlierVersionUnderWaySql('b', 's')})
          order by b.seq limit 1) as blocker,
       (select coalesce(json_agg(json_build_object('reason', p.reason, 'detail', p.detail,
          'sinceMs', ${epochMsSql('p.since')}, 'untilMs', ${epochMsSql('p.until')})), '[]') from outboxd.standing_pause p) as pauses,
       (select coalesce(free, 0) from outboxd.budget) as free,
       exists (select from outboxd.instance i where ${isInstanceAliveSql('i')}) as "daemonLives",
       (select json_agg(json_build_object('atMs', ${epochMsSql('e.at')}, 'from', e.from_state, 'to', e.to_state,
          'attempt', e.attempt, 'cause', e.cause, 'message', e.message,
          'actor', e.actor, 'who', e.who, 'detail', e.detail) order by e.id)
        from outboxd.submission_event e where e.submission_id = s.id) as events
     from outboxd.submission s left join outboxd.poll on poll.submission_id = s.id where s.id = $1`,
    [id],
  )
  const detail = rows[0]
  return detail ? { ...detail, events: detail.events ?? [] } : null
}

/** Changes with every step, poll and pause of a submission, and when daemons start or die. '' if there is no submission. */
export async function readSubmissionVersion(db: Database, id: string): Promise<string> {
  const { rows } = await db.query<{ version: string }>(
    `select concat_ws('.', s.revision, s.polls,
       (select string_agg(p.reason || p.set_at, ' ' order by p.reason) from outboxd.standing_pause p),
       exists (select from outboxd.instance i where ${isInstanceAliveSql('i')})) as version
     from outboxd.submission s where s.id = $1`,
    [id],
  )
  return rows[0]?.version ?? ''
}
