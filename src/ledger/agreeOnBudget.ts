import type pg from 'pg'
import { type Database, inTransaction } from '../postgres/database.ts'
import { type Budget, fitSlots, isFitted } from './budget.ts'
import { isAlive, settingsHoldMs } from './instanceLife.ts'
import { replaceProblems } from './problems.ts'
import { type Agreement, agree, type FileInForce, type InstanceSettings, outboxFile } from './sharedSettings.ts'
import { epochMs } from './times.ts'

/** What came of comparing settings. */
export interface Agreed extends Agreement {
  /** What held before, where it was something else; null where nothing has changed. */
  before: Budget | null
}

/**
 * Says what this instance was given, and makes hold for all what is safest while they differ: the smallest limit, the
 * longest window, and the outbox.yaml of the daemons that run with it already. Said again and again, so that it ends by itself when the last instance with other settings is gone.
 */
export async function agreeOnBudget(pool: pg.Pool, own: InstanceSettings): Promise<Agreed> {
  const standing = await sayAgain(pool, own)
  return standing === null ? agreeAnew(pool, own) : { ...standing, before: null }
}

const isOver = `said_at < clock_timestamp() - interval '${settingsHoldMs} milliseconds'`

/** The usual round, for which nobody waits. @returns null where there is more to do than to say again what was said */
async function sayAgain(db: Database, { instanceId, given }: InstanceSettings): Promise<Agreement | null> {
  const { rowCount } = await db.query(
    `update outboxd.instance_setting set said_at = clock_timestamp() where instance_id = $1 and given = $2::jsonb
       and not exists (select from outboxd.outbox where is_current and file_digest is distinct from $3)
       and not exists (select from outboxd.instance_setting where ${isOver})
       and not exists (select from outboxd.problem where kind = 'settings_differ')`,
    [instanceId, JSON.stringify(given), given[outboxFile] ?? null],
  )
  if (rowCount === 0) return null
  const agreement = agree(await readSettings(db), null)
  return agreement.differences.length === 0 && (await isFitted(db, agreement)) ? agreement : null
}

async function agreeAnew(pool: pg.Pool, own: InstanceSettings): Promise<Agreed> {
  return inTransaction(pool, async (db) => {
    await saySettings(db, own)
    await takeFileIntoForce(db, own)
    const agreement = agree(await readSettings(db), await readFileInForce(db))
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
    `insert into outboxd.instance_setting (instance_id, host, requests, window_ms, request_timeout_ms, key_on_failure, given)
     values ($1, $2, $3, $4, $5, $6, $7)
     on conflict (instance_id) do update set said_at = clock_timestamp(), given = excluded.given`,
    [
      own.instanceId,
      own.host,
      own.requests,
      own.windowMs,
      own.requestTimeoutMs,
      own.keyOnFailure,
      JSON.stringify(own.given),
    ],
  )
}

/**
 * The outbox.yaml of this instance is in force from now on, unless a daemon runs that has the one in force until now. A daemon that has
 * said nothing for 12 s does not run; one that has just started has given no sign of life yet.
 */
async function takeFileIntoForce(db: Database, { instanceId, host, given }: InstanceSettings): Promise<void> {
  await db.query(
    `update outboxd.outbox o set file_digest = $1, file_since = clock_timestamp(), file_by = $2
     where is_current and $1::text is not null and file_digest is distinct from $1 and not exists (
       select from outboxd.instance_setting s where s.instance_id <> $3 and s.given ->> '${outboxFile}' = o.file_digest
         and not exists (select from outboxd.instance i where i.id = s.instance_id and not ${isAlive('i')})
     )`,
    [given[outboxFile] ?? null, `${instanceId.slice(0, 8)} on ${host}`, instanceId],
  )
}

async function readFileInForce(db: Database): Promise<FileInForce | null> {
  const { rows } = await db.query<FileInForce>(
    `select file_digest as digest, ${epochMs('file_since')} as "sinceMs", file_by as by
     from outboxd.outbox where is_current and file_digest is not null`,
  )
  return rows[0] ?? null
}

/** Whether rows are captured and written back by this file. */
export async function isFileInForce(db: Database, digest: string): Promise<boolean> {
  const { rowCount } = await db.query(
    'select from outboxd.outbox where is_current and file_digest is distinct from $1 and file_digest is not null',
    [digest],
  )
  return rowCount === 0
}

/** How long a request of the daemons that have said it takes at most; null where none has. */
export async function readLongestTimeout(db: Database): Promise<number | null> {
  const timeouts = (await readSettings(db)).map(({ requestTimeoutMs }) => requestTimeoutMs)
  return timeouts.length === 0 ? null : Math.max(...timeouts)
}

async function readSettings(db: Database): Promise<InstanceSettings[]> {
  const { rows } = await db.query<InstanceSettings>(
    `select instance_id as "instanceId", host, requests, window_ms::float8 as "windowMs",
       request_timeout_ms::float8 as "requestTimeoutMs", key_on_failure as "keyOnFailure", given
     from outboxd.instance_setting order by instance_id`,
  )
  return rows
}
