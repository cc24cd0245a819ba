import { statfs } from 'node:fs/promises'
import { systemClock } from '../../clock.ts'
import type { DatabaseConfig } from '../../config.ts'
import { standbyMissingMessage } from '../../ledger/history/history.ts'
import type { LedgerStandby } from '../../ledger/history/judgeDataLoss.ts'
import {
  type DataFolder,
  type Durability,
  type FreeConnections,
  readDataFolder,
  readDurabilitySettings,
  readFreeConnections,
  readServerClockLead,
} from '../../ledger/operator/readServer.ts'
import { inspectDatabase } from '../../postgres/inspectDatabase.ts'
import {
  findEncodingRefusalClause,
  findEncodingWarningClause,
  readServerEncoding,
} from '../../postgres/serverEncoding.ts'
import { daemonConnectionCounts } from '../../postgres/sessionSettings.ts'
import {
  type ClockReading,
  type ClocksAndCertificates,
  type Finding,
  makeFinding,
  makeOutOfReachFinding,
  makeUncheckedFinding,
} from './finding.ts'

export async function checkServers(
  config: DatabaseConfig,
  { clocks }: Pick<ClocksAndCertificates, 'clocks'>,
): Promise<Finding[]> {
  const databases = [
    { of: 'ledger', variable: 'STATE_DATABASE_URL', url: config.stateDatabaseUrl },
    { of: 'outbox', variable: 'DATABASE_URL', url: config.databaseUrl },
  ] as const
  const looked = await Promise.all(databases.map((database) => look(database).catch(() => null)))
  const seen = looked.filter((server) => server !== null)
  clocks.push(...seen.map(({ of, clock }) => ({ whose: `the ${of}’s database`, ...clock })))
  return [
    judgeFreeConnections(seen),
    judgeDisks(seen.map(({ disk }) => disk)),
    ...[judgeEncodings(seen)].filter((found) => found !== null),
    judgeDurability(seen.find(({ of }) => of === 'ledger')?.durability ?? null, config.ledgerStandby),
  ]
}

interface Database {
  of: keyof typeof daemonConnectionCounts
  variable: 'DATABASE_URL' | 'STATE_DATABASE_URL'
  url: string
}

function look({ of, variable, url }: Database) {
  return inspectDatabase({
    variable,
    url,
    read: async (db) => ({
      of,
      room: await readFreeConnections(db),
      clock: await readServerClockLead(db, systemClock.nowMs),
      disk: await readDisk(await readDataFolder(db)),
      durability: await readDurabilitySettings(db),
      encoding: await readServerEncoding(db),
    }),
  })
}

export function judgeEncodings(databases: readonly { of: Database['of']; encoding: string }[]): Finding | null {
  const told = (judge: (encoding: string) => string | null) =>
    databases.flatMap(({ of, encoding }) => {
      const said = judge(encoding)
      return said === null ? [] : [`the ${of}’s database: ${said}`]
    })
  const refused = told(findEncodingRefusalClause)
  const lines = refused.length > 0 ? refused : told(findEncodingWarningClause)
  return lines.length === 0 ? null : makeFinding('encoding', refused.length > 0 ? 'problem' : 'warning', ...lines)
}

export interface Disk {
  folder: string
  freeBytes: number
  totalBytes: number
}

interface UnseenDisk {
  unseen: string
}

const unseenWhy: Record<Exclude<DataFolder['kind'], 'local'>, string> = {
  elsewhere: 'a database is on a different host or in a container',
  hidden: 'the role may not see where the data lie (that needs pg_read_all_settings)',
}

async function readDisk(data: DataFolder): Promise<Disk | UnseenDisk> {
  if (data.kind !== 'local') return { unseen: unseenWhy[data.kind] }
  const { folder } = data
  try {
    const { bavail, blocks, bsize } = await statfs(folder)
    return { folder, freeBytes: bavail * bsize, totalBytes: blocks * bsize }
  } catch {
    return { unseen: `the folder ${folder} cannot be seen from here` }
  }
}

/** Databases of one server share the server's connections. */
export function judgeFreeConnections(databases: readonly { of: Database['of']; room: FreeConnections }[]): Finding {
  const what = 'connections'
  if (databases.length === 0) return makeUncheckedFinding(what, 'no database can be reached')
  const servers = [...Map.groupBy(databases, ({ room }) => room.server).values()].map((those) => {
    const { free, limit, ours } = those.map(({ room }) => room).reduce((a, b) => (b.free < a.free ? b : a))
    const whole = those.reduce((sum, { of }) => sum + daemonConnectionCounts[of], 0)
    const needed = Math.max(0, whole - ours)
    const names = those.map(({ of }) => `the ${of}`).join(' and ')
    const opens =
      ours === 0 ? `a daemon opens ${needed}` : `running daemons hold ${ours}, and one may open ${needed} more`
    return {
      isShort: needed > free,
      message: `the server of ${names} accepts ${Math.max(0, free)} more connections (${limit}); ${opens}`,
    }
  })
  const isShort = servers.some((server) => server.isShort)
  const next = isShort ? ['Raise the limit, or end unused sessions (`select * from pg_stat_activity`)'] : []
  return makeFinding(what, isShort ? 'problem' : 'ok', ...servers.map(({ message }) => message), ...next)
}

