import type { Database } from '../../postgres/database.ts'
import { daemonSessionNames } from '../../postgres/sessionSettings.ts'
import { isAliveSql } from '../instances.ts'
import { endStatesBlockingKeySql, type KeyOnFailure } from '../keyOrder.ts'

export interface DaemonActivity {
  instances: { id: string; host: string; version: string; startedMs: number; beatMs: number }[]
  lastSilentMs: number | null
  /** True if a daemon has a session. Behind a pooler a session may not be visible. */
  daemonConnected: boolean
  /** Null if a slot is free now. */
  nextSlotMs: number | null
  /** Average of the last completed records. */
  pollsPerRecord: number | null
  /** Records that wait behind one of their key that needs attention. */
  heldForPerson: number
  /** Latest due time of the queued records that are not held. */
  lastDueMs: number | null
  nowMs: number
}

const lastCompleted = 200

const whileItWorks = [daemonSessionNames.work, daemonSessionNames.heartbeat]

export async function readDaemonActivity(db: Database, onFailure: KeyOnFailure): Promise<DaemonActivity> {
  const { rows } = await db.query<DaemonActivity>(
    `select
       (select coalesce(json_agg(json_build_object('id', id, 'host', host, 'version', version,
          'startedMs', extract(epoch from started_at) * 1000, 'beatMs', extract(epoch from beat_at) * 1000)
          order by started_at), '[]')
        from outboxd.instance i where ${isAliveSql('i')}) as instances,
       (select extract(epoch from max(beat_at))::float8 * 1000 from outboxd.instance i
        where not ${isAliveSql('i')}) as "lastSilentMs",
       exists (select from pg_stat_activity
        where application_name = any($2) and datname = current_database()) as "daemonConnected",
       (select extract(epoch from min(free_at))::float8 * 1000 from outboxd.slot where permits > 0
        having min(free_at) > clock_timestamp()) as "nextSlotMs",
       (select avg(polls)::float8 from (select polls from outboxd.submission
          where ended_at is not null and done_ms is not null order by ended_at desc limit $1) last) as "pollsPerRecord",
       (select coalesce(sum(n), 0)::int from (
          select key, min(seq) as seq from outboxd.submission
          where key is not null and state in (${endStatesBlockingKeySql[onFailure]}) group by key
        ) stop, lateral (
          select count(*) as n from outboxd.submission s
          where s.key = stop.key and s.seq > stop.seq and s.state = 'queued' and s.held
        ) behind) as "heldForPerson",
       (select extract(epoch from max(due_at))::float8 * 1000 from outboxd.submission
          where state = 'queued' and not held) as "lastDueMs",
       extract(epoch from clock_timestamp())::float8 * 1000 as "nowMs"`,
    [lastCompleted, whileItWorks],
  )
  return rows[0] as DaemonActivity
}

export interface BusySlot {
  permits: number
  /** The time when it was taken, given back or held back. */
  setMs: number
  freeMs: number
  /** True if its requests are under way, or its instance has died. */
  isTaken: boolean
  /** Requests by purpose, after the slot was given back. */
  submissions: number
  polls: number
  /** Tokens, trials without a transaction, and `outboxd check`. */
  others: number
}

export interface BudgetSlots {
  nowMs: number
  windowMs: number
  capacity: number
  /** The longest unchanged first. */
  busy: BusySlot[]
}

export async function readBudgetSlots(db: Database): Promise<BudgetSlots> {
  const { rows } = await db.query<BudgetSlots>(
    `select extract(epoch from now())::float8 * 1000 as "nowMs",
       coalesce((select window_ms from outboxd.budget), 0)::float8 as "windowMs",
       coalesce(sum(permits), 0)::int as capacity,
       coalesce(json_agg(json_build_object('permits', permits, 'setMs', extract(epoch from set_at) * 1000,
         'freeMs', extract(epoch from free_at) * 1000, 'isTaken', taken_by is not null, 'submissions', spent_on_submissions,
         'polls', spent_on_polls, 'others', spent_on_others) order by set_at, id)
         filter (where free_at > now() and permits > 0), '[]') as busy
     from outboxd.slot`,
  )
  return rows[0] as BudgetSlots
}
