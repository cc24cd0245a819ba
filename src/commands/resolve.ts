import type { Command } from 'commander'
import type { ListedSubmission } from '../store/operator/selectSubmissions.ts'
import type { OperatorStore } from '../store/operator.ts'
import type { CommandContext } from './context.ts'
import { exit, misused, operate } from './operate.ts'
import { findAll, referenceHelp } from './references.ts'

export interface ResolveOptions {
  arrived?: string
  notArrived?: boolean
}

const transactionIdMost = 500

export function describeResolve(command: Command): Command {
  return command
    .description('settle an uncertain record: say whether it arrived at the service')
    .argument('<id>', referenceHelp)
    .option('--arrived <transaction-id>', 'it arrived, as this transaction (or order): it is followed to its end')
    .option('--not-arrived', 'it never arrived: it is sent again, under a new idempotency key')
    .addHelpText(
      'after',
      `
Exactly one of the two, and only when you know: if it did arrive and you say that it did not, it is sent twice.
Those that its key held back go on.

Examples:
  outboxd resolve outbox:4711 --arrived 7f0c9f2e-2f0d-4a86-9d55-0f1f2f3f4f5f
  outboxd resolve outbox:4711 --not-arrived`,
    )
}

/** Settles one uncertain submission. @returns 1 where it is not uncertain, 3 where there is none */
export async function resolve(context: CommandContext, name: string, options: ResolveOptions): Promise<number> {
  const transactionId = options.arrived?.trim()
  const problems = resolveProblems(transactionId, options.notArrived ?? false)
  if (problems.length > 0) return misused(context, problems)
  return operate(context, async (store) => {
    const found = await findAll(store, [name])
    if (found.kind === 'wrong') return misused(context, found.problems)
    const submission = found.kind === 'found' ? found.submissions[0] : undefined
    if (submission === undefined) {
      context.stderr.write(`outboxd: there is no submission ${name}\n`)
      return exit.nothing
    }
    if (submission.state !== 'uncertain') {
      context.stderr.write(`outboxd: ${name} is ${submission.state}, not uncertain: there is nothing to settle\n`)
      return exit.failed
    }
    const settled = await settle(store, submission, transactionId)
    context.stderr.write(settled ?? `outboxd: ${name} changed meanwhile and was left alone: outboxd show ${name}\n`)
    return settled === null ? exit.failed : exit.done
  })
}

function resolveProblems(transactionId: string | undefined, notArrived: boolean): string[] {
  if ((transactionId === undefined) === !notArrived)
    return ['give exactly one of --arrived TRANSACTION_ID and --not-arrived']
  if (transactionId === undefined) return []
  if (transactionId === '') return ['--arrived needs the transaction id that the service gave']
  if (transactionId.length > transactionIdMost || /\s/.test(transactionId) || !transactionId.isWellFormed())
    return [`--arrived takes one transaction id, without blanks, of at most ${transactionIdMost} characters`]
  return []
}

/** @returns what was done, in words; null where it was no longer as it was seen */
async function settle(
  store: OperatorStore,
  submission: ListedSubmission,
  transactionId: string | undefined,
): Promise<string | null> {
  const name = `outbox:${submission.outboxId}`
  if (transactionId === undefined) {
    const settled = await store.resolveNotArrived(submission)
    return settled ? `${name} is queued again, under a new idempotency key.\n` : null
  }
  const settled = await store.resolveArrived(submission, transactionId)
  if (settled === null) return null
  return settled.tracked
    ? `${name} is accepted as ${transactionId} and will be asked for at once.\n`
    : `${name} is completed as ${transactionId}: its mapping says that it is not tracked.\n`
}
