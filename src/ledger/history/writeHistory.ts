import type pg from 'pg'
import { boundText } from '../../boundText.ts'
import { type Database, inTransaction } from '../../postgres/database.ts'
import { holdSlotsFromNow } from '../budget.ts'
import { clearProblems, raiseProblems } from '../problems.ts'
import { epochMs } from '../times.ts'
import { objectionMs } from './decideHistory.ts'
import { claimsWait } from './readHistory.ts'

/** While claims are made this is shared; whoever says until when they wait for a standby has it alone. */
const claimsLock = 7168

/** Opens the transaction of a claim: what it then reads of the history is in no claim's way to be changed. */
export const claimOpening = `select pg_advisory_xact_lock_shared(${claimsLock})`

/** So long claims will certainly wait for a standby from when it was said, whatever the server is set to by then. */
const waitForMs = 120_000

/**
 * Says that the history was found as it was agreed to, up to where, and until when every claim waits for a synchronous standby.
 *
 * Not while no standby is there: COMMITs hang then, and whoever gives the standby up should not have to wait for longer.
 *
 * The lock makes this come after each claim that waits for none: a server that has this has those, too. It waits for no standby itself:
 * one that has not heard of it yet has heard of an earlier end.
 */
export async function markHistory(pool: pg.Pool): Promise<void> {
  await inTransaction(pool, async (db) => {
    const { rows } = await db.query<{ isMine: boolean; wait: boolean }>(
      `select pg_try_advisory_xact_lock($1) as "isMine", ${claimsWait} as wait`,
      [claimsLock],
    )
    if (!rows[0]?.isMine) return
    await db.query(waitForNobody)
    await db.query(
      `update outboxd.history h set marked_at = clock_timestamp(), marked_lsn = n.safe_lsn,
         marked_event = (
           select id from (select id, at from outboxd.submission_event order by id desc limit 1) e
           where at between clock_timestamp() - interval '12 h' and clock_timestamp() -- an older one may be pruned at any moment
         ),
         system_id = coalesce(h.system_id, n.system_id), timeline = coalesce(h.timeline, n.timeline),
         synchronous_until = case when $1::boolean then clock_timestamp() + $2 * interval '1 ms' else h.synchronous_until end
       from outboxd.history_now() n
       where h.found_at is null and h.database_oid = n.database_oid and h.ledger_oid = n.ledger_oid
         and coalesce(h.system_id = n.system_id, true) and coalesce(h.timeline = n.timeline, true)`,
      [rows[0].wait, waitForMs],
    )
  })
}

/**
 * The database's clock was set back: what was found was found now, lest a failover waits for hours to go on; claims wait for a standby for
 * no longer than they would have been said to. In a transaction.
 */
export async function holdHistoryFromNow(db: Database): Promise<void> {
  await db.query(
    // Not by least(): it passes over NULL, and would say what nobody has found or promised.
    `update outboxd.history set found_at = case when found_at > clock_timestamp() then clock_timestamp() else found_at end,
       synchronous_until = case when synchronous_until > clock_timestamp() + $1 * interval '1 ms'
         then clock_timestamp() + $1 * interval '1 ms' else synchronous_until end
     where greatest(found_at, synchronous_until) > clock_timestamp()`,
    [waitForMs],
  )
}

/** For what another look would find again. */
const waitForNobody = 'set local synchronous_commit = local'

/** The subject of the one pause and the one problem. */
const kind = 'ledger_history'

/**
 * Stops everybody: nothing is sent in a ledger that may have lost what was sent. What was spent of the budget is lost with it, so that all
 * of it counts as spent for a whole window, from when the last request of before can have arrived. The server’s clock may be behind that
 * of before: a slot that was set later than now stays taken for as long as it was set for, as where the clock is noticed first. In a transaction.
 */
export async function raiseFound(
  db: Database,
  { detail, mayGoOn }: { detail: string; mayGoOn: boolean },
  { who, reachMs }: { who: string; reachMs: number },
): Promise<void> {
  await db.query(waitForNobody)
  const { rows } = await db.query<{ lastMark: string }>(
    `insert into outboxd.history as h (system_id, timeline, database_oid, ledger_oid, agreed_by, found_at, found, found_by, may_go_on)
     select system_id, timeline, database_oid, ledger_oid, 'nobody', clock_timestamp(), $1, $2, $3 from outboxd.history_now()
     on conflict (id) do update set found_at = coalesce(h.found_at, excluded.found_at), found = excluded.found,
       found_by = excluded.found_by, may_go_on = excluded.may_go_on
     where h.found_at is null or (h.may_go_on and not excluded.may_go_on)
     returning to_char(marked_at at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS "UTC"') as "lastMark"`,
    [detail, who, mayGoOn],
  )
  if (rows[0] === undefined) return
  await raiseHistoryPause(db, `the ledger’s history is another: ${detail}`)
  const then = mayGoOn
    ? 'Every claim had been waited for by a synchronous standby: sending goes on within seconds, unless a daemon knows better'
    : 'outboxd recover --dry-run shows what may have been sent, and outboxd recover goes on'
  const since = who.startsWith('operator')
    ? 'What was sent since its backup it may not know'
    : `A daemon last found it as it was at ${rows[0].lastMark}; what was sent after that it may not know`
  const words = `${detail}. ${since}. ${then}`
  await raiseProblems(db, [{ kind, subject: '', detail: words, retryInMs: mayGoOn ? objectionMs : null }])
  if (mayGoOn) return
  await holdSlotsFromNow(db)
  await db.query(
    `update outboxd.slot set lease = lease + 1, taken_by = null, set_at = clock_timestamp(),
       spent_on_submissions = 0, spent_on_polls = 0, spent_on_others = 0,
       free_at = greatest(free_at, clock_timestamp() + ($1 + (select window_ms from outboxd.budget)) * interval '1 ms')
     where permits > 0`,
    [reachMs],
  )
}

