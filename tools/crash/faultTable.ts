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

/** A fault that daemons, database or service get repeatedly. */
export interface Fault {
  /** The fault's name in the report. */
  what: string
  /** Mean time between two such faults, milliseconds. */
  everyMs: number
  /** Causes the fault. @returns the number of faults, 0 if none was possible */
  strike(random: SeededRandom): Promise<number> | number
}

/** Mean times between two faults of a kind, milliseconds. */
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
  /** Records get old and are pruned. The ERP sets rows back. */
  pruneMs: number
  /** The primary is killed and does not come back. Its standby is promoted. */
  failOverMs: number
  /** The ledger's database is restored from a copy. */
  restoreMs: number
  /** A daemon with a wrong configuration is started. */
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

/** Longer than the lease of a silent instance (12 s) plus a round of the other instances (3 s). */
const stopForMs = [16_000, 22_000] as const
/** A berth whose daemon is rarely killed, so that it lives long enough to rescue records of killed daemons. */
const anchor = 0
const anchorKilledShare = 0.02
/** With fewer daemons, kills are rare. A slow machine would otherwise have no daemon that can be stopped or sends. */
const atWorkMin = 2
const lastKilledShare = 0.3

/**
 * The campaign's faults, one row each.
 *
 * @param stopped gets a promise for each stopped daemon, which resolves when it goes on
 */
export function createFaultTable(
  { environment, fleet, service, erp, ledger, retention, server, strangers }: Adversaries,
  pace: Pace,
  stopped: Promise<void>[],
): Fault[] {
  const { cluster } = environment
  return [
    {
      what: kills,
      everyMs: pace.killMs,
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
      strike: once(() => cluster.alone(() => cluster.primary().restartImmediately())),
    },
    {
      what: 'backends terminated',
      everyMs: pace.restartMs / 3,
      async strike() {
        const { rowCount } = await retryPatiently(() =>
          environment.ledger.query(
            `select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'outboxd%' and random() < 0.2`,
          ),
        )
        return rowCount ?? 0
      },
    },
    {
      what: 'faults of the service switched on',
      everyMs: 1_500,
      strike: () => service.stir(),
    },
    {
      what: 'faults of the ERP',
      everyMs: pace.erpMs,
      strike: once((random) => erp.strike(random)),
    },
    {
      what: 'times that COMMIT hung',
      everyMs: pace.hangMs,
      strike: once((random) => ledger.hangCommits(random)),
    },
    {
      what: 'times that the clock was set back',
      everyMs: pace.clockMs,
      strike: once((random) => ledger.setClockBack(random)),
    },
    {
      what: 'records made old enough to go',
      everyMs: pace.pruneMs,
      strike: (random) => retention.age(random),
    },
    {
      what: 'outboxd prune, half of them killed',
      everyMs: pace.pruneMs,
      strike: once((random) => retention.prune(random)),
    },
    {
      what: 'rows of ended records set back',
      everyMs: pace.pruneMs,
      strike: (random) => retention.setBack(random),
    },
    {
      what: 'primaries killed, standbys promoted',
      everyMs: pace.failOverMs,
      strike: () => server.failOver(),
    },
    {
      what: 'ledgers restored from a backup',
      everyMs: pace.restoreMs,
      strike: once((random) => server.restore(random)),
    },
    {
      what: 'daemons of a second service tried',
      everyMs: pace.strangerMs,
      strike: () => strangers.secondService(),
    },
  ]
}

/** A fault that is always possible. */
function once(work: (random: SeededRandom) => Promise<unknown>): Fault['strike'] {
  return async (random) => {
    await work(random)
    return 1
  }
}
