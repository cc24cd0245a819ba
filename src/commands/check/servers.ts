import { statfs } from 'node:fs/promises'
import { systemClock } from '../../clock.ts'
import type { DatabaseConfig } from '../../config.ts'
import { standbyMissingMessage } from '../../ledger/history/history.ts'
import type { LedgerStandby } from '../../ledger/history/judgeHistory.ts'
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
import { daemonConnectionsMax } from '../../postgres/sessionSettings.ts'
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
  const server = await readServer(config.databaseUrl).catch(() => null)
  if (server !== null) clocks.push({ whose: 'the database', ...server.clock })
  const encoding = server === null ? null : judgeEncoding(server.encoding)
  return [
    judgeFreeConnections(server?.room ?? null),
    judgeDisk(server?.disk ?? null),
    ...(encoding === null ? [] : [encoding]),
    judgeDurability(server?.durability ?? null, config.ledgerStandby),
  ]
}

function readServer(url: string) {
  return inspectDatabase({
    of: 'ledger',
    url,
    read: async (db) => ({
      room: await readFreeConnections(db),
      clock: await readServerClockLead(db, systemClock.nowMs),
      disk: await readDisk(await readDataFolder(db)),
      durability: await readDurabilitySettings(db),
      encoding: await readServerEncoding(db),
    }),
  })
}

/** Null for UTF8. */
export function judgeEncoding(encoding: string): Finding | null {
  const refusal = findEncodingRefusalClause(encoding)
  if (refusal !== null) return makeFinding('encoding', 'problem', `the database: ${refusal}`)
  const warning = findEncodingWarningClause(encoding)
  return warning === null ? null : makeFinding('encoding', 'warning', `the database: ${warning}`)
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

export function judgeFreeConnections(room: FreeConnections | null): Finding {
  const what = 'connections'
  if (room === null) return makeUncheckedFinding(what, unreachable)
  const { free, limit, ours } = room
  const needed = Math.max(0, daemonConnectionsMax - ours)
  const opens =
    ours === 0 ? `a daemon opens ${needed}` : `running daemons hold ${ours}, and one may open ${needed} more`
  const message = `the server accepts ${Math.max(0, free)} more connections (${limit}); ${opens}`
  if (needed <= free) return makeFinding(what, 'ok', message)
  return makeFinding(
    what,
    'problem',
    message,
    'Raise the limit, or end unused sessions (`select * from pg_stat_activity`)',
  )
}

const unreachable = 'the database cannot be reached'

const gigabyte = 1e9
const problemBytes = 0.2 * gigabyte
const warningBytes = 2 * gigabyte

export function judgeDisk(disk: Disk | UnseenDisk | null): Finding {
  const what = 'disk'
  if (disk === null) return makeUncheckedFinding(what, unreachable)
  if ('unseen' in disk) return makeOutOfReachFinding(what, `${disk.unseen}. Look at the disk there (\`df\`)`)
  const { folder, freeBytes, totalBytes } = disk
  const line = `${showGigabytes(freeBytes)} of ${showGigabytes(totalBytes)} are free at ${folder}`
  if (freeBytes >= warningBytes) return makeFinding(what, 'ok', line)
  const mark = freeBytes < problemBytes ? 'problem' : 'warning'
  return makeFinding(what, mark, line, 'Free some space: a full disk stops the database')
}

export function judgeDurability(durability: Durability | null, standby: LedgerStandby): Finding {
  const what = 'durability'
  if (durability === null) return makeUncheckedFinding(what, unreachable)
  const { off, isSynchronous } = durability
  if (standby === 'synchronous' && !isSynchronous) return makeFinding(what, 'problem', standbyMissingMessage)
  const failover =
    standby === 'synchronous'
      ? 'Each COMMIT waits for a synchronous standby, as LEDGER_STANDBY says: sending resumes by itself after a failover'
      : 'A failover stops sending until `outboxd recover`, because the last commits may be lost. If only a synchronous standby is ever promoted, set LEDGER_STANDBY=synchronous'
  if (off.length === 0) return makeFinding(what, 'ok', `committed data survives a power cut. ${failover}`)
  const on = off.map((name) => `alter system set ${name} = on;`).join(' ')
  const cause = `${off.join(' and ')} turned off at the server: a power cut loses committed data. Run \`${on} select pg_reload_conf()\``
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
