import type pg from 'pg'
import { type Database, epochMsSql, inTransaction } from '../postgres/database.ts'
import { type Budget, fitSlots, isBudgetFitted } from './budget.ts'
import { isAliveSql, settingsHoldMs } from './instances.ts'
import type { KeyOnFailure } from './keyOrder.ts'
import { replaceProblems } from './problems.ts'

export interface AgreedSettings extends Agreement {
  /** The budget before; null if it is the same. */
  before: Budget | null
}

/**
 * Writes what this instance was given. While instances differ, the smallest limit, the longest window, and the
 * outbox.yaml of the daemons that run already hold for all. Repeated every few seconds, so that the difference
 * ends when the last instance with other settings is gone.
 */
export async function agreeOnSettings(pool: pg.Pool, own: InstanceSettings): Promise<AgreedSettings> {
  const standing = await sayAgain(pool, own)
  return standing === null ? agreeAnew(pool, own) : { ...standing, before: null }
}

const isSilentSql = `said_at < clock_timestamp() - interval '${settingsHoldMs} milliseconds'`

/** The usual round, which locks nothing. @returns null if more has to be done than to repeat what was said */
async function sayAgain(db: Database, { instanceId, given }: InstanceSettings): Promise<Agreement | null> {
  const { rowCount } = await db.query(
    `update outboxd.instance_setting set said_at = clock_timestamp() where instance_id = $1 and given = $2::jsonb
       and not exists (select from outboxd.outbox where is_current and file_digest is distinct from $3)
       and not exists (select from outboxd.instance_setting where ${isSilentSql})
       and not exists (select from outboxd.problem where kind = 'settings_differ')`,
    [instanceId, JSON.stringify(given), given[outboxFile] ?? null],
  )
  if (rowCount === 0) return null
  const agreement = combineSettings(await readSettings(db), null)
  return agreement.differences.length === 0 && (await isBudgetFitted(db, agreement)) ? agreement : null
}

async function agreeAnew(pool: pg.Pool, own: InstanceSettings): Promise<AgreedSettings> {
  return inTransaction(pool, async (db) => {
    await saySettings(db, own)
    await takeFileIntoForce(db, own)
    const agreement = combineSettings(await readSettings(db), await readFileInForce(db))
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

export async function withdrawSettings(db: Database, instanceId: string): Promise<void> {
  await db.query('delete from outboxd.instance_setting where instance_id = $1', [instanceId])
}

/** Locks the table first, so that two instances never see half of what the other says. */
async function saySettings(db: Database, own: InstanceSettings): Promise<void> {
  await db.query('lock table outboxd.instance_setting in share row exclusive mode')
  await db.query(`delete from outboxd.instance_setting where ${isSilentSql}`)
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
 * Takes this instance's outbox.yaml into force, unless a running daemon has the one that is in force. A daemon
 * that has just started has given no sign of life yet.
 */
async function takeFileIntoForce(db: Database, { instanceId, host, given }: InstanceSettings): Promise<void> {
  await db.query(
    `update outboxd.outbox o set file_digest = $1, file_since = clock_timestamp(), file_by = $2
     where is_current and $1::text is not null and file_digest is distinct from $1 and not exists (
       select from outboxd.instance_setting s where s.instance_id <> $3 and s.given ->> '${outboxFile}' = o.file_digest
         and not exists (select from outboxd.instance i where i.id = s.instance_id and not ${isAliveSql('i')})
     )`,
    [given[outboxFile] ?? null, `${instanceId.slice(0, 8)} on ${host}`, instanceId],
  )
}

async function readFileInForce(db: Database): Promise<FileInForce | null> {
  const { rows } = await db.query<FileInForce>(
    `select file_digest as digest, ${epochMsSql('file_since')} as "sinceMs", file_by as by
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

/** Milliseconds; null if no daemon has said one. */
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

/** Settings that all instances on one ledger should share. */
export interface SharedSettings {
  requests: number
  windowMs: number
  requestTimeoutMs: number
  keyOnFailure: KeyOnFailure
  /** Further settings, by variable or file. An instance of 0.2.0 says none. */
  given: Readonly<Record<string, string>>
}

export interface InstanceSettings extends SharedSettings {
  instanceId: string
  host: string
}

/** What holds while instances differ, and how they differ. */
export interface Agreement {
  requests: number
  windowMs: number
  differences: { subject: string; detail: string }[]
}

/** How the outbox is read and written, by a digest of outbox.yaml. */
export interface FileInForce {
  digest: string
  sinceMs: number
  /** The daemon that took it into force. */
  by: string
}

/** The name of the digest among the settings. */
export const outboxFile = 'outbox.yaml'

/**
 * The safest combination of what living instances were given. Settings other than limit, window and outbox.yaml
 * each instance keeps for itself. Pure.
 */
export function combineSettings(instances: readonly InstanceSettings[], file: FileInForce | null): Agreement {
  const requests = Math.min(...instances.map((each) => each.requests))
  const windowMs = Math.max(...instances.map((each) => each.windowMs))
  const all = instances.map((each) => ({ ...each, settings: settingsOf(each) }))
  const names = new Set(all.flatMap(({ settings }) => Object.keys(settings)))
  const differences = [...names].flatMap((name) => {
    const holds = holding({ requests, windowMs })[name] ?? 'each keeps its own'
    return differing(name, all, (value, values) =>
      name === outboxFile && file !== null
        ? fileDetail(value, file)
        : `${name} is ${value} here; the instances have ${values.join(' and ')}, and ${holds} until they are the same`,
    )
  })
  return { requests, windowMs, differences }
}

const holding = ({ requests, windowMs }: Pick<Agreement, 'requests' | 'windowMs'>): Record<string, string> => ({
  RATE_LIMIT_REQUESTS: `${requests} holds`,
  RATE_LIMIT_WINDOW_SECONDS: `${windowMs / 1000} holds`,
})

/** Settings by name. An instance of 0.2.0 says the first four only. */
const settingsOf = ({ requests, windowMs, requestTimeoutMs, keyOnFailure, given }: InstanceSettings) => ({
  RATE_LIMIT_REQUESTS: String(requests),
  RATE_LIMIT_WINDOW_SECONDS: String(windowMs / 1000),
  REQUEST_TIMEOUT_SECONDS: String(requestTimeoutMs / 1000),
  KEY_ON_FAILURE: keyOnFailure,
  ...given,
})

/** One line for each instance, if their values differ. */
function differing(
  name: string,
  instances: readonly (InstanceSettings & { settings: Record<string, string> })[],
  detailOf: (value: string, values: readonly string[]) => string,
): Agreement['differences'] {
  const said = instances.flatMap((each) => {
    const value = each.settings[name]
    return value === undefined ? [] : [{ ...each, value }]
  })
  const values = [...new Set(said.map(({ value }) => value))]
  if (values.length < 2) return []
  return said.map(({ instanceId, host, value }) => ({
    subject: `${instanceId.slice(0, 8)} on ${host}: ${name}`,
    detail: detailOf(value, values.toSorted()),
  }))
}

function fileDetail(digest: string, file: FileInForce): string {
  const since = new Date(file.sinceMs).toISOString()
  if (digest === file.digest) return `${outboxFile} is ${digest} here, which has been in force since ${since}`
  return `${outboxFile} is ${digest} here, and ${file.digest} has been in force since ${since} (daemon ${file.by}): this daemon captures nothing and writes nothing back. That ends when all daemons have its file (\`outboxd reload\`), or when those with the other one have left`
}
