import { readConfig } from '../config.ts'
import type { Operator } from '../ledger/operator/operator.ts'
import { askForTransaction } from '../operations/askForTransaction.ts'
import { operatorOf } from '../operations/databases.ts'
import {
  type Answer,
  answerProblems,
  findSettling,
  previewResolve,
  questionsBefore,
  type ResolveOutcome,
  resolveSubmission,
  type Settling,
  whyNotResolved,
} from '../operations/resolve.ts'
import { escapeLines } from '../plainText.ts'
import { type ActorOptions, actorOf, actorProblems } from './terminal/actor.ts'
import { isConfirmed, isNotRefused } from './terminal/confirm.ts'
import { askingAloud, type CommandContext, exit, printJson, usageError } from './terminal/context.ts'
import { withDatabases } from './terminal/withDatabases.ts'

export interface ResolveOneOptions extends ActorOptions {
  arrived?: string | undefined
  notArrived?: boolean | undefined
  takeBack?: boolean | undefined
  unchecked?: boolean | undefined
  newKey?: boolean | undefined
  dryRun?: boolean | undefined
  yes?: boolean | undefined
  json?: boolean | undefined
}

/**
 * Settles one submission.
 *
 * @param name how a person names it
 * @returns 1 where that is not possible, 3 where there is none, 4 where it was not confirmed
 */
export async function resolveOne(context: CommandContext, name: string, options: ResolveOneOptions): Promise<number> {
  const answer = answerOf(options)
  const problems = name === '' ? ['give the id of a submission, or --file'] : []
  problems.push(...answerProblems(answer), ...actorProblems(options))
  if (problems.length > 0) return usageError(context, problems)
  return withDatabases(context, async (databases) => {
    const found = await findSettling(databases, name)
    if (found.kind === 'invalid') return usageError(context, found.problems)
    if (found.kind === 'missing') {
      context.stderr.write(`outboxd: there is no submission ${name}\n`)
      return exit.nothing
    }
    const { settling } = found
    const against = await whyNotResolved(databases.ledger, settling, answer, name)
    if (against !== null) return conclude(context, settling, against, options)
    if (options.dryRun) return conclude(context, settling, previewResolve(settling, answer), options)
    if (!options.yes && !(await isMeant(context, settling, answer))) return exit.unconfirmed
    return conclude(
      context,
      settling,
      await carryOut(context, operatorOf(databases, actorOf(context, options)), settling, answer),
      options,
    )
  })
}

const answerOf = ({ arrived, notArrived, takeBack, unchecked, newKey }: ResolveOneOptions): Answer => ({
  arrived: arrived?.trim(),
  notArrived: notArrived ?? false,
  takeBack: takeBack ?? false,
  unchecked: unchecked ?? false,
  newKey: newKey ?? false,
})

async function isMeant(context: CommandContext, settling: Settling, answer: Answer): Promise<boolean> {
  for (const { text, isImplied } of questionsBefore(settling, answer))
    if (!(await (isImplied ? isNotRefused : isConfirmed)(context, text))) return false
  return true
}

const carryOut = (context: CommandContext, operator: Operator, settling: Settling, answer: Answer) =>
  resolveSubmission(
    {
      operator,
      askService: (transaction) => askForTransaction(readConfig(context.env), transaction, askingAloud(context)),
      onTestimony: (message) => void context.stderr.write(`${escapeLines(message)}.\n`),
    },
    settling,
    answer,
  )

/** Says what came of it, with the keys that --json has for a file of answers. @returns the exit code */
function conclude(
  context: CommandContext,
  { submission: { id, outboxId } }: Settling,
  outcome: ResolveOutcome,
  options: ResolveOneOptions,
): number {
  const isSettled = outcome.kind === 'settled'
  if (options.json)
    printJson(context, {
      dryRun: options.dryRun ?? false,
      settled: isSettled ? [{ id, outboxId, arrivedAs: outcome.arrivedAs, state: outcome.state }] : [],
      leftAlone: isSettled ? [] : [{ id, outboxId, reason: outcome.reason }],
    })
  const words = escapeLines(isSettled ? outcome.message : `outboxd: ${outcome.reason}`)
  const isData = isSettled && options.dryRun && !options.json
  if (isData) context.stdout.write(`${words}\n`)
  else context.stderr.write(`${words}\n`)
  return isSettled ? exit.done : exit.failed
}
