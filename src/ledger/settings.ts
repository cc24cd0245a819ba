import { type Database, inTransaction, type Pool } from '../postgres/database.ts'
import { beginClaimSql } from './budget.ts'
import { isInstanceAliveSql } from './instances.ts'

/**
 * The settings that all daemons of a ledger share: the values of variables as texts, by name, and the digests of
 * outbox.yaml and of the mapping files.
 */
export type Settings = Readonly<Record<string, string>>

/** The daemon that reads or sets the ledger's settings. */
interface SettingInstance {
  id: string
  host: string
  version: string
}

/**
 * Reads the settings of the ledger. If no living daemon has these, the ledger gets those of this daemon instead, which
 * is an event. So a host that comes back with old files changes nothing, and a rolling change takes effect when the last
 * old daemon stops. Each daemon calls this at its start and every few seconds.
 *
 * @param own what this daemon was given
 * @returns the settings that the ledger has now; null if it has none and another transaction holds the capture lock
 */
export async function readOrSetSettings(
  pool: Pool,
  instance: SettingInstance,
  own: Settings,
): Promise<Settings | null> {
  const { rows } = await pool.query<{ settings: Settings | null; areKept: boolean }>(
    `select l.settings, l.settings is not distinct from $2::jsonb or ${hasLivingHolderSql} as "areKept"
     from outboxd.ledger l`,
    [instance.id, JSON.stringify(own)],
  )
  const [ledger] = rows
  if (ledger === undefined || ledger.areKept) return ledger?.settings ?? null
  return (await inTransaction(pool, (db) => setSettings(db, instance, own), { openingSql: beginClaimSql }))
    ? own
    : ledger.settings
}

/** True if a living daemon other than $1 has the settings of the ledger, `l`. */
const hasLivingHolderSql = `exists (
  select from outboxd.instance i where i.id <> $1 and i.settings = l.settings and ${isInstanceAliveSql('i')}
)`

/** The lock of capture: no other daemon commits what it has mapped with other files. @returns false if it is taken */
async function setSettings(db: Database, { id, host }: SettingInstance, own: Settings): Promise<boolean> {
  const { rows } = await db.query<{ locked: boolean }>(
    "select pg_try_advisory_xact_lock(7161, 'outboxd.submission'::regclass::oid::int) as locked",
  )
  if (!rows[0]?.locked) return false
  const { rowCount } = await db.query(
    `with before as (
       select settings from outboxd.ledger
     ), changed as (
       update outboxd.ledger l set settings = $2, settings_since = clock_timestamp(), settings_by = $3
       where not ${hasLivingHolderSql} returning 1
     )
     insert into outboxd.operator_act (act, who, reason, detail)
     select 'settings', $3, case when settings is null then 'the first daemon starts'
         else 'no living daemon has the former settings' end,
       (select jsonb_object_agg(coalesce(f.key, t.key), jsonb_build_array(f.value, t.value))
        from jsonb_each(coalesce(before.settings, '{}')) f full join jsonb_each($2) t on t.key = f.key
        where f.value is distinct from t.value)
     from before, changed`,
    [id, JSON.stringify(own), `daemon ${id.slice(0, 8)} on ${host}`],
  )
  return rowCount === 1
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
  return isVariable(name) ? `${name} is ${own}, not ${ledger}` : `${name} differs`
}

const isVariable = (name: string) => /^[A-Z_]+$/.test(name)

/** The longest time of a request that any daemon may have given, milliseconds; null if no daemon ever ran. */
export async function readLongestRequestTimeoutMs(db: Database): Promise<number | null> {
  const { rows } = await db.query<{ ms: number | null }>(
    `select max((settings ->> 'REQUEST_TIMEOUT_SECONDS')::float8) * 1000 as ms from (
       select settings from outboxd.ledger union all select settings from outboxd.instance
     ) given`,
  )
  return rows[0]?.ms ?? null
}
