import { setTimeout as after } from 'node:timers/promises'
import { makeTrialDue } from '../../src/ledger/breaker.ts'
import { LedgerMayHaveLostData } from '../../src/ledger/history/history.ts'
import { discardSeenSubmissions } from '../../src/ledger/operator/decisions.ts'
import { readHistoryPause } from '../../src/ledger/operator/recover.ts'
import { resolveAsArrived } from '../../src/ledger/operator/resolveSubmission.ts'
import {
  anySubmissionFilter,
  type ListedSubmission,
  type SubmissionFilter,
  selectSubmissions,
} from '../../src/ledger/operator/selectSubmissions.ts'
import type { TransactionRef } from '../../src/ledger/transactions.ts'
import { createOperator, openDatabases } from '../../src/operations/databases.ts'
import type { Ended, Program } from '../../test/support/program.ts'
import type { Surroundings } from './environment.ts'
import type { ProgramCopy } from './programCopy.ts'
import type { SeededRandom } from './seededRandom.ts'

/** What the operator did so that every record ends. */
export interface Settled {
  discarded: number
  resolved: number
}

const uncertainOnes: SubmissionFilter = { ...anySubmissionFilter, states: ['uncertain'] }
const roundMost = 100_000
const resolvedMost = 2

/**
 * Settles uncertain records that hold back others of their key, as `outboxd resolve` and `outboxd discard` do. Resolves some that the
 * service has as arrived, and discards the others.
 *
 * @param resume true to also end pauses now, as `outboxd resume --all` does
 */
export async function settleBlockingRecords(environment: Surroundings, resume: boolean): Promise<Settled> {
  await using databases = await openDatabases(environment.config, 'crash@campaign', () => 'outbox')
  const operator = createOperator(databases, { who: 'operator crash', reason: 'crash campaign' })
  if (resume) await makeTrialDue(operator)
  const seen = (await selectSubmissions(databases.ledger, uncertainOnes, roundMost)).filter(({ key }) => key !== null)
  const settled: Settled = { discarded: 0, resolved: 0 }
  try {
    const hopeless: ListedSubmission[] = []
    for (const each of seen) {
      const effect = settled.resolved < resolvedMost ? await findEffect(environment, each.outboxId) : null
      if (effect === null) hopeless.push(each)
      else if ((await resolveAsArrived(operator, each, effect)).kind === 'settled') settled.resolved += 1
    }
    if (hopeless.length > 0) settled.discarded = (await discardSeenSubmissions(operator, hopeless)).length
  } catch (error) {
    if (!(error instanceof LedgerMayHaveLostData)) throw error // the next round comes after `recover`
  }
  return settled
}

/**
 * If the ledger went back in time, runs `outboxd recover`, which makes records uncertain that may have been sent since.
 *
 * @param random kills half of these commands; without it, none
 * @returns true if sending goes on
 */
export async function recoverLedger(
  { config, env }: Surroundings,
  program: ProgramCopy,
  random?: SeededRandom,
): Promise<boolean> {
  {
    await using databases = await openDatabases(config, 'crash@campaign', () => 'outbox')
    if ((await readHistoryPause(databases.ledger)) === null) return false
  }
  const args = ['recover', '--yes', '--as', 'crash', '--reason', 'crash campaign']
  const { code } = await runAndPerhapsKill(program.start(args, env), random)
  return code === 0
}

/** Runs a command to its end. @param random decides whether to kill the command; without it, never */
export async function runAndPerhapsKill(command: Program, random?: SeededRandom): Promise<Ended> {
  if (random?.chance(0.5)) {
    await Promise.race([after(random.whole(...killedAfterMs)), command.ended()])
    command.signal('SIGKILL')
  }
  return command.ended()
}

const killedAfterMs = [400, 3_000] as const

async function findEffect({ database, telemetry }: Surroundings, outboxId: string): Promise<TransactionRef | null> {
  const { rows } = await database.query<{ marker: string }>(
    `select substring(payload::text from 'm[0-9]+\\.') as marker from outbox where id = $1`,
    [outboxId],
  )
  const { rows: effects } = await telemetry.query<TransactionRef>(
    `select coalesce(transaction_id, order_id::text) as "transactionId",
       case when order_id is null then 'data' else 'orders' end as resource from sandbox.ledger
     where method = 'POST' and body like $1 and num_nonnulls(transaction_id, order_id) = 1 order by sequence desc limit 1`,
    [`%${rows[0]?.marker}"%`],
  )
  return effects[0] ?? null
}
