import { setTimeout as after } from 'node:timers/promises'
import { createSaleWriter } from './documents.ts'
import type { Environment } from './environment.ts'
import { type Adversaries, createFaultTable, type Fault, kills } from './faultTable.ts'
import { recoverLedger, settleBlockingRecords } from './operator.ts'
import type { ProgramCopy } from './programCopy.ts'
import { retryPatiently } from './retryPatiently.ts'
import type { SeededRandom } from './seededRandom.ts'
import { createRecordMaker, insertRecords, type Written } from './workload.ts'

export interface NemesisReport {
  /** How often each fault was caused, in the order of the table. */
  struck: Map<string, number>
  discarded: number
  resolved: number
  /** Number of `outboxd recover` after the ledger went back. */
  recovered: number
  /** All records handed to the database. Those that are not in the outbox were never committed. */
  written: Map<string, Written>
}

export interface NemesisOptions {
  /** The program that the operator's commands use. */
  program: ProgramCopy
  kills: number
  /** Mean time between two failovers, and between two restores. */
  rareMs: number
  random: (name: string) => SeededRandom
  say(text: string): void
  signal: AbortSignal
}

const insertEveryMs = 200
/** More records on their way would only prolong the end. */
const backlogMost = 300

/** Causes faults under load until `kills` daemons were killed and each fault has happened. Leaves no fault behind. */
export async function causeFaults(
  adversaries: Adversaries,
  { program, kills: killsWanted, rareMs, random, say, signal }: NemesisOptions,
): Promise<NemesisReport> {
  const { environment, fleet, service, erp, server } = adversaries
  const done: NemesisReport = { struck: new Map(), discarded: 0, resolved: 0, recovered: 0, written: new Map() }
  const over = new AbortController()
  signal.addEventListener('abort', () => over.abort())

  /** Repeats `work` at random times, `everyMs` apart on average. */
  async function again(name: string, everyMs: number, work: (random: SeededRandom) => Promise<void>): Promise<void> {
    const chance = random(name)
    while (!over.signal.aborted) {
      await after(everyMs * (0.3 + 1.4 * chance.float()), undefined, { signal: over.signal }).catch(() => {})
      if (over.signal.aborted) return
      await work(chance)
    }
  }

  async function strike({ what, strike }: Fault, chance: SeededRandom): Promise<void> {
    const before = done.struck.get(what) ?? 0
    // Faults that have not happened yet may need running daemons.
    if (what === kills && before >= killsWanted) return
    const now = before + (await strike(chance))
    done.struck.set(what, now)
    if (what === kills && now > before && now % 100 === 0) say(`${now} kills, ${done.written.size} records`)
    if (isEnough()) over.abort()
  }

  const isEnough = () =>
    (done.struck.get(kills) ?? 0) >= killsWanted && [...done.struck.values()].every((times) => times > 0)

  const make = createRecordMaker(random('records'))
  const writeSale = createSaleWriter(environment.config.databaseUrl)
  const faults = createFaultTable(adversaries, rareMs)
  for (const { what } of faults) done.struck.set(what, 0)
  await Promise.all([
    ...faults.map((fault) => again(fault.what, fault.everyMs, (chance) => strike(fault, chance))),
    again('insert', insertEveryMs, async (chance) => {
      if ((await countUnfinishedRows(environment)) > backlogMost) return
      const rows = Array.from({ length: chance.whole(1, 4) }, make)
      for (const { marker, outcome, amount } of rows) done.written.set(marker, { marker, outcome, amount })
      await insertRecords(environment.database, rows).catch(() => {})
    }),
    again('document', insertEveryMs, async (chance) => {
      if ((await countUnfinishedRows(environment)) <= backlogMost) await writeSale(chance)
    }),
    // Under so many faults, pauses grow to a minute, and kills would not meet any request.
    again('operator', 2_000, (chance) => letOperatorAct(environment, program, done, chance)),
  ])
  signal.throwIfAborted()
  await service.clear()
  await server.clear()
  await retryPatiently(() => erp.clear())
  await retryPatiently(() => retryWriteBacksNow(environment))
  await fleet.awake()
  return done
}

/** Makes refused write-backs due now, because waiting up to ten minutes for them would only prolong the end. */
async function retryWriteBacksNow({ database }: Environment): Promise<void> {
  await database.query(
    'update outboxd.submission set report_not_before = clock_timestamp() where report_not_before > clock_timestamp()',
  )
}

/** Counts records on their way. */
export async function countUnfinishedRows({ database }: Pick<Environment, 'database'>): Promise<number> {
  const { rows } = await retryPatiently(() =>
    database.query<{ n: number }>(
      `select count(*)::int as n from outbox where status in ('new', 'queued', 'sending', 'accepted')`,
    ),
  )
  return rows[0]?.n ?? 0
}

/**
 * Lets an operator recover a ledger that went back, settle records that block others, and end pauses.
 *
 * @param random kills half of the `recover` commands; without it, none
 */
export async function letOperatorAct(
  environment: Environment,
  program: ProgramCopy,
  done: Pick<NemesisReport, 'discarded' | 'resolved' | 'recovered'>,
  random?: SeededRandom,
): Promise<void> {
  if (await retryPatiently(() => recoverLedger(environment, program, random))) done.recovered += 1
  const { discarded, resolved } = await retryPatiently(() => settleBlockingRecords(environment, true))
  done.discarded += discarded
  done.resolved += resolved
}
