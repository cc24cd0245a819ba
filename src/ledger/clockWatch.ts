import type pg from 'pg'
import { type Database, epochMs, inTransaction } from '../postgres/database.ts'
import { isAlive } from './instances.ts'
import { moveTimes } from './moveTimes.ts'
import { raiseProblems, subjectOf } from './problems.ts'

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
/** A reading with more doubt may have waited for a connection: it is made again on one that is there. */
const promptMs = 50
/** What a jump is told of, beside the names of hosts. */
const database = 'the database'
/** For so long a jump is told. */
const toldMs = 3_600_000

/** A reading of the database's clock beside the time that has gone by. */
interface Reading {
  dbMs: number
  uptimeMs: number
  /** By so much the one may have been read before or after the other. */
  doubtMs: number
}

/** What an instance remembers of its last look. */
interface Remembered extends Reading {
  jumps: number
}

export function createClockWatch(deps: ClockWatchDeps): ClockWatch {
  let last: Remembered | null = null
  return {
    async look() {
      const { look, remembered } =
        (await lookOnly(deps, last)) ?? (await inTransaction(deps.pool, (db) => lookAlone(deps, db, last)))
      last = remembered
      return look
    },
  }
}

/** What a look has come to. */
interface Looked {
  look: ClockLook
  remembered: Remembered
}

/** The usual look, for which nobody waits. @returns null where there is more to do than to note that it was made */
async function lookOnly(deps: ClockWatchDeps, last: Remembered | null): Promise<Looked | null> {
  const { isQuiet, now, jumps, jumpMs, hostAheadMs } = await measure(deps, deps.pool, last)
  if (!isQuiet || now.doubtMs > promptMs || jumpMs !== 0 || isHostOff(hostAheadMs)) return null
  await deps.pool.query('update outboxd.clock set seen_at = clock_timestamp()')
  return { look: { jumpMs, hostAheadMs }, remembered: { ...now, jumps } }
}

/** Looks while nobody else does: of several that notice a jump one moves the times. In a transaction */
async function lookAlone(deps: ClockWatchDeps, db: Database, last: Remembered | null): Promise<Looked> {
  await lockClock(db)
  const { now, jumps, jumpMs, hostAheadMs } = await measure(deps, db, last)
  if (jumpMs !== 0) await moveTimes(db, jumpMs)
  const told = await noteClock(db, jumpMs)
  await tellClock(db, deps.host, { told, hostAheadMs })
  return { look: { jumpMs, hostAheadMs }, remembered: { ...now, jumps: jumps + (jumpMs === 0 ? 0 : 1) } }
}

/** Reads the database's clock beside the time that goes by, and what has been seen of it. */
async function measure({ uptimeMs, nowMs }: ClockWatchDeps, db: Database, last: Remembered | null) {
  const beforeMs = uptimeMs()
  const { isQuiet, dbMs, ...seen } = await readClock(db)
  const doubtMs = (uptimeMs() - beforeMs) / 2
  const now = { dbMs, uptimeMs: beforeMs + doubtMs, doubtMs }
  return { isQuiet, now, jumps: seen.jumps, jumpMs: jumpOf(now, seen, last), hostAheadMs: nowMs() - dbMs }
}

/**
 * By how much the clock has jumped, as this instance measures it between two looks, less what others have noticed of it.
 * An instance that has not looked before, or not at this ledger, can still tell that the clock is earlier than somebody
 * has seen it: it jumped back by at least so much. Pure.
 */
export function jumpOf(
  now: Reading,
  seen: { seenMs: number; jumps: number; jumpMs: number },
  last: Remembered | null,
): number {
  const backMs = now.dbMs - seen.seenMs
  const measuredMs = measuredJump(now, seen, last)
  return backMs < -toleranceMs ? Math.min(backMs, measuredMs) : measuredMs
}

