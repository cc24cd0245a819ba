import type pg from 'pg'
import { type Database, epochMsSql, inTransaction } from '../postgres/database.ts'
import { beginClaimSql, type Limit, setLimit } from './budget.ts'
import { isInstanceAliveSql, settingsValidMs } from './instances.ts'
import type { KeyOnFailure } from './keyOrder.ts'
import { replaceProblems } from './problems.ts'

export interface AgreedSettings extends Agreement {
  /** The former limit and window if they have just changed. */
  before: Limit | null
}

/**
 * While their settings differ, all instances use the smallest limit, the longest window and one outbox.yaml. Each
 * instance calls this every few seconds, so that all change when the last different instance ends.
 */
export function applyStrictestSettings(pool: pg.Pool, own: InstanceSettings): Promise<AgreedSettings> {
  const apply = async (db: Database) => {
    await writeSettings(db, own)
    await useOwnFile(db, own)
    const agreement = computeAgreement(await readSettings(db), await readFileInUse(db))
    const before = await setLimit(db, agreement)
    const differences = agreement.differences.map((difference) => ({ ...difference, retryInMs: null }))
    await replaceProblems(db, 'settings_differ', differences)
    const isNew = before !== null && (before.requests !== agreement.requests || before.windowMs !== agreement.windowMs)
    return { ...agreement, before: isNew ? before : null }
  }
  return inTransaction(pool, apply, { openingSql: beginClaimSql })
}

/**
 * Says again what this instance was given.
 *
 * @returns false if any instance was given something else, or the ledger uses something else: then call
 * `applyStrictestSettings`
 */
export async function repeatSettingsIfAllAgree(db: Database, own: InstanceSettings): Promise<boolean> {
  const { rowCount } = await db.query(
    `update outboxd.instance_setting set said_at = clock_timestamp()
     where instance_id = $1 and not exists (
       select from outboxd.instance_setting other
       where (requests, window_ms, request_timeout_ms, key_on_failure, given) is distinct from ($2, $3, $4, $5, $6::jsonb)
     ) and exists (select from outboxd.ledger where rate_limit = $2 and window_ms = $3 and file_digest is not distinct from $7)`,
    [
      own.instanceId,
      own.requests,
      own.windowMs,
      own.requestTimeoutMs,
      own.keyOnFailure,
      JSON.stringify(own.given),
      own.given[outboxFileSettingName] ?? null,
    ],
  )
  return rowCount === 1
}

export async function withdrawInstanceSettings(db: Database, instanceId: string): Promise<void> {
  await db.query('delete from outboxd.instance_setting where instance_id = $1', [instanceId])
}

/** Locks the table, so that two instances see each other's settings. */
async function writeSettings(db: Database, own: InstanceSettings): Promise<void> {
  await db.query('lock table outboxd.instance_setting in share row exclusive mode')
  await db.query(
    `delete from outboxd.instance_setting where said_at < clock_timestamp() - interval '${settingsValidMs} milliseconds'`,
  )
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
 * Puts this instance's outbox.yaml in use, unless a running daemon has the file in use. A daemon that has just started
 * has no heartbeat yet.
 */
async function useOwnFile(db: Database, { instanceId, host, given }: InstanceSettings): Promise<void> {
  await db.query(
    `update outboxd.ledger l set file_digest = $1, file_since = clock_timestamp(), file_by = $2
     where $1::text is not null and file_digest is distinct from $1 and not exists (
       select from outboxd.instance_setting s where s.instance_id <> $3 and s.given ->> '${outboxFileSettingName}' = l.file_digest
         and not exists (select from outboxd.instance i where i.id = s.instance_id and not ${isInstanceAliveSql('i')})
     )`,
    [given[outboxFileSettingName] ?? null, `${instanceId.slice(0, 8)} on ${host}`, instanceId],
  )
}

async function readFileInUse(db: Database): Promise<FileInUse | null> {
  const { rows } = await db.query<FileInUse>(
    `select file_digest as digest, ${epochMsSql('file_since')} as "sinceMs", file_by as by
     from outboxd.ledger where file_digest is not null`,
  )
  return rows[0] ?? null
}

export async function isNoOtherOutboxFileInUse(db: Database, digest: string): Promise<boolean> {
  const { rowCount } = await db.query(
    'select from outboxd.ledger where file_digest is distinct from $1 and file_digest is not null',
    [digest],
  )
  return rowCount === 0
}

export async function readLongestRequestTimeoutMs(db: Database): Promise<number | null> {
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

export interface InstanceSettings {
  instanceId: string
  host: string
  requests: number
  windowMs: number
  requestTimeoutMs: number
  keyOnFailure: KeyOnFailure
  /** Other settings that instances should share, by variable or file. */
  given: Readonly<Record<string, string>>
}

interface Agreement {
  requests: number
  windowMs: number
  differences: { subject: string; detail: string }[]
}

interface FileInUse {
  digest: string
  sinceMs: number
  by: string
}

/** The key in `given` under which an instance has the digest of its outbox.yaml. */
export const outboxFileSettingName = 'outbox.yaml'

function computeAgreement(instances: readonly InstanceSettings[], fileInUse: FileInUse | null): Agreement {
  const requests = Math.min(...instances.map((each) => each.requests))
  const windowMs = Math.max(...instances.map((each) => each.windowMs))
  const inUse: Record<string, string> = {
    RATE_LIMIT_REQUESTS: `all use ${requests}`,
    RATE_LIMIT_WINDOW_SECONDS: `all use ${windowMs / 1000}`,
  }
  const all = instances.flatMap((instance) =>
    Object.entries(settingsOf(instance)).map(([name, value]) => ({ ...instance, name, value })),
  )
  const differences = [...Map.groupBy(all, ({ name }) => name)].flatMap(([name, said]) => {
    const values = [...new Set(said.map(({ value }) => value))].toSorted()
    if (values.length < 2) return []
    return said.map(({ instanceId, host, value }) => ({
      subject: `${instanceId.slice(0, 8)} on ${host}: ${name}`,
      detail:
        name === outboxFileSettingName && fileInUse !== null
          ? fileDetail(value, fileInUse)
          : `${name} is ${value} here, and the instances have ${values.join(' and ')}. Until they agree, ${inUse[name] ?? 'each instance keeps its own'}`,
    }))
  })
  return { requests, windowMs, differences }
}

const settingsOf = ({
  requests,
  windowMs,
  requestTimeoutMs,
  keyOnFailure,
  given,
}: InstanceSettings): Readonly<Record<string, string>> => ({
  RATE_LIMIT_REQUESTS: String(requests),
  RATE_LIMIT_WINDOW_SECONDS: String(windowMs / 1000),
  REQUEST_TIMEOUT_SECONDS: String(requestTimeoutMs / 1000),
  KEY_ON_FAILURE: keyOnFailure,
  ...given,
})

function fileDetail(digest: string, file: FileInUse): string {
  const since = new Date(file.sinceMs).toISOString()
  if (digest === file.digest)
    return `${outboxFileSettingName} has the digest ${digest} here, and this file is in use since ${since}`
  return `${outboxFileSettingName} has the digest ${digest} here, but the file with ${file.digest} is in use since ${since} (daemon ${file.by}). This daemon captures nothing and writes nothing back until all daemons have the same file (\`outboxd reload\`) or the others have stopped`
}