/** Agrees to what there is, as every claim had been waited for. @returns whether nobody knew better. In a transaction */
export async function agreeByProof(db: Database, who: string): Promise<boolean> {
  await db.query(waitForNobody)
  const { rowCount } = await db.query(
    `update outboxd.history h set ${agreed}, agreed_by = $1
     from outboxd.history_now() n
     where h.may_go_on and h.found_at < clock_timestamp() - $2 * interval '1 ms'
       and h.database_oid = n.database_oid and h.ledger_oid = n.ledger_oid`,
    [who, objectionMs],
  )
  if ((rowCount ?? 0) === 0) return false
  await clear(db, null)
  return true
}

/** Agrees to a ledger in which nothing has happened yet, as `migrate` does to one that it has made. In a transaction. */
export async function agreeToUnused(db: Database, who: string): Promise<void> {
  await db.query(
    `update outboxd.history h set ${agreed}, agreed_by = $1 from outboxd.history_now() n where h.found_at is null`,
    [who],
  )
}

/** Whether what was found is what a person has seen; it stays so until the transaction ends. */
export async function isAsSeen(db: Database, seenAtMs: number): Promise<boolean> {
  const { rowCount } = await db.query(
    `select from outboxd.history where abs(${epochMs('found_at')} - $1) < 1 for update`,
    [seenAtMs],
  )
  return (rowCount ?? 0) > 0
}

/**
 * A person agrees to what there is. In a transaction.
 *
 * @param isOutboxInDoubt rows that wait and were recorded before may have been sent, too
 */
export async function agreeByPerson(db: Database, who: string, isOutboxInDoubt: boolean): Promise<void> {
  await db.query(
    `update outboxd.history h set ${agreed}, agreed_by = $1,
       doubtful_before = case when $2::boolean then h.found_at + ${clocksDifferBy} else h.doubtful_before end
     from outboxd.history_now() n`,
    [who, isOutboxInDoubt],
  )
  await clear(db, null)
}

/** The ledger's, and of the hosts that write the rows' times. */
export const clocksDifferByMs = 5_000
export const clocksDifferBy = `interval '${clocksDifferByMs} ms'`

/** What was agreed to before may be later than now where a clock was set back; whoever remembers it goes by the order. */
const agreed = `system_id = n.system_id, timeline = n.timeline, database_oid = n.database_oid, ledger_oid = n.ledger_oid,
  agreed_at = greatest(clock_timestamp(), h.agreed_at + interval '1 ms'), marked_at = clock_timestamp(), marked_lsn = n.safe_lsn,
  marked_event = null, synchronous_until = null, found_at = null, found = null, found_by = null, may_go_on = false`

async function raiseHistoryPause(db: Database, detail: string): Promise<void> {
  await db.query(
    `insert into outboxd.pause (reason, detail) values ('history', $1)
     on conflict (reason) do update set detail = excluded.detail`,
    [boundText(detail)],
  )
}

/** COMMITs wait no longer for a synchronous standby, and others rely on it that they do. In a transaction */
export async function pauseForStandby(db: Database, forMs: number): Promise<void> {
  await db.query(waitForNobody)
  if (!(await isAgreedTo(db))) return
  const words =
    'COMMITs in the ledger’s database wait no longer for a synchronous standby (synchronous_standby_names, synchronous_commit), and a standby that is promoted now would be trusted to have all of them'
  await raiseHistoryPause(db, words)
  await raiseProblems(db, [{ kind, subject: standby, detail: words, retryInMs: forMs }])
}

/** In a transaction. */
export async function endPauseForStandby(db: Database): Promise<void> {
  await db.query(waitForNobody)
  if (!(await isAgreedTo(db))) return
  await clear(db, [standby])
}

const standby = 'standby'

/** Whether nothing was found; it stays so until the transaction ends. */
async function isAgreedTo(db: Database): Promise<boolean> {
  const { rowCount } = await db.query('select from outboxd.history where found_at is null for share')
  return (rowCount ?? 0) > 0
}

/** Ends the pause, and the problems of these subjects; null: all of them. */
async function clear(db: Database, subjects: string[] | null): Promise<void> {
  await db.query(`delete from outboxd.pause where reason = 'history'`)
  await clearProblems(db, kind, subjects)
}
