import { setTimeout as after } from 'node:timers/promises'
import { command as recover } from '../../src/commands/recover.ts'
import { testContext } from '../../test/support/context.ts'
import { until } from '../../test/support/until.ts'
import { isLost, type Violation } from '../crash/checker.ts'
import { type Cluster, startCluster } from '../crash/cluster.ts'
import { conclude, ofAll } from '../crash/conclude.ts'
import { openSurroundings, type Surroundings } from '../crash/environment.ts'
import { type Fleet, launchFleet } from '../crash/fleet.ts'
import type { History, LostSpan } from '../crash/history.ts'
import { type MutationName, mutations } from '../crash/mutations.ts'
import { settleBlockingRecords } from '../crash/operator.ts'
import { copyProgram } from '../crash/programCopy.ts'
import { createSeededRandom, type SeededRandom } from '../crash/seededRandom.ts'
import { createRecordMaker, insertRecords, type Written } from '../crash/workload.ts'

const modes = ['sync', 'undeclared', 'async'] as const
export type Mode = (typeof modes)[number]
export const isMode = (text: string): text is Mode => modes.some((mode) => mode === text)

export interface FailoverOptions {
  times: number
  /** After this time, the run ends with fewer failovers. */
  minutes: number
  mode: Mode
  seed: number
  daemons: number
  mutation: MutationName | null
  /** Folder with binaries of a different PostgreSQL; null for those from npm. */
  postgresDir: string | null
  say(text: string): void
  /** Aborting it ends the run with an error and stops everything that the run started. */
  signal: AbortSignal
}

interface FailoverReport {
  failovers: number
  /** Failovers after which sending went on without an operator. */
  wentOn: number
  /** Failovers after which all daemons stopped until `outboxd recover`. */
  stopped: number
  /** Claims that the new primary lacked although their requests had arrived. */
  lostRequests: number
  kills: number
  written: Map<string, Written>
}

export interface FailoverResult {
  options: FailoverOptions
  seconds: number
  report: FailoverReport
  history: History
  violations: Violation[]
}

/** A daemon's round, plus the delay of a busy machine. */
const noticedWithinMs = 60_000

/**
 * Kills the primary of ledger and outbox repeatedly under load, promotes its standby and leads the daemons to it. Then lets the daemons
 * finish, and compares outbox, ledger and service.
 */
export async function runFailovers(options: FailoverOptions): Promise<FailoverResult> {
  const { seed, mode, say } = options
  const begun = performance.now()
  await using program = await copyProgram(options.mutation === null ? [] : mutations[options.mutation].patches)
  await using cluster = await startCluster({ isSynchronous: mode !== 'async', postgresDir: options.postgresDir })
  const service = { idempotency: 'ignore', seed, isPooled: false } as const
  const standby = mode === 'sync' ? 'synchronous' : 'none'
  await using surroundings = await openSurroundings(program, cluster.clientUrl, { ...service, standby })
  const fleet = launchFleet({ program, env: surroundings.env, size: options.daemons })
  const random = createSeededRandom(seed, 'failover')
  const course = createCourse({ options, cluster, surroundings, fleet, random })
  try {
    await course.begin()
    while (course.report.failovers < options.times && seconds(begun) < options.minutes * 60) {
      options.signal.throwIfAborted()
      await course.failOver()
      if (course.report.failovers % 10 === 0)
        say(`${course.report.failovers} failovers, ${course.report.written.size} records, ${seconds(begun)} s`)
    }
    const { report, lost } = course
    const { history, violations } = await conclude({
      ...{ surroundings, fleet, written: report.written, lost, signal: options.signal },
      settle: () => settleBlockingRecords(surroundings, true),
    })
    report.lostRequests = history.arrivals.filter((arrival) => isLost(arrival, lost)).length
    say(`${mode}: done`)
    return {
      ...{ options, seconds: seconds(begun), report, history },
      violations: [...course.complaints.map(ofAll), ...violations],
    }
  } finally {
    fleet.scuttle()
  }
}

const seconds = (begun: number) => Math.round((performance.now() - begun) / 1000)

