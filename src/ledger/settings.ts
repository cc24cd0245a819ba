import { type Database, inTransaction, type Pool, queryOne } from '../postgres/database.ts'
import { requestOverAfterMs } from '../requestDurations.ts'
import { beginClaimSql } from './budget.ts'
import { tryLockCapture } from './capture.ts'
import { type Instance, isInstanceAliveSql } from './instances.ts'
import { tryLockWriteBack } from './reports.ts'

/**
 * The settings that all daemons of a ledger share: the values of variables as texts, by name, the digests of
 * outbox.yaml and of the mapping files, and what these mean to the role (`readFileSettings`).
 */
export type Settings = Readonly<Record<string, string>>

/**
 * Reads the settings of the ledger, or sets those of this daemon, which is an event. Each daemon calls this at its start
 * and every few seconds. A daemon with other settings than the ledger's sets its own in two cases only:
 *
 *     it starts    all daemons with the ledger's have stopped by themselves
 *     it runs      these stopped more than 20 s ago, or were silent for 60 s in which this daemon had no gap
 *
 * So a host that comes back with old files changes nothing, also while the last daemon with the right ones restarts. A
 * rolling change takes effect soon after the last old daemon has stopped.
 *
 * @returns the settings that the ledger has now; null if it has none and another daemon captures or writes back
 */
export async function readOrSetSettings(pool: Pool, instance: Instance): Promise<Settings | null> {
  const { id, settings: own } = instance
  const { rows } = await pool.query<{ settings: Settings | null; areKept: boolean }>(
    `select l.settings, l.settings is not distinct from $2::jsonb or ${hasHolderSql} as "areKept" from outboxd.ledger l`,
    [id, JSON.stringify(own)],
  )
  const [ledger] = rows
  if (ledger === undefined || ledger.areKept) return ledger?.settings ?? null
  return (await inTransaction(pool, (db) => setSettings(db, instance), { openingSql: beginClaimSql }))
    ? own
    : ledger.settings
}

/** True if a daemon other than $1 has the settings of the ledger, `l`, or may soon be back with them. */
const hasHolderSql = `exists (
  select from outboxd.instance i left join outboxd.instance me on me.id = $1
  where i.id <> $1 and i.settings = l.settings and case
    when i.stopped_at is not null then me.id is not null and i.stopped_at > clock_timestamp() - interval '20 s'
    else me.id is null or not ${isInstanceAliveSql('me')} or me.beat_at - me.unbroken_since < interval '60 s'
      or i.beat_at > clock_timestamp() - interval '60 s' end
)`

/**
 * Keeps the settings as they are until the end of the transaction. Call this before a change is written that depends on
 * them, and compare them then.
 */
export async function lockSettings(db: Database): Promise<void> {
  await db.query("select pg_advisory_xact_lock_shared(7167, 'outboxd.submission'::regclass::oid::int)")
}

async function tryLockSettingsToChange(db: Database): Promise<boolean> {
  const { locked } = await queryOne<{ locked: boolean }>(
    db,
    "select pg_try_advisory_xact_lock(7167, 'outboxd.submission'::regclass::oid::int) as locked",
  )
  return locked
}

/**
 * Takes the locks of capture, write-back and commands, so that nothing is committed that was done with other files.
 * Writes the instance's first heartbeat, too, because until then other daemons would not know that it has these
 * settings.
 *
 * @returns false if another daemon captures or writes back, a command writes, or a daemon has the ledger's settings
 *   after all
 */
async function setSettings(db: Database, { id, host, version, settings }: Instance): Promise<boolean> {
  const own = JSON.stringify(settings)
  if (!(await tryLockCapture(db)) || !(await tryLockWriteBack(db)) || !(await tryLockSettingsToChange(db))) return false
  const { rowCount } = await db.query(
    `with before as (
       select settings from outboxd.ledger
     ), changed as (
       update outboxd.ledger l set settings = $2, settings_since = clock_timestamp(), settings_by = $3
       where not ${hasHolderSql} returning 1
     )
     insert into outboxd.operator_act (act, who, reason, detail)
     select 'settings', $3, case when settings is null then 'the first daemon starts'
         else 'no daemon has the former settings' end,
       (select jsonb_object_agg(coalesce(f.key, t.key), jsonb_build_array(f.value, t.value))
        from jsonb_each(coalesce(before.settings, '{}')) f full join jsonb_each($2) t on t.key = f.key
        where f.value is distinct from t.value)
     from before, changed`,
    [id, own, `daemon ${id.slice(0, 8)} on ${host}`],
  )
  if (rowCount !== 1) return false
  await db.query(
    'insert into outboxd.instance (id, version, host, settings) values ($1, $2, $3, $4) on conflict (id) do nothing',
    [id, version, host, own],
  )
  return true
}

export async function readSettings(db: Database): Promise<Settings | null> {
  const { rows } = await db.query<{ settings: Settings | null }>('select settings from outboxd.ledger')
  return rows[0]?.settings ?? null
}

/** True if the ledger has these settings. Only then a daemon captures and writes back. */
export async function hasSettings(db: Database, own: Settings): Promise<boolean> {
  const { rowCount } = await db.query('select from outboxd.ledger where settings = $1::jsonb', [JSON.stringify(own)])
  return rowCount === 1
}

/** Says in what the settings of a daemon differ from the ledger's, such as `KEY_ON_FAILURE is block, not continue`. */
export function describeDifferences(own: Settings, ledger: Settings): string {
  const names = [...new Set([...Object.keys(own), ...Object.keys(ledger)])].sort()
  return names
    .filter((name) => own[name] !== ledger[name])
    .map((name) => describeDifference(name, own[name], ledger[name]))
    .join('; ')
}

function describeDifference(name: string, own: string | undefined, ledger: string | undefined): string {
  if (own === undefined) return `${name} is missing`
  if (ledger === undefined) return `${name} is not in the ledger`
  return isDigestOfFile(name) ? `${name} differs` : `${name} is ${own}, not ${ledger}`
}

export const isDigestOfFile = (name: string): boolean => name === 'outbox.yaml' || name.startsWith('mapping of ')

/** How long after its claim a request may still arrive, whichever daemon made it. */
export async function readRequestOverAfterMs(db: Database): Promise<number> {
  const { timeoutMs } = await queryOne<{ timeoutMs: number | null }>(
    db,
    `select max((settings ->> 'REQUEST_TIMEOUT_SECONDS')::float8) * 1000 as "timeoutMs" from (
       select settings from outboxd.ledger union all select settings from outboxd.instance
     ) given`,
  )
  return requestOverAfterMs(timeoutMs ?? usualTimeoutMs)
}

/** If no daemon has run with this ledger. */
const usualTimeoutMs = 30_000
