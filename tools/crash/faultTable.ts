import type { Environment } from './environment.ts'
import type { ErpFaults } from './erpFaults.ts'
import type { Fleet } from './fleet.ts'
import type { LedgerFaults } from './ledgerFaults.ts'
import type { RetentionFaults } from './retentionFaults.ts'
import { retryPatiently } from './retryPatiently.ts'
import type { SeededRandom } from './seededRandom.ts'
import type { ServerFaults } from './serverFaults.ts'
import type { ServiceFaults } from './serviceFaults.ts'
import type { StrangerFaults } from './strangerFaults.ts'

/** What is done again and again to the daemons and what they live on. */
export interface Fault {
  /** What the report calls it. */
  what: string
  /** Milliseconds between two times, on the average. */
  everyMs: number
  /** Whether daemons of 0.1.0 are to bear it, too: what they are known not to bear begins when all are of this version. */
  from: '0.1.0' | 'this version'
  /** @returns how often it has struck */
  strike(random: SeededRandom): Promise<number> | number
}

/** How often what happens, in milliseconds between two times. */
export interface Pace {
  killMs: number
  stopMs: number
  restartMs: number
  insertMs: number
  /** The ERP refuses, ignores or locks rows. */
  erpMs: number
  /** A COMMIT hangs. */
  hangMs: number
  clockMs: number
  /** Records grow old, and are pruned; the ERP sets rows back. */
  pruneMs: number
  /** The primary is killed for good, and its standby promoted. */
  failOverMs: number
  /** The ledger's database is put back to a copy. */
  restoreMs: number
  /** A daemon that is configured wrongly is started. */
  strangerMs: number
}

export interface Adversaries {
  environment: Environment
  fleet: Fleet
  service: ServiceFaults
  erp: ErpFaults
  ledger: LedgerFaults
  retention: RetentionFaults
  server: ServerFaults
  strangers: StrangerFaults
}

export const kills = 'kill -9'

/** Longer than the lease of a silent instance (12 s) and a round of those who judge it (3 s). */
const stopForMs = [16_000, 22_000] as const
/** The one that is mostly spared, so that somebody lives long enough to rescue what the dead were sending. */
const anchor = 0
/** By then daemons that lived through a change of the server have registered their ledger again. */
const registeredAgainMs = 10_000
/** A daemon that lost one session registers within half a second, or later on a busy machine. */
const reconnectedMs = 3_000
const anchorKilledShare = 0.02
/** On a machine that starts daemons more slowly than they are killed, none would live to be stopped or to send. */
const atWorkMin = 2
const lastKilledShare = 0.3

/** The campaign's faults, a row each. @param stopped takes what ends later: the wakening of those that were stopped */
export function createFaultTable(
  { environment, fleet, service, erp, ledger, retention, server, strangers }: Adversaries,
  pace: Pace,
  stopped: Promise<void>[],
): Fault[] {
  const { cluster } = environment
  let serverChangedMs = Number.NEGATIVE_INFINITY
  let sessionsEndedMs = Number.NEGATIVE_INFINITY
  /** The server restarts or fails over, and every session with it. */
  const changed = <T>(work: Promise<T>): Promise<T> =>
    work.finally(() => {
      serverChangedMs = performance.now()
    })
  return [
    {
      what: kills,
      everyMs: pace.killMs,
      from: '0.1.0',
      strike(random) {
        const victims = fleet.berths.filter(
          (berth) => berth.atWork() && (berth.number !== anchor || random.chance(anchorKilledShare)),
        )
        if (victims.length === 0 || (victims.length < atWorkMin && !random.chance(lastKilledShare))) return 0
        random.pick(victims).kill()
        return 1
      },
    },
    {
      what: 'SIGSTOP past the lease',
      everyMs: pace.stopMs,
      from: '0.1.0',
      strike(random) {
        const victims = fleet.berths.filter((berth) => berth.atWork() && berth.number !== anchor)
        if (victims.length === 0) return 0
        stopped.push(random.pick(victims).stopFor(random.whole(...stopForMs)))
        return 1
      },
    },
    {
      what: 'Postgres immediate restarts',
      everyMs: pace.restartMs,
      from: '0.1.0',
      strike: once(() => changed(cluster.alone(() => cluster.primary().restartImmediately()))),
    },
    {
      what: 'backends terminated',
      everyMs: pace.restartMs / 3,
      from: '0.1.0',
      async strike() {
        const { rowCount } = await retryPatiently(() =>
          environment.ledger.query(
            `select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'outboxd%' and random() < 0.2`,
          ),
        )
        sessionsEndedMs = performance.now()
        return rowCount ?? 0
      },
    },
    {
      what: 'faults of the service switched on',
      everyMs: 1_500,
      from: 'this version',
      strike: () => service.stir(),
    },
    {
      what: 'faults of the ERP',
      everyMs: pace.erpMs,
      from: 'this version',
      strike: once((random) => erp.strike(random)),
    },
    {
      what: 'times that COMMIT hung',
      everyMs: pace.hangMs,
      from: 'this version',
      strike: once((random) => ledger.hangCommits(random)),
    },
    {
      what: 'times that the clock was set back',
      everyMs: pace.clockMs,
      from: 'this version',
      strike: once((random) => ledger.setClockBack(random)),
    },
    {
      what: 'records made old enough to go',
      everyMs: pace.pruneMs,
      from: 'this version',
      strike: (random) => retention.age(random),
    },
    {
      what: 'outboxd prune, half of them killed',
      everyMs: pace.pruneMs,
      from: 'this version',
      strike: once((random) => retention.prune(random)),
    },
    {
      what: 'rows of ended records set back',
      everyMs: pace.pruneMs,
      from: 'this version',
      strike: (random) => retention.setBack(random),
    },
    {
      what: 'primaries killed, standbys promoted',
      everyMs: pace.failOverMs,
      from: 'this version',
      strike: () => changed(server.failOver()),
    },
    {
      what: 'ledgers restored from a backup',
      everyMs: pace.restoreMs,
      from: 'this version',
      strike: once((random) => server.restore(random)),
    },
    {
      what: 'daemons of a second ledger tried',
      everyMs: pace.strangerMs,
      from: 'this version',
      // What keeps a second ledger out are locks of living daemons, which come back seconds after the server.
      strike: () =>
        cluster.alone(() =>
          strangers.secondLedger(
            () =>
              fleet.berths[anchor]?.atWork() === true &&
              performance.now() - serverChangedMs > registeredAgainMs &&
              performance.now() - sessionsEndedMs > reconnectedMs,
          ),
        ),
    },
    {
      what: 'daemons of a second service tried',
      everyMs: pace.strangerMs,
      from: 'this version',
      strike: () => strangers.secondService(),
    },
  ]
}

/** A fault that strikes each time that it is told to. */
function once(work: (random: SeededRandom) => Promise<unknown>): Fault['strike'] {
  return async (random) => {
    await work(random)
    return 1
  }
}
