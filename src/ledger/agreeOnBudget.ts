import type pg from 'pg'
import { type Database, inTransaction } from '../postgres/database.ts'
import { type Budget, fitSlots, isFitted } from './budget.ts'
import { settingsHoldMs } from './instanceLife.ts'
import { replaceProblems } from './problems.ts'
import { type Agreement, agree, type InstanceSettings } from './sharedSettings.ts'

/** What came of comparing settings. */
export interface Agreed extends Agreement {
  /** What held before, where it was something else; null where nothing has changed. */
  before: Budget | null
}

/**
 * Says what this instance was given, and makes hold for all what is safest while they differ: the smallest limit, the
 * longest window. Said again and again, so that it ends by itself when the last instance with other settings is gone.
 */
export async function agreeOnBudget(pool: pg.Pool, own: InstanceSettings): Promise<Agreed> {
  const standing = await sayAgain(pool, own)
  return standing === null ? agreeAnew(pool, own) : { ...standing, before: null }
}

const isOver = `said_at < clock_timestamp() - interval '${settingsHoldMs} milliseconds'`

/** The usual round, for which nobody waits. @returns null where there is more to do than to say again what was said */
async function sayAgain(db: Database, { instanceId }: InstanceSettings): Promise<Agreement | null> {
  const { rowCount } = await db.query(
    `update outboxd.instance_setting set said_at = clock_timestamp() where instance_id = $1
       and not exists (select from outboxd.instance_setting where ${isOver})
       and not exists (select from outboxd.problem where kind = 'settings_differ')`,
    [instanceId],
  )
  if (rowCount === 0) return null
  const agreement = agree(await readSettings(db))
  return agreement.differences.length === 0 && (await isFitted(db, agreement)) ? agreement : null
}

async function agreeAnew(pool: pg.Pool, own: InstanceSettings): Promise<Agreed> {
  return inTransaction(pool, async (db) => {
    await saySettings(db, own)
    const agreement = agree(await readSettings(db))
    const before = await fitSlots(db, agreement)
    await replaceProblems(
      db,
      'settings_differ',
      agreement.differences.map((difference) => ({ ...difference, retryInMs: null })),
    )
    const isNew = before !== null && (before.requests !== agreement.requests || before.windowMs !== agreement.windowMs)
    return { ...agreement, before: isNew ? before : null }
  })
}

/** Takes the instance's settings away, as it stops. */
export async function withdrawSettings(db: Database, instanceId: string): Promise<void> {
  await db.query('delete from outboxd.instance_setting where instance_id = $1', [instanceId])
}

/** Locked first of all, so that two instances never see each other half. */
async function saySettings(db: Database, own: InstanceSettings): Promise<void> {
  await db.query('lock table outboxd.instance_setting in share row exclusive mode')
  await db.query(`delete from outboxd.instance_setting where ${isOver}`)
  await db.query(
    `insert into outboxd.instance_setting (instance_id, host, requests, window_ms, request_timeout_ms, key_on_failure)
     values ($1, $2, $3, $4, $5, $6)
     on conflict (instance_id) do update set said_at = clock_timestamp()`,
    [own.instanceId, own.host, own.requests, own.windowMs, own.requestTimeoutMs, own.keyOnFailure],
  )
}

/** How long a request of the daemons that have said it takes at most; null where none has. */
export async function readLongestTimeout(db: Database): Promise<number | null> {
  const timeouts = (await readSettings(db)).map(({ requestTimeoutMs }) => requestTimeoutMs)
  return timeouts.length === 0 ? null : Math.max(...timeouts)
}

async function readSettings(db: Database): Promise<InstanceSettings[]> {
  const { rows } = await db.query<InstanceSettings>(
    `select instance_id as "instanceId", host, requests, window_ms::float8 as "windowMs",
       request_timeout_ms::float8 as "requestTimeoutMs", key_on_failure as "keyOnFailure"
     from outboxd.instance_setting order by instance_id`,
  )
  return rows
}
