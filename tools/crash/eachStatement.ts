import { setTimeout as after } from 'node:timers/promises'
import { startPostgres } from '../../test/support/postgres.ts'
import { chooseIdempotency } from './campaign.ts'
import type { Violation } from './checker.ts'
import { conclude } from './conclude.ts'
import { openSurroundings } from './environment.ts'
import { launchFleet } from './fleet.ts'
import type { History } from './history.ts'
import { type MutationName, mutations } from './mutations.ts'
import { countUnfinishedRows } from './nemesis.ts'
import { settleBlockingRecords } from './operator.ts'
import { copyProgram } from './programCopy.ts'
import { createSeededRandom } from './seededRandom.ts'
import { learnIdleStatements, type Moment, watchStatements } from './statements.ts'
import { createRecordMaker, insertRecords, type Written } from './workload.ts'

export interface EachStatementOptions {
  seed: number
  daemons: number
  mutation: MutationName | null
  /** Folder with binaries of a different PostgreSQL; null for those from npm. */
  postgresDir: string | null
  isPooled: boolean
  say(text: string): void
  /** Aborting it ends the run with an error and stops everything that it started. */
  signal: AbortSignal
}

export interface EachStatementResult {
  options: EachStatementOptions
  seconds: number
  /** Statements on the way of a record, and when daemons were killed at each. */
  statements: { statement: string; struck: Moment['when'][] }[]
  history: History
  violations: Violation[]
}

/** Enough that the daemons use up the rate limit. */
const backlogMin = 120
/** Rare statements, such as the takeover of a dead daemon's records, come after some 18 s without a kill. */
const quietMs = 25_000

/**
 * Kills a daemon before and after each statement on the way of a record, once each. Each kill lets the next daemon come
 * one statement further. Then lets the daemons finish, and compares outbox, ledger and service.
 */
export async function strikeAtEachStatement(options: EachStatementOptions): Promise<EachStatementResult> {
  const { seed, say, signal } = options
  const mutation = options.mutation === null ? null : mutations[options.mutation]
  const begun = performance.now()
  await using program = await copyProgram(mutation?.patches ?? [])
  await using server = await startPostgres({}, options.postgresDir ?? undefined)
  await using surroundings = await openSurroundings(program, server.url, {
    idempotency: mutation?.idempotency ?? chooseIdempotency(seed),
    seed,
    standby: 'none',
    isPooled: options.isPooled,
  })
  await using statements = await watchStatements(program)
  const fleet = launchFleet({ program, env: surroundings.env, size: options.daemons, statements })
  const written = new Map<string, Written>()
  const make = createRecordMaker(createSeededRandom(seed, 'records'))

  async function keepBusy(): Promise<void> {
    const rows = Array.from({ length: 10 }, make)
    if ((await countUnfinishedRows(surroundings)) >= backlogMin) return
    for (const { marker, outcome, amount } of rows) written.set(marker, { marker, outcome, amount })
    await insertRecords(surroundings.database, rows)
  }

  try {
    await learnIdleStatements(statements, fleet)
    await statements.arm()
    let kills = 0
    let busyMs = performance.now()
    while (performance.now() - busyMs < quietMs) {
      signal.throwIfAborted()
      await keepBusy()
      const { length } = await statements.readStruck()
      if (length > kills || !fleet.berths.every((berth) => berth.atWork())) busyMs = performance.now()
      if (Math.floor(length / 25) > Math.floor(kills / 25)) say(`${length} kills, ${written.size} records`)
      kills = length
      await after(200)
    }
    await statements.disarm()
    say(`${kills} kills at statements; waiting for every record's end`)
    const concluded = await conclude({
      surroundings,
      fleet,
      written,
      lost: [],
      signal,
      settle: () => settleBlockingRecords(surroundings, true),
    })
    const struck = Map.groupBy(await statements.readStruck(), ({ statement }) => statement)
    return {
      options,
      seconds: Math.round((performance.now() - begun) / 1000),
      statements: (await statements.readWay()).map((statement) => ({
        statement,
        struck: (struck.get(statement) ?? []).map(({ when }) => when),
      })),
      ...concluded,
    }
  } finally {
    fleet.scuttle()
  }
}
