import type pg from 'pg'
import { boundText } from '../../boundText.ts'
import { type Database, epochMsSql, inTransaction } from '../../postgres/database.ts'
import { restartSlotsAfterClockSetBack } from '../budget.ts'
import { clearProblems, raiseProblems } from '../problems.ts'

/** Notes that the history is unchanged, and the last event, which must exist from now on. */
export async function markHistoryUnchanged(pool: pg.Pool): Promise<void> {
  await inTransaction(pool, async (db) => {
    await db.query(waitForNoStandby)
    await db.query(
      `update outboxd.history h set marked_at = clock_timestamp(),
         marked_event = (
           select id from (select id, at from outboxd.submission_event order by id desc limit 1) e
           where at between clock_timestamp() - interval '12 h' and clock_timestamp() -- an older one may be pruned
         ),
         system_id = coalesce(h.system_id, n.system_id), timeline = coalesce(h.timeline, n.timeline)
       from outboxd.history_now() n
       where h.found_at is null and h.database_oid = n.database_oid and h.ledger_oid = n.ledger_oid
         and coalesce(h.system_id = n.system_id, true) and coalesce(h.timeline = n.timeline, true)`,
    )
  })
}

/** If this write is lost, the next check repeats it. */
const waitForNoStandby = 'set local synchronous_commit = local'

const kind = 'ledger_history'
const standby = 'standby'

/**
 * Stops all instances, because a ledger that may have lost sent records must not send. All slots count as spent for a
 * window after the last possible request, because the budget may be lost, too. Runs in a transaction.
 */
export async function raiseHistoryProblem(
  db: Database,
  detail: string,
  { who, reachMs }: { who: string; reachMs: number },
): Promise<void> {
  await db.query(waitForNoStandby)
  const { rows } = await db.query<{ lastMark: string }>(
    `insert into outboxd.history as h (system_id, timeline, database_oid, ledger_oid, agreed_by, found_at, found, found_by)
     select system_id, timeline, database_oid, ledger_oid, 'nobody', clock_timestamp(), $1, $2 from outboxd.history_now()
     on conflict (id) do update set found_at = excluded.found_at, found = excluded.found, found_by = excluded.found_by
     where h.found_at is null
     returning to_char(marked_at at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS "UTC"') as "lastMark"`,
    [detail, who],
  )
  if (rows[0] === undefined) return
  await raiseHistoryPause(db, `the ledger may have lost committed data: ${detail}`)
  const since = who.startsWith('operator')
    ? 'The ledger may not know what was sent since its backup'
    : `The ledger may not know what was sent after ${rows[0].lastMark}, when a daemon last found it unchanged`
  const words = `${detail}. ${since}. \`outboxd recover --dry-run\` shows what may have been sent, and \`outboxd recover\` settles it`
  await raiseProblems(db, [{ kind, subject: '', detail: words, retryInMs: null }])
  await restartSlotsAfterClockSetBack(db)
  await db.query(
    `update outboxd.slot set lease = lease + 1, taken_by = null, set_at = clock_timestamp(),
       spent_on_submissions = 0, spent_on_polls = 0, spent_on_others = 0,
       free_at = greatest(free_at, clock_timestamp() + ($1 + (select window_ms from outboxd.budget)) * interval '1 ms')
     where permits > 0`,
    [reachMs],
  )
}

/** In a transaction. */
export async function agreeToHistoryByDaemon(db: Database, who: string): Promise<void> {
  await db.query(waitForNoStandby) // a promoted server has none yet
  await db.query(
    `update outboxd.history h set ${agreedSql}, agreed_by = $1 from outboxd.history_now() n where h.found_at is null`,
    [who],
  )
}

/** Locks the finding, if it is the one that the operator has seen. */
export async function lockSuspectedLossIfUnchanged(db: Database, seenAtMs: number): Promise<boolean> {
  const { rowCount } = await db.query(
    `select from outboxd.history where abs(${epochMsSql('found_at')} - $1) < 1 for update`,
    [seenAtMs],
  )
  return (rowCount ?? 0) > 0
}

/** In a transaction. */
export async function acceptLossByOperator(db: Database, who: string, isOutboxInDoubt: boolean): Promise<void> {
  await db.query(
    `update outboxd.history h set ${agreedSql}, agreed_by = $1,
       doubtful_before = case when $2::boolean then h.found_at + ${clockSkewSql} else h.doubtful_before end
     from outboxd.history_now() n`,
    [who, isOutboxInDoubt],
  )
  await endHistoryPause(db, null)
}

/** Between the ledger and the hosts that write rows. */
export const clockSkewMaxMs = 5_000
export const clockSkewSql = `interval '${clockSkewMaxMs} ms'`

/** Instances compare agreements by their order, so it must rise even if a clock was set back. */
const agreedSql = `system_id = n.system_id, timeline = n.timeline, database_oid = n.database_oid, ledger_oid = n.ledger_oid,
  agreed_at = greatest(clock_timestamp(), h.agreed_at + interval '1 ms'), marked_at = clock_timestamp(),
  marked_event = null, found_at = null, found = null, found_by = null`

/** Pauses all instances while LEDGER_STANDBY is synchronous and COMMITs wait for no standby. */
export async function updateStandbyPause(pool: pg.Pool, isMissed: boolean): Promise<void> {
  await inTransaction(pool, async (db) => {
    await db.query(waitForNoStandby)
    const { rowCount } = await db.query('select from outboxd.history where found_at is null for share')
    if (rowCount === 0) return
    if (!isMissed) return endHistoryPause(db, [standby])
    await raiseHistoryPause(db, standbyMissingMessage)
    await raiseProblems(db, [{ kind, subject: standby, detail: standbyMissingMessage, retryInMs: null }])
  })
}

async function raiseHistoryPause(db: Database, detail: string): Promise<void> {
  await db.query(
    `insert into outboxd.pause (reason, detail) values ('history', $1)
     on conflict (reason) do update set detail = excluded.detail`,
    [boundText(detail)],
  )
}

async function endHistoryPause(db: Database, subjects: string[] | null): Promise<void> {
  await db.query(`delete from outboxd.pause where reason = 'history'`)
  await clearProblems(db, kind, subjects)
}

export const standbyMissingMessage =
  'LEDGER_STANDBY is synchronous, but COMMITs in the ledger’s database wait for no synchronous standby (synchronous_standby_names, synchronous_commit). Nothing is sent. Give the server its standby again, or remove LEDGER_STANDBY'
