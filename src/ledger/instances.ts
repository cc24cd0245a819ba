import { boundText, textCharsMax } from '../boundText.ts'
import type { ProblemKind } from '../model/problem.ts'
import type { PollClaim, Submission } from '../model/submission.ts'
import { type Database, epochMsSql, inTransaction, type Pool, queryOne } from '../postgres/database.ts'
import { assertBindingMatchesService, type LedgerBinding, ledgerBindingSql, type ServiceIdentity } from './binding.ts'
import { historyColumnsSql, type LookedFor, nothingLookedFor } from './history/history.ts'
import type { HistoryReading } from './history/judgeHistory.ts'
import { endPolls, type PollQueue } from './queue.ts'
import type { Settings } from './settings.ts'
import { submissionColumnsSql } from './submissions.ts'

/** What is wrong with one daemon. It stands in the instance's row, so the next heartbeat ends it, or the daemon's death. */
export interface InstanceProblem {
  kind: Extract<
    ProblemKind,
    | 'loop_failing'
    | 'claim_lost'
    | 'budget_starved'
    | 'settings_differ'
    | 'credentials_broken'
    | 'host_failing'
    | 'log_failing'
    | 'clock_off'
  >
  /** The part of the daemon, such as a loop. */
  part: string
  /** Without client data. */
  detail: string
  /** Since when it stands. */
  ageMs: number
}

/** A running daemon. */
export interface Instance {
  id: string
  version: string
  host: string
  /** What it was given, whether the ledger has the same or not. */
  settings: Settings
}

export interface HeartbeatAnswer {
  /** How many heartbeats this instance has written. */
  beats: number
  /** Null if the ledger's row is gone. */
  history: HistoryReading | null
  /** True if an instance died that was sending records or polling. */
  hasOrphans: boolean
  /** True if the database's clock was set back since an instance's last heartbeat (clockSetBack.ts). */
  isClockBack: boolean
  /** The database's clock, in epoch milliseconds. */
  dbMs: number
  /** True if the ledger has the settings of this instance. */
  hasLedgersSettings: boolean
}

interface HeartbeatOptions {
  lookedFor?: LookedFor
  /** Null: not compared with the ledger's. */
  service?: ServiceIdentity | null
  problems?: readonly InstanceProblem[]
}

/**
 * Writes a heartbeat, and reads the ledger's history as it was before.
 *
 * @throws ServiceMismatch if the ledger belongs to a different service
 */
export async function writeHeartbeat(
  db: Database,
  instance: Instance,
  { lookedFor: { beats, request } = nothingLookedFor, service = null, problems = [] }: HeartbeatOptions = {},
): Promise<HeartbeatAnswer> {
  const { ledger, hasLedger, ...row } = await queryOne<
    Omit<HeartbeatAnswer, 'history'> & HistoryReading & { hasLedger: boolean; ledger: LedgerBinding | null }
  >(
    db,
    `with beat as (
       insert into outboxd.instance as i (id, version, host, settings, problems) values ($1, $2, $3, $7, $8)
       on conflict (id) do update set beat_at = clock_timestamp(), beats = i.beats + 1, problems = excluded.problems,
         unbroken_since = case when ${hasNoGapSql('i')} then i.unbroken_since else clock_timestamp() end
       returning beats
     )
     select beat.beats::float8 as beats,
       exists (select from outboxd.submission s
         where s.state = 'sending' and not s.probing and s.instance_id <> $1 and ${isDeadSql('s.instance_id')}
       ) or exists (select from outboxd.request r
         where r.claim_id is not null and r.instance_id <> $1 and ${isDeadSql('r.instance_id')}
       ) as "hasOrphans",
       -- sees the heartbeats as they were before this one
       exists (select from outboxd.instance i where i.beat_at > clock_timestamp() + $6 * interval '1 ms') as "isClockBack",
       ${epochMsSql('clock_timestamp()')} as "dbMs",
       exists (select from outboxd.ledger l where l.settings = $7::jsonb) as "hasLedgersSettings",
       ${ledgerBindingSql} as ledger, h.is_new is not null as "hasLedger", ${historyColumnsSql}
     from beat left join outboxd.history($1, $4, $5) h on true`,
    [
      instance.id,
      instance.version,
      instance.host,
      beats,
      request,
      clockToleranceMs,
      JSON.stringify(instance.settings),
      JSON.stringify(problems.map((each) => ({ ...each, detail: boundText(each.detail, textCharsMax.excerpt) }))),
    ],
  )
  if (service !== null && ledger !== null) assertBindingMatchesService(ledger, service)
  const { isLost, recoveredAtMs, isNew, difference, missing, ...answer } = row
  return { ...answer, history: hasLedger ? { isLost, recoveredAtMs, isNew, difference, missing } : null }
}

