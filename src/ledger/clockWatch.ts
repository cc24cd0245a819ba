import { type Database, epochMsSql, inTransaction, type Pool } from '../postgres/database.ts'
import { clockToleranceMs, isInstanceAliveSql } from './instances.ts'
import { raiseProblems, shortenProblemSubject } from './problems.ts'

/*
 * The database's clock says when waiting work is due. If the clock is set back, that work would wait until the clock
 * has caught up. So each instance stores the time every few seconds. An instance that finds a later stored time moves
 * the due times of waiting work back.
 */

const hostToleranceMs = 5_000
/** How long a jump is shown as a problem. */
const jumpIsToldForMs = 3_600_000
/** The subject of problems with the database's clock. Other subjects are hosts. */
const database = 'the database'

/** Moves the ledger's due times if the database's clock was set back. Also compares this host's clock with it. */
export async function moveDueTimesIfClockSetBack(
  pool: Pool,
  host: string,
  nowMs: () => number,
): Promise<{ wasSetBackByMs: number }> {
  const beforeMs = nowMs()
  const { rows } = await pool.query<{ dbMs: number; isTold: boolean }>(
    `update outboxd.clock set seen_at = clock_timestamp() where seen_at < clock_timestamp() + $1 * interval '1 ms'
     returning ${epochMsSql('seen_at')} as "dbMs", exists (select from outboxd.problem where kind = 'clock_off') as "isTold"`,
    [clockToleranceMs],
  )
  const [seen] = rows
  if (seen === undefined) return { wasSetBackByMs: await inTransaction(pool, followJump) }
  const aheadMs = computeHostClockLeadMs(beforeMs, nowMs(), seen.dbMs)
  if (seen.isTold || aheadMs !== 0) await writeHostProblem(pool, host, aheadMs)
  return { wasSetBackByMs: 0 }
}

/**
 * Returns by how much the host's clock is ahead of the database's; 0 if both may be right.
 * @param beforeMs the host's time before the database was asked
 */
export function computeHostClockLeadMs(beforeMs: number, afterMs: number, dbMs: number): number {
  const aheadMs = Math.max(0, beforeMs - dbMs) + Math.min(0, afterMs - dbMs)
  return Math.abs(aheadMs) > hostToleranceMs ? aheadMs : 0
}

/** Runs in a transaction. Does nothing if another instance has moved the times. */
async function followJump(db: Database): Promise<number> {
  await db.query('insert into outboxd.clock (seen_at) values (clock_timestamp()) on conflict do nothing')
  const { rows } = await db.query<{ backMs: number }>(
    `select ${epochMsSql('seen_at - clock_timestamp()')} as "backMs" from outboxd.clock for update`,
  )
  const backMs = rows[0]?.backMs ?? 0
  if (backMs < clockToleranceMs) return 0 // another instance did it
  await moveTimes(db, backMs)
  await db.query(
    `update outboxd.clock set seen_at = clock_timestamp(), jumps = jumps + 1, jump_ms = -$1::float8, jumped_at = clock_timestamp()`,
    [backMs],
  )
  const detail = `the database’s clock was set back by ${seconds(backMs)}. The times of waiting work were moved back, too`
  await raiseProblems(db, [{ kind: 'clock_off', subject: database, detail, retryInMs: null }])
  return backMs
}

async function writeHostProblem(db: Database, host: string, aheadMs: number): Promise<void> {
  await db.query(
    `delete from outboxd.problem where kind = 'clock_off' and case when subject = $1
       then seen_at not between clock_timestamp() - $2 * interval '1 ms' and clock_timestamp()
       when subject = $3 then $4
       else subject not in (select host from outboxd.instance i where ${isInstanceAliveSql('i')}) end`,
    [database, jumpIsToldForMs, shortenProblemSubject(host), aheadMs === 0],
  )
  if (aheadMs === 0) return
  const detail = `the clock of this host is ${seconds(aheadMs)} ${aheadMs > 0 ? 'ahead of' : 'behind'} the database’s`
  await raiseProblems(db, [{ kind: 'clock_off', subject: host, detail, retryInMs: null }])
}

const seconds = (ms: number) => `${Math.round(Math.abs(ms) / 100) / 10} s`

/**
 * Pauses that were set in the future last for their whole time from now. Moves the ledger and pauses first, as a claim
 * locks them, then records under way before queued ones, as an outcome locks its own record before the next queued
 * record of the key, and polls last.
 */
async function moveTimes(db: Database, backMs: number): Promise<void> {
  const back = `$1 * interval '1 ms'`
  const later = (column: string) =>
    `${column} = case when ${column} > clock_timestamp() then ${column} - ${back} else ${column} end`
  // A time of the last 10 s may have been written after the jump. If not, the record only seems younger than it is.
  const earlier = (column: string) =>
    `${column} = case when ${column} between clock_timestamp() - interval '10 s' and clock_timestamp() then ${column}
       else ${column} - ${back} end`
  await db.query(
    `update outboxd.pause set until = until + (clock_timestamp() - set_at),
       trial_until = trial_until + (clock_timestamp() - set_at), since = least(since, clock_timestamp())
     where set_at > clock_timestamp()`,
  )
  for (const statement of [
    `update outboxd.submission set ${earlier('sent_at')} where state = 'sending'`,
    `update outboxd.submission set ${earlier('accepted_at')}, ${earlier('unknown_since')}
     where ended_at is null and (state = 'accepted' or probing)`,
    `update outboxd.submission set ${later('due_at')} where state = 'queued'`,
    `update outboxd.submission set ${later('report_not_before')} where report_due`,
    `update outboxd.skipped_row set ${later('retry_at')}`,
    `update outboxd.problem set ${later('retry_at')}`,
    `update outboxd.instance set beat_at = least(beat_at, clock_timestamp()), started_at = started_at - ${back},
       unbroken_since = unbroken_since - ${back}
     where greatest(beat_at, started_at, unbroken_since) > clock_timestamp()`,
    `update outboxd.poll set due_at = due_at - ${back}, priority = priority + floor($1::float8 / 1000)::int
     where due_at > clock_timestamp()`,
  ])
    await db.query(statement, [backMs])
}
