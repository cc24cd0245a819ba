import type pg from 'pg'
import { type Database, inTransaction } from './database.ts'
import { clearProblems, raiseProblems } from './ledger/problems.ts'
import { silentMs } from './ledger/takeover.ts'
import { moveTimes } from './moveTimes.ts'

/** The database's clock, as it was looked at. Milliseconds. */
export interface ClockLook {
  /** By how much it had jumped since it was last looked at, 0 where it had not. */
  jumpMs: number
  /** What this host's clock is ahead of it. */
  hostAheadMs: number
}

export interface ClockWatch {
  /** Looks at the database's clock; where it has jumped, what the ledger has in time jumps with it. */
  look(): Promise<ClockLook>
}

export interface ClockWatchDeps {
  pool: pg.Pool
  host: string
  nowMs(): number
  /** Time that has gone by whatever anybody's clock says: since the machine was started, sleep included. */
  uptimeMs(): number
}

/** A clock that is slewed, and the way to the database, stay far below. */
const toleranceMs = 2_000
/** A host whose clock differs by more is said to. */
const hostToleranceMs = 5_000
/** What a jump is told of, beside the names of hosts. */
const database = 'the database'
/** For so long a jump is told. */
const toldMs = 3_600_000

/** What an instance remembers of its last look, to notice a jump forward. */
interface Remembered {
  dbMs: number
  uptimeMs: number
  jumps: number
}

export function createClockWatch(deps: ClockWatchDeps): ClockWatch {
  let last: Remembered | null = null
  return {
    async look() {
      const { look, remembered } = await inTransaction(deps.pool, async (db) => {
        const seen = await lockClock(db)
        const beforeMs = deps.uptimeMs()
        const dbMs = await readClock(db)
        // Where between the two the database looked is not known.
        const uptimeMs = (beforeMs + deps.uptimeMs()) / 2
        const hostAheadMs = deps.nowMs() - dbMs
        const jumpMs = jumpOf({ dbMs, uptimeMs }, seen, last)
        if (jumpMs !== 0) await moveTimes(db, jumpMs)
        await noteClock(db, jumpMs)
        await tellClock(db, deps.host, hostAheadMs)
        const jumps = seen.jumps + (jumpMs === 0 ? 0 : 1)
        return { look: { jumpMs, hostAheadMs }, remembered: { dbMs, uptimeMs, jumps } }
      })
      last = remembered
      return look
    },
  }
}

/**
 * By how much the clock has jumped. Back: it is earlier than somebody has seen it, by at least so much. Forward: it has
 * gone further than the time that has gone by since this instance looked, and nobody else has noticed it since. Pure.
 */
export function jumpOf(
  now: { dbMs: number; uptimeMs: number },
  seen: { seenMs: number; jumps: number; jumpMs: number },
  last: Remembered | null,
): number {
  const backMs = now.dbMs - seen.seenMs
  if (backMs < -toleranceMs) return backMs
  if (last === null) return 0
  const forwardMs = now.dbMs - last.dbMs - (now.uptimeMs - last.uptimeMs)
  const isNoted = seen.jumps !== last.jumps && Math.abs(seen.jumpMs - forwardMs) < toleranceMs
  return forwardMs > toleranceMs && !isNoted ? forwardMs : 0
}

async function lockClock(db: Database): Promise<{ seenMs: number; jumps: number; jumpMs: number }> {
  await db.query('insert into outboxd.clock (seen_at) values (clock_timestamp()) on conflict do nothing')
  const { rows } = await db.query<{ seenMs: number; jumps: number; jumpMs: number }>(
    `select extract(epoch from seen_at)::float8 * 1000 as "seenMs", jumps::float8, coalesce(jump_ms, 0) as "jumpMs"
     from outboxd.clock for update`,
  )
  return rows[0] as (typeof rows)[0]
}

async function readClock(db: Database): Promise<number> {
  const { rows } = await db.query<{ ms: number }>('select extract(epoch from clock_timestamp())::float8 * 1000 as ms')
  return rows[0]?.ms ?? 0
}

async function noteClock(db: Database, jumpMs: number): Promise<void> {
  await db.query(
    `update outboxd.clock set seen_at = clock_timestamp(), jumps = jumps + case when $1::float8 = 0 then 0 else 1 end,
       jump_ms = case when $1 = 0 then jump_ms else $1 end,
       jumped_at = case when $1 = 0 then jumped_at else clock_timestamp() end`,
    [jumpMs],
  )
}

/** A jump is told for an hour, a host's clock that differs for as long as it does and an instance runs there. */
async function tellClock(db: Database, host: string, hostAheadMs: number): Promise<void> {
  const { rows } = await db.query<{ jumpMs: number; at: string }>(
    `select jump_ms as "jumpMs", to_char(jumped_at at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS"Z"') as at
     from outboxd.clock where jumped_at > clock_timestamp() - $1 * interval '1 ms'`,
    [toldMs],
  )
  await db.query(
    `delete from outboxd.problem where kind = 'clock_off' and subject <> $1 and subject not in (
       select host from outboxd.instance where beat_at > clock_timestamp() - $2 * interval '1 ms')`,
    [database, silentMs],
  )
  await clockProblems(db, database, rows.map(({ jumpMs, at }) => jumpWords(jumpMs, at))[0] ?? null)
  await clockProblems(db, host, Math.abs(hostAheadMs) > hostToleranceMs ? hostWords(hostAheadMs) : null)
}

async function clockProblems(db: Database, subject: string, detail: string | null): Promise<void> {
  if (detail === null) await clearProblems(db, 'clock_off', [subject])
  else await raiseProblems(db, [{ kind: 'clock_off', subject, detail, retryInMs: null }])
}

const seconds = (ms: number) => `${Math.round(Math.abs(ms) / 100) / 10} s`

const jumpWords = (jumpMs: number, at: string) =>
  `the database’s clock jumped ${jumpMs < 0 ? 'back' : 'forward'} by ${seconds(jumpMs)}, noticed ${at}; what waits for its time was moved with it`

const hostWords = (aheadMs: number) =>
  `the clock of this host is ${seconds(aheadMs)} ${aheadMs > 0 ? 'ahead of' : 'behind'} the database’s`