/** Afterwards other instances take over at once. */
export async function noteInstanceStopped(db: Database, instanceId: string): Promise<void> {
  await db.query('update outboxd.instance set stopped_at = clock_timestamp() where id = $1', [instanceId])
}

/**
 * Reads submissions whose outcome nobody may know. A live instance keeps its claims, however old.
 *
 *     of others   a dead instance was sending them
 *     own         this instance claimed them. If it holds the claim no more, the ledger was restored, or refused the
 *                 outcome. A claim is held from before its COMMIT until its outcome is written
 */
export async function readOrphanedSubmissions(
  db: Database,
  instanceId: string,
  isClaimHeld: (submission: Pick<Submission, 'id' | 'claimId'>) => boolean,
): Promise<(Submission & { isOwn: boolean })[]> {
  const { rows } = await db.query<Submission & { isOwn: boolean }>(
    `select ${submissionColumnsSql}, s.instance_id = $1 as "isOwn" from outboxd.submission s
     where s.state = 'sending' and not s.probing and (s.instance_id = $1 or ${isDeadSql('s.instance_id')} and ${mayJudgeSql})
     order by s.instance_id = $1 limit 1000`,
    [instanceId],
  )
  return rows.filter((each) => !(each.isOwn && isClaimHeld(each)))
}

/**
 * Makes polls due again that a dead instance had fetched, and those that this instance had fetched but does not hold,
 * because their outcome could not be written.
 *
 * @returns how many polls are due again
 */
export async function takeOverPolls(
  pool: Pool,
  queue: PollQueue,
  { instanceId, isHeld }: { instanceId: string; isHeld(poll: PollClaim): boolean },
): Promise<number> {
  const { rows } = await pool.query<PollClaim & { isOwn: boolean }>(
    `select r.id as "requestId", r.claim_id as "claimId", r.instance_id = $1 as "isOwn"
     from outboxd.request r
     where r.claim_id is not null and (r.instance_id = $1 or ${isDeadSql('r.instance_id')} and ${mayJudgeSql})`,
    [instanceId],
  )
  const left = rows.filter((poll) => !(poll.isOwn && isHeld(poll)))
  if (left.length === 0) return 0
  return inTransaction(pool, async (db) => {
    // What is locked is left to the next round, so that one lock does not keep the other polls from being made.
    const { rows: locked } = await db.query<{ requestId: string }>(
      `select r.id as "requestId" from outboxd.request r join outboxd.submission s on s.id = r.submission_id
       where r.id = any($1::bigint[]) for no key update of s, r skip locked`,
      [left.map(({ requestId }) => requestId)],
    )
    const free = new Set(locked.map(({ requestId }) => requestId))
    const ended = await endPolls(
      db,
      left.filter(({ requestId }) => free.has(requestId)),
    )
    return queue.makeDue(
      db,
      ended.map(({ submissionId }) => submissionId),
    )
  })
}

export async function countLivingInstances(db: Database): Promise<number> {
  const { daemons } = await queryOne<{ daemons: number }>(
    db,
    `select count(*)::int as daemons from outboxd.instance i where ${isInstanceAliveSql('i')}`,
  )
  return daemons
}

export async function deleteStaleInstances(db: Database): Promise<void> {
  await db.query(`delete from outboxd.instance where beat_at < clock_timestamp() - interval '1 day'`)
}

/**
 * What happens after an instance's last heartbeat, by the database's clock:
 *
 *    2.5 s   the instance may not say for the next 5 s that others are dead
 *    3.5 s   the instance takes on no work (src/daemon/heartbeat.ts)
 *      5 s   the instance counts as dead, and with their next heartbeat others take over its submissions
 *      1 d   its row is deleted
 */
export const heartbeatSilenceMaxMs = 5_000

/** A smaller step back of the clock is ignored. Gradual corrections of a clock stay far below this. */
const clockToleranceMs = 2_000

export const isInstanceAliveSql = (instanceAlias: string) =>
  `(${instanceAlias}.stopped_at is null and ${instanceAlias}.beat_at > clock_timestamp() - interval '${heartbeatSilenceMaxMs} milliseconds')`

const isDeadSql = (instanceId: string) =>
  `not exists (select from outboxd.instance i where i.id = ${instanceId} and ${isInstanceAliveSql('i')})`

const hasNoGapSql = (instanceAlias: string) =>
  `(${instanceAlias}.stopped_at is null and ${instanceAlias}.beat_at > clock_timestamp() - interval '2.5 s')`

/**
 * True if instance $1 may say that others are dead. After an outage of the database every heartbeat is old, and this
 * instance may be the first to write again. So it waits until it has written heartbeats for 5 s without a gap: by then
 * the other live instances have written theirs, and their outcomes.
 */
const mayJudgeSql = `exists (
  select from outboxd.instance me
  where me.id = $1 and me.beat_at - me.unbroken_since > interval '${heartbeatSilenceMaxMs} milliseconds' and ${hasNoGapSql('me')}
)`