const gigabyte = 1e9
const problemBytes = 0.2 * gigabyte
const warningBytes = 2 * gigabyte

export function judgeDisks(found: readonly (Disk | UnseenDisk)[]): Finding {
  const what = 'disk'
  if (found.length === 0) return makeUncheckedFinding(what, 'no database can be reached')
  const disks = found.filter((disk) => 'folder' in disk)
  if (disks.length === 0) {
    const why = new Set(found.flatMap((disk) => ('unseen' in disk ? [disk.unseen] : [])))
    return makeOutOfReachFinding(what, `${[...why].join(', ')}. Look at the disk there (\`df\`)`)
  }
  const least = Math.min(...disks.map(({ freeBytes }) => freeBytes))
  const lines = new Set(
    disks.map(
      ({ folder, freeBytes, totalBytes }) =>
        `${showGigabytes(freeBytes)} of ${showGigabytes(totalBytes)} are free at ${folder}`,
    ),
  )
  const mark = least < problemBytes ? 'problem' : least < warningBytes ? 'warning' : 'ok'
  const next = mark === 'ok' ? [] : ['Free some space: a full disk stops the database']
  return makeFinding(what, mark, ...lines, ...next)
}

export function judgeDurability(durability: Durability | null, standby: LedgerStandby): Finding {
  const what = 'durability'
  if (durability === null) return makeUncheckedFinding(what, 'the ledger’s database cannot be reached')
  const { off, isSynchronous } = durability
  if (standby === 'synchronous' && !isSynchronous) return makeFinding(what, 'problem', standbyMissingMessage)
  const failover =
    standby === 'synchronous'
      ? 'Each COMMIT waits for a synchronous standby, as LEDGER_STANDBY says: sending resumes by itself after a failover'
      : 'A failover stops sending until `outboxd recover`, because the last commits may be lost. If only a synchronous standby is ever promoted, set LEDGER_STANDBY=synchronous'
  if (off.length === 0) return makeFinding(what, 'ok', `committed data survives a power cut. ${failover}`)
  const on = off.map((name) => `alter system set ${name} = on;`).join(' ')
  const cause = `${off.join(' and ')} turned off at the ledger’s server: a power cut loses committed data. Run \`${on} select pg_reload_conf()\``
  return makeFinding(what, 'warning', cause, failover)
}

const showGigabytes = (bytes: number) => `${(bytes / gigabyte).toFixed(1)} GB`

/** Above this difference, times in the ledger and in logs are hard to compare. */
const clockWarningMs = 2_000
/** Above this difference, the daemon raises the problem clock_off. */
const clockProblemMs = 5_000

export function judgeClocks(readings: readonly ClockReading[]): Finding {
  const what = 'clocks'
  if (readings.length === 0) return makeUncheckedFinding(what, 'no other clock could be read')
  const apart = readings.map(({ whose, leastMs, mostMs }) => ({
    whose,
    aheadMs: leastMs > 0 ? leastMs : Math.min(0, mostMs),
  }))
  const off = apart.filter(({ aheadMs }) => Math.abs(aheadMs) > clockWarningMs)
  const names = readings.map(({ whose }) => whose).join(', ')
  if (off.length === 0) return makeFinding(what, 'ok', `this host and ${names} agree to ${clockWarningMs / 1000} s`)
  const isProblem = off.some(({ aheadMs }) => Math.abs(aheadMs) > clockProblemMs)
  const lines = off.map(({ whose, aheadMs }) => {
    const seconds = Math.abs(Math.round(aheadMs / 100) / 10)
    return `the clock of ${whose} is ${seconds} s ${aheadMs > 0 ? 'ahead of' : 'behind'} the clock of this host`
  })
  const next = 'Correct the wrong clock with NTP (timedatectl, chronyc tracking)'
  return makeFinding(what, isProblem ? 'problem' : 'warning', ...lines, next)
}

/** A Date header has whole seconds. @param nowMs when the answer was read */
export function clockReadingsFromDateHeader(
  { dateMs, tookMs }: { dateMs: number | null; tookMs: number },
  nowMs: number,
): ClockReading[] {
  if (dateMs === null) return []
  return [{ whose: 'the service', leastMs: dateMs - nowMs, mostMs: dateMs + 1_000 - (nowMs - tookMs) }]
}
