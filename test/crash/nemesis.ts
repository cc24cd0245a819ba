import { setTimeout as after } from 'node:timers/promises'
import type { Environment } from './environment.ts'
import type { ErpFaults } from './erpFaults.ts'
import type { Fleet } from './fleet.ts'
import type { LedgerFaults } from './ledgerFaults.ts'
import { resolveBlocking } from './operator.ts'
import type { SeededRandom } from './seededRandom.ts'
import type { ServiceFaults } from './serviceFaults.ts'
import { insertRecords, recordMaker, type Written } from './workload.ts'

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
}

export interface NemesisReport {
  kills: number
  stops: number
  restarts: number
  terminated: number
  faults: number
  erpFaults: number
  hangs: number
  clockSteps: number
  discarded: number
  resolved: number
  /** Everything that was handed to the database; what is not in the outbox was never committed. */
  written: Map<string, Written>
}

/** Longer than the lease of a silent instance (12 s) and a round of those who judge it (3 s). */
const stopForMs = [16_000, 22_000] as const
/** The one that is mostly spared, so that somebody lives long enough to rescue what the dead were sending. */
const anchor = 0
const anchorKilledShare = 0.02
/** On a machine that starts daemons more slowly than they are killed, none would live to be stopped or to send. */
const atWorkMin = 2
const lastKilledShare = 0.3

const backlogMost = 300

export interface Adversaries {
  environment: Environment
  fleet: Fleet
  faults: ServiceFaults
  erp: ErpFaults
  ledger: LedgerFaults
  random: (name: string) => SeededRandom
}

/** Disturbs until so many daemons were killed, records flowing all the while. Leaves no fault behind. */
export async function unleash(
  { environment, fleet, faults, erp, ledger, random }: Adversaries,
  { kills, pace, say, signal }: { kills: number; pace: Pace; say(text: string): void; signal: AbortSignal },
): Promise<NemesisReport> {
  const done: NemesisReport = {
    kills: 0,
    stops: 0,
    restarts: 0,
    terminated: 0,
    faults: 0,
    erpFaults: 0,
    hangs: 0,
    clockSteps: 0,
    discarded: 0,
    resolved: 0,
    written: new Map(),
  }
  const over = new AbortController()
  signal.addEventListener('abort', () => over.abort())
  const stopped: Promise<void>[] = []

  /** Strikes again and again, at random times around `everyMs` apart; a database that is away is nothing unusual. */
  async function plague(
    name: string,
    everyMs: number,
    strike: (random: SeededRandom) => Promise<void> | void,
  ): Promise<void> {
    const chance = random(name)
    while (!over.signal.aborted) {
      await after(everyMs * (0.3 + 1.4 * chance.float()), undefined, { signal: over.signal }).catch(() => {})
      if (over.signal.aborted) return
      await strike(chance)
    }
  }

  const make = recordMaker(random('records'))
  await Promise.all([
    plague('kill', pace.killMs, (chance) => {
      const victims = fleet.berths.filter(
        (berth) => berth.atWork() && (berth.number !== anchor || chance.chance(anchorKilledShare)),
      )
      if (victims.length < atWorkMin && !chance.chance(lastKilledShare)) return
      if (victims.length === 0) return
      chance.pick(victims).kill()
      done.kills += 1
      if (done.kills % 100 === 0) say(`${done.kills} kills, ${done.restarts} restarts, ${done.written.size} records`)
      if (done.kills >= kills) over.abort()
    }),
    plague('stop', pace.stopMs, (chance) => {
      const victims = fleet.berths.filter((berth) => berth.atWork() && berth.number !== anchor)
      if (victims.length === 0) return
      done.stops += 1
      stopped.push(chance.pick(victims).stopFor(chance.whole(...stopForMs)))
    }),
    plague('restart', pace.restartMs, async () => {
      await environment.postgres.restartImmediately()
      done.restarts += 1
    }),
    plague('terminate', pace.restartMs / 3, async () => {
      const { rowCount } = await retryPatiently(() =>
        environment.ledger.query(
          `select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'outboxd%' and random() < 0.2`,
        ),
      )
      done.terminated += rowCount ?? 0
    }),
    plague('faults', 1_500, async () => {
      done.faults += await faults.stir()
    }),
    plague('erp', pace.erpMs, async (chance) => {
      await erp.strike(chance)
      done.erpFaults += 1
    }),
    plague('hang', pace.hangMs, async (chance) => {
      await ledger.hangCommits(chance)
      done.hangs += 1
    }),
    plague('clock', pace.clockMs, async (chance) => {
      await ledger.setClockBack(chance)
      done.clockSteps += 1
    }),
    plague('insert', pace.insertMs, async (chance) => {
      if ((await backlog(environment)) > backlogMost) return
      const rows = Array.from({ length: chance.whole(1, 4) }, make)
      for (const { marker, outcome, amount } of rows) done.written.set(marker, { marker, outcome, amount })
      await insertRecords(environment.outbox, rows).catch(() => {})
    }),
    // Under so many faults pauses grow to a minute, and nothing would be on the wire to be killed.
    plague('operator', 2_000, async () => {
      await resolveHeads(environment, done, { resume: true })
    }),
  ])
  await faults.clear()
  await ledger.clear()
  await retryPatiently(() => erp.clear())
  await retryPatiently(() => tellNow(environment))
  await Promise.all(stopped)
  return done
}

/** What the ERP refused again and again is told ten minutes later at most, which would only make the end last longer. */
async function tellNow({ ledger }: Environment): Promise<void> {
  await ledger.query(
    'update outboxd.submission set report_not_before = clock_timestamp() where report_not_before > clock_timestamp()',
  )
}

/** Records on their way; more of them would only make the end last longer. */
async function backlog({ outbox }: Environment): Promise<number> {
  const { rows } = await retryPatiently(() =>
    outbox.query<{ n: number }>(
      `select count(*)::int as n from outbox where status in ('new', 'queued', 'sending', 'accepted')`,
    ),
  )
  return rows[0]?.n ?? 0
}

/** Lets an operator settle what blocks others. */
export async function resolveHeads(
  environment: Environment,
  done: Pick<NemesisReport, 'discarded' | 'resolved'>,
  { resume }: { resume: boolean },
): Promise<void> {
  const { discarded, resolved } = await retryPatiently(() => resolveBlocking(environment, resume))
  done.discarded += discarded
  done.resolved += resolved
}

/** Tries again while the database restarts. */
export async function retryPatiently<T>(work: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await work()
    } catch (error) {
      if (tries === 20) throw error
      await after(250)
    }
  }
}
