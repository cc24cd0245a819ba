import { statfs } from 'node:fs/promises'
import { systemClock } from '../../clock.ts'
import type { StoreConfig } from '../../config.ts'
import type { LedgerStandby } from '../../ledger/history/judgeDataLoss.ts'
import { standbyMissingMessage } from '../../ledger/history/writeHistory.ts'
import {
  type Durability,
  type FreeConnections,
  readClockLead,
  readDurabilitySettings,
  readFreeConnections,
  readLocalDataFolder,
} from '../../ledger/operator/readServer.ts'
import { inspectDatabase } from '../../postgres/inspectDatabase.ts'
import { encodingWarning, readEncoding, whyEncodingIsRefused } from '../../postgres/serverEncoding.ts'
import { daemonConnectionCounts } from '../../postgres/sessionSettings.ts'
import { type ClockReading, type Finding, finding, type NoticedByCheck, notAskedFinding } from './finding.ts'

export async function checkServers(
  config: StoreConfig,
  { clocks }: Pick<NoticedByCheck, 'clocks'>,
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
    judgeDisks(seen.flatMap(({ disk }) => disk ?? [])),
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
    look: async (db) => ({
      of,
      room: await readFreeConnections(db),
      clock: await readClockLead(db, systemClock.nowMs),
      disk: await readDisk(await readLocalDataFolder(db)),
      durability: await readDurabilitySettings(db),
      encoding: await readEncoding(db),
    }),
  })
}

export function judgeEncodings(databases: readonly { of: Database['of']; encoding: string }[]): Finding | null {
  const what = 'encoding'
  const told = (judge: (encoding: string) => string | null) =>
    databases.flatMap(({ of, encoding }) => {
      const said = judge(encoding)
      return said === null ? [] : [`the ${of}’s database: ${said}`]
    })
  const refused = told(whyEncodingIsRefused)
  if (refused.length > 0) return finding(what, 'problem', ...refused)
  const warned = told(encodingWarning)
  return warned.length > 0 ? finding(what, 'warning', ...warned) : null
}

export interface Disk {
  folder: string
  freeBytes: number
  totalBytes: number
}

async function readDisk(folder: string | null): Promise<Disk | null> {
  if (folder === null) return null
  try {
    const { bavail, blocks, bsize } = await statfs(folder)
    return { folder, freeBytes: bavail * bsize, totalBytes: blocks * bsize }
  } catch {
    return null // the files are not visible from here, such as in a container
  }
}

export function judgeFreeConnections(databases: readonly { of: Database['of']; room: FreeConnections }[]): Finding {
  const what = 'connections'
  if (databases.length === 0) return notAskedFinding(what, 'no database can be reached')
  const servers = [...Map.groupBy(databases, ({ room }) => room.server).values()].map((those) => {
    const needed = those.reduce((sum, { of }) => sum + daemonConnectionCounts[of], 0)
    const rooms = those.map(({ room }) => room).sort((a, b) => a.free - b.free)
    const { free, limit, ours } = rooms[0] as FreeConnections
    return {
      names: those.map(({ of }) => `the ${of}`).join(' and '),
      needed: Math.max(0, needed - ours),
      free,
      limit,
      ours,
    }
  })
  const message = servers.map(({ names, needed, free, limit, ours }) => {
    const running = ours === 0 ? 'a daemon opens' : `daemons have ${ours} open, and a daemon may open`
    return `the server of ${names} accepts ${Math.max(0, free)} more connections (${limit}); ${running} ${needed}${ours === 0 ? '' : ' more'}`
  })
  const isShort = servers.some(({ needed, free }) => needed > free)
  const next = isShort ? ['Raise the limit, or end unused sessions (`select * from pg_stat_activity`)'] : []
  return finding(what, isShort ? 'problem' : 'ok', ...message, ...next)
}

const gigabyte = 1e9
const problemBytes = 0.2 * gigabyte
const warningBytes = 2 * gigabyte