function measuredJump(now: Reading, seen: { jumps: number; jumpMs: number }, last: Remembered | null): number {
  // Of several that others have noticed only the last is known: they were there for each.
  if (last === null || seen.jumps > last.jumps + 1) return 0
  const notedMs = seen.jumps === last.jumps ? 0 : seen.jumpMs
  const doubtMs = now.doubtMs + last.doubtMs
  const isJump = (ms: number) => Math.abs(ms) > toleranceMs + doubtMs
  const wholeMs = now.dbMs - last.dbMs - (now.uptimeMs - last.uptimeMs)
  const restMs = wholeMs - notedMs
  // Rather later than earlier: a slot must not be free too soon.
  return isJump(wholeMs) && isJump(restMs) && wholeMs > 0 === restMs > 0 ? restMs + doubtMs : 0
}

/** Nobody else looks until the transaction ends, but for those that change nothing. */
async function lockClock(db: Database): Promise<void> {
  const { rowCount } = await db.query('select from outboxd.clock for update')
  if (rowCount === 1) return
  await db.query('insert into outboxd.clock (seen_at) values (clock_timestamp()) on conflict do nothing')
  await db.query('select from outboxd.clock for update')
}

interface SeenClock {
  dbMs: number
  seenMs: number
  jumps: number
  jumpMs: number
  /** It has been seen before, and nothing stands of it that may be over. */
  isQuiet: boolean
}

async function readClock(db: Database): Promise<SeenClock> {
  const { rows } = await db.query<SeenClock>(
    `select ${epochMs('clock_timestamp()')} as "dbMs", ${epochMs('seen_at')} as "seenMs", jumps::float8, coalesce(jump_ms, 0) as "jumpMs",
       seen_at is not null and not exists (select from outboxd.problem where kind = 'clock_off') as "isQuiet"
     from (select) once left join outboxd.clock on true`,
  )
  return rows[0] as SeenClock
}

/** @returns the last jump, for as long as it is told */
async function noteClock(db: Database, jumpMs: number): Promise<ToldJump | null> {
  const { rows } = await db.query<ToldJump & { isTold: boolean }>(
    `update outboxd.clock set seen_at = clock_timestamp(), jumps = jumps + case when $1::float8 = 0 then 0 else 1 end,
       jump_ms = case when $1 = 0 then jump_ms else $1 end,
       jumped_at = case when $1 = 0 then jumped_at else clock_timestamp() end
     returning jump_ms as "jumpMs", to_char(jumped_at at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS"Z"') as at,
       coalesce(jumped_at > clock_timestamp() - $2 * interval '1 ms', false) as "isTold"`,
    [jumpMs, toldMs],
  )
  return rows[0]?.isTold ? rows[0] : null
}

interface ToldJump {
  jumpMs: number
  at: string
}

const isHostOff = (aheadMs: number): boolean => Math.abs(aheadMs) > hostToleranceMs

/** A jump is told for an hour, a host's clock that differs for as long as it does and an instance runs there. */
async function tellClock(
  db: Database,
  host: string,
  { told, hostAheadMs }: { told: ToldJump | null; hostAheadMs: number },
): Promise<void> {
  const standing = [
    ...(told === null ? [] : [{ subject: database, detail: jumpMessage(told) }]),
    ...(isHostOff(hostAheadMs) ? [{ subject: host, detail: hostMessage(hostAheadMs) }] : []),
  ]
  // Of these two nobody else speaks here; of another host its own instances do, while they live.
  await db.query(
    `delete from outboxd.problem where kind = 'clock_off' and subject <> all($1)
       and (subject = any($2) or subject not in (select host from outboxd.instance i where ${isAlive('i')}))`,
    [standing.map(({ subject }) => subjectOf(subject)), [database, host].map(subjectOf)],
  )
  await raiseProblems(
    db,
    standing.map((problem) => ({ kind: 'clock_off', retryInMs: null, ...problem })),
  )
}

const seconds = (ms: number) => `${Math.round(Math.abs(ms) / 100) / 10} s`

const jumpMessage = ({ jumpMs, at }: ToldJump) =>
  `the database’s clock jumped ${jumpMs < 0 ? 'back' : 'forward'} by ${seconds(jumpMs)}, noticed ${at}; what waits for its time was moved with it`

const hostMessage = (aheadMs: number) =>
  `the clock of this host is ${seconds(aheadMs)} ${aheadMs > 0 ? 'ahead of' : 'behind'} the database’s`
