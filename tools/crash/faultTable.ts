import type { Environment } from './environment.ts'
import type { ErpFaults } from './erpFaults.ts'
import type { Berth, Fleet } from './fleet.ts'
import type { RetentionFaults } from './retentionFaults.ts'
import { retryPatiently } from './retryPatiently.ts'
import type { SeededRandom } from './seededRandom.ts'
import type { ServerFaults } from './serverFaults.ts'
import type { ServiceFaults } from './serviceFaults.ts'
import type { Statements, Strike } from './statements.ts'
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

export interface Adversaries {
  environment: Environment
  fleet: Fleet
  statements: Statements
  service: ServiceFaults
  erp: ErpFaults
  retention: RetentionFaults
  server: ServerFaults
  strangers: StrangerFaults
}

export const kills = 'kill -9'

/** Longer than an instance may be silent (5 s) and the others, on a busy machine, need to take over. */
const stopForMs = [9_000, 14_000] as const
/** A berth whose daemon is rarely killed, so that it lives long enough to rescue records of killed daemons. */
const anchor = 0
const anchorKilledShare = 0.02
/** With fewer daemons, kills are rare. A slow machine would otherwise have no daemon that can be stopped or sends. */
const atWorkMin = 2
const lastKilledShare = 0.3

/**
 * The campaign's faults, one row each.
 *
 * @param rareMs mean time between two failovers, and between two restores
 */
export function createFaultTable(
  { environment, fleet, statements, service, erp, retention, server, strangers }: Adversaries,
  rareMs: number,
): Fault[] {
  const { cluster } = environment
  function pickVictim(random: SeededRandom): Berth | null {
    const victims = fleet.berths.filter(
      (berth) => berth.atWork() && (berth.number !== anchor || random.chance(anchorKilledShare)),
    )
    if (victims.length === 0 || (victims.length < atWorkMin && !random.chance(lastKilledShare))) return null
    return random.pick(victims)
  }
  /** @returns 0 if there is no victim, or the victim does not make so many statements */
  async function strikeAtStatement(random: SeededRandom, signal: Strike['signal'], stopMs = 0): Promise<number> {
    const way = await statements.readWay()
    const victim = pickVictim(random)
    if (victim === null || way.length === 0) return 0
    const strike = { nth: random.whole(1, way.length), when: random.pick(['before', 'after'] as const), signal }
    return (await victim.strikeAt(strike, stopMs)) ? 1 : 0
  }
  return [
    {
      what: kills,
      everyMs: 450,
      strike(random) {
        const victim = pickVictim(random)
        victim?.kill()
        return victim === null ? 0 : 1
      },
    },
    {
      what: 'kill -9 at a statement',
      everyMs: 450,
      strike: (random) => strikeAtStatement(random, 'SIGKILL'),
    },
    {
      what: 'SIGSTOP at a statement, until it counts as dead',
      everyMs: 6_000,
      strike: (random) => strikeAtStatement(random, 'SIGSTOP', random.whole(...stopForMs)),
    },
    {
      what: 'Postgres immediate restarts',
      everyMs: 12_000,
      strike: once(() => cluster.alone(() => cluster.primary().restartImmediately())),
    },
    {
      what: 'backends terminated',
      everyMs: 4_000,
      async strike() {
        const { rowCount } = await retryPatiently(() =>
          environment.database.query(
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
      everyMs: 3_000,
      strike: once((random) => erp.strike(random)),
    },
    {
      what: 'times that COMMIT hung',
      everyMs: 20_000,
      strike: once((random) => server.hangCommits(random)),
    },
    {
      what: 'times that the clock was set back',
      everyMs: 15_000,
      strike: once((random) => server.setClockBack(random)),
    },
    {
      what: 'records made old enough to go',
      everyMs: 5_000,
      strike: (random) => retention.age(random),
    },
    {
      what: 'outboxd prune, half of them killed',
      everyMs: 5_000,
      strike: once((random) => retention.prune(random)),
    },
    {
      what: 'rows of ended records set back',
      everyMs: 5_000,
      strike: () => retention.setBack(),
    },
    {
      what: 'primaries killed, standbys promoted',
      everyMs: rareMs,
      strike: () => server.failOver(),
    },
    {
      what: 'ledgers restored from a backup',
      everyMs: rareMs,
      strike: once((random) => server.restore(random)),
    },
    {
      what: 'daemons of a second service tried',
      everyMs: 20_000,
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
