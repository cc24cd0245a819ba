import { systemClock } from '../../clock.ts'
import type { DatabaseConfig } from '../../config.ts'
import { standbyMissingMessage } from '../../ledger/history/history.ts'
import type { LedgerStandby } from '../../ledger/history/judgeHistory.ts'
import { type Durability, readDurabilitySettings, readServerClockLead } from '../../ledger/operator/readServer.ts'
import { inspectDatabase } from '../../postgres/inspectDatabase.ts'
import {
  findEncodingRefusalClause,
  findEncodingWarningClause,
  readServerEncoding,
} from '../../postgres/serverEncoding.ts'
import {
  type ClockReading,
  type ClocksAndCertificates,
  type Finding,
  makeFinding,
  makeUncheckedFinding,
} from './finding.ts'

export async function checkServers(
  config: DatabaseConfig,
  { clocks }: Pick<ClocksAndCertificates, 'clocks'>,
): Promise<Finding[]> {
  const server = await readServer(config.databaseUrl).catch(() => null)
  if (server !== null) clocks.push({ whose: 'the database', ...server.clock })
  const encoding = server === null ? null : judgeEncoding(server.encoding)
  return [...(encoding === null ? [] : [encoding]), judgeDurability(server?.durability ?? null, config.ledgerStandby)]
}

function readServer(url: string) {
  return inspectDatabase({
    of: 'ledger',
    url,
    read: async (db) => ({
      clock: await readServerClockLead(db, systemClock.nowMs),
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

export function judgeDurability(durability: Durability | null, standby: LedgerStandby): Finding {
  const what = 'durability'
  if (durability === null) return makeUncheckedFinding(what, 'the database cannot be reached')
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