interface CourseDeps {
  options: FailoverOptions
  cluster: Cluster
  surroundings: Surroundings
  fleet: Fleet
  random: SeededRandom
}

/** Runs one failover after the other. */
function createCourse({ options, cluster, surroundings, fleet, random }: CourseDeps) {
  const report: FailoverReport = {
    failovers: 0,
    wentOn: 0,
    stopped: 0,
    lostRequests: 0,
    kills: 0,
    written: new Map(),
  }
  const lost: LostSpan[] = []
  const complaints: string[] = []
  const make = createRecordMaker(createSeededRandom(options.seed, 'records'))
  const onPrimary = (text: string) => cluster.primary().run(text, 'erp')

  async function insert(): Promise<void> {
    const rows = Array.from({ length: random.whole(1, 6) }, make)
    for (const { marker, outcome, amount } of rows) report.written.set(marker, { marker, outcome, amount })
    await insertRecords(surroundings.database, rows).catch(() => {})
  }

  /** The standby gets all rows of the ERP, but not what the daemons write from now on. */
  async function cutOff(): Promise<number> {
    const { rows } = await onPrimary('select pg_current_wal_flush_lsn()::text as lsn')
    await until(
      () => cluster.standby().run(`select pg_last_wal_replay_lsn() >= '${rows[0].lsn}' as reached`),
      (seen) => seen.rows[0].reached,
    )
    const fromUs = Date.now() * 1000
    await cluster.link().setFault({ kind: 'refuse' })
    await after(random.whole(200, 2_500))
    return fromUs
  }

  function promote(): Promise<void> {
    return cluster.promote(() => {
      if (!random.chance(0.3)) return
      random.pick(fleet.berths).kill()
      report.kills += 1
    })
  }

  const readFound = async () => {
    const { rows } = await onPrimary(
      'select lost_at is not null as found, difference is null as agreed from outboxd.history(null, null, null)',
    )
    return rows[0] as { found: boolean; agreed: boolean }
  }

  async function goOnByItself(): Promise<void> {
    const seen = await until(readFound, ({ found, agreed }) => agreed || found, noticedWithinMs).catch(() => null)
    if (seen === null) complaints.push(`failover ${report.failovers}: nobody has noticed it`)
    else if (seen.agreed) report.wentOn += 1
    else {
      complaints.push(`failover ${report.failovers}: it did not go on by itself`)
      await recoverByHand()
    }
  }

  async function goOnByHand(): Promise<void> {
    const seen = await until(readFound, ({ found }) => found, noticedWithinMs).catch(() => null)
    if (seen === null) complaints.push(`failover ${report.failovers}: nobody has noticed it`)
    else {
      report.stopped += 1
      await recoverByHand()
    }
  }

  async function recoverByHand(): Promise<void> {
    const context = testContext(surroundings.env)
    const code = await recover.action(context, { yes: true })
    if (code !== 0) complaints.push(`failover ${report.failovers}: recover left with ${code}: ${context.messages()}`)
  }

  /** Waits until some records have been sent. */
  async function flows(): Promise<void> {
    await until(
      () => onPrimary(`select from outboxd.submission where state = 'sending' or accepted_at is not null`),
      ({ rowCount }) => (rowCount ?? 0) > 0,
    )
  }

  return {
    report,
    lost,
    complaints,
    async begin() {
      await cluster.follow()
      await insert()
      await flows()
    },
    async failOver() {
      for (let i = random.whole(2, 6); i > 0; i--) {
        await insert()
        await after(random.whole(20, 400))
      }
      if (options.mode !== 'async') await until(cluster.isAwaited, Boolean)
      const fromUs = options.mode === 'async' ? await cutOff() : null
      await promote()
      report.failovers += 1
      if (fromUs !== null) lost.push({ fromUs, untilUs: Date.now() * 1000 })
      await Promise.all([cluster.follow(), options.mode === 'sync' ? goOnByItself() : goOnByHand()])
      await settleBlockingRecords(surroundings, false)
    },
  }
}