export function judgeDisks(disks: readonly Disk[]): Finding {
  const what = 'disk'
  if (disks.length === 0)
    return notAskedFinding(what, 'the databases are on other hosts; look at their disks there (`df`)')
  const least = Math.min(...disks.map(({ freeBytes }) => freeBytes))
  const folders = [...new Map(disks.map((disk) => [disk.folder, disk])).values()]
  const message = folders.map(
    ({ folder, freeBytes, totalBytes }) =>
      `${showGigabytes(freeBytes)} of ${showGigabytes(totalBytes)} are free at ${folder}`,
  )
  const mark = least < problemBytes ? 'problem' : least < warningBytes ? 'warning' : 'ok'
  const next = mark === 'ok' ? [] : ['Free some space: a full disk stops the database']
  return finding(what, mark, ...message, ...next)
}

export function judgeDurability(durability: Durability | null, standby: LedgerStandby): Finding {
  const what = 'durability'
  if (durability === null) return notAskedFinding(what, 'the ledger’s database cannot be reached')
  const { off, isSynchronous } = durability
  if (standby === 'synchronous' && !isSynchronous) return finding(what, 'problem', standbyMissingMessage)
  const failover = failoverMessage(isSynchronous, standby)
  if (off.length === 0) return finding(what, 'ok', `committed data survives a power cut; ${failover}`)
  const on = off.map((name) => `alter system set ${name} = on;`).join(' ')
  return finding(
    what,
    'warning',
    `${off.join(' and ')} ${off.length === 1 ? 'is' : 'are'} off at the ledger’s server, so a power cut loses committed data. Run \`${on} select pg_reload_conf()\``,
    failover,
  )
}

function failoverMessage(isSynchronous: boolean, standby: LedgerStandby): string {
  if (standby === 'synchronous')
    return 'each COMMIT waits for a synchronous standby, as LEDGER_STANDBY says: sending resumes by itself after a failover'
  return `after a failover nothing is sent until \`outboxd recover\`, because the last commits may be lost${isSynchronous ? '. If only a synchronous standby is ever promoted, set LEDGER_STANDBY=synchronous: then sending resumes by itself' : ''}`
}

const showGigabytes = (bytes: number) => `${(bytes / gigabyte).toFixed(1)} GB`

/** Above this, times in the ledger and in logs do not fit together. */
export const clockWarningMs = 2_000
/** The daemon raises the problem clock_off above this. */
export const clockProblemMs = 5_000

const here: ClockReading = { whose: 'this host', leastMs: 0, mostMs: 0 }

export function judgeClocks(readings: readonly ClockReading[]): Finding {
  const what = 'clocks'
  if (readings.length === 0) return notAskedFinding(what, 'no other clock could be read')
  const clocks = [here, ...readings]
  const pairs = clocks.flatMap((one, i) => clocks.slice(i + 1).map((other) => compare(one, other)))
  const off = pairs.filter(({ apartMs }) => apartMs > clockWarningMs)
  if (off.length === 0) return finding(what, 'ok', `those of ${names(clocks)} agree to ${clockWarningMs / 1000} s`)
  const isProblem = off.some(({ apartMs }) => apartMs > clockProblemMs)
  const message = off.map(
    ({ one, other, apartMs }) => `that of ${one} is ${Math.round(apartMs / 100) / 10} s ahead of that of ${other}`,
  )
  const next = 'Correct the wrong one with NTP (timedatectl, chronyc tracking)'
  return finding(what, isProblem ? 'problem' : 'warning', ...message, next)
}

function compare(a: ClockReading, b: ClockReading): { one: string; other: string; apartMs: number } {
  const leastMs = b.leastMs - a.mostMs
  const mostMs = b.mostMs - a.leastMs
  if (leastMs > 0) return { one: b.whose, other: a.whose, apartMs: leastMs }
  return { one: a.whose, other: b.whose, apartMs: Math.max(0, -mostMs) }
}

function names(clocks: readonly ClockReading[]): string {
  const whose = clocks.map((clock) => clock.whose)
  return `${whose.slice(0, -1).join(', ')} and ${whose.at(-1)}`
}

/**
 * Reads the service's clock from a Date header, which has whole seconds.
 * @param nowMs when the answer was read
 */
export function serviceClockReadings(
  { dateMs, tookMs }: { dateMs: number | null; tookMs: number },
  nowMs: number,
): ClockReading[] {
  if (dateMs === null) return []
  return [{ whose: 'the service', leastMs: dateMs - nowMs, mostMs: dateMs + 1_000 - (nowMs - tookMs) }]
}
