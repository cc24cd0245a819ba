import { setTimeout } from 'node:timers/promises'
import { systemClock } from '../clock.ts'
import { type InstanceReload, readReloads, writeReload } from '../ledger/instances.ts'
import { type Databases, operatorOf } from '../operations/databases.ts'
import { escapeControl } from '../plainText.ts'
import { defineCommand } from './terminal/command.ts'
import { exit, printJson, usageError } from './terminal/context.ts'
import { actorOf, actorProblems, asOption, reasonOption, withDatabases } from './terminal/operator.ts'

export const command = defineCommand({
  description: 'make every running daemon read mapping files, outbox.yaml and credentials again',
  options: [asOption, reasonOption, ['--dry-run', 'say which daemons it would ask'], ['--json', 'as JSON']],
  help: `Asks by the ledger, on whichever hosts they run; they answer within a few seconds. SIGHUP does the same for one. A daemon whose
files are broken, or whose outbox table is not as outbox.yaml says, goes on with what it has read before, and says what is wrong. The
exit code is 1 if that is so, if the table could not be tried yet, and if one does not answer.`,
  /** @returns 3 if no daemon runs */
  async action(context, options): Promise<number> {
    const problems = actorProblems(options)
    if (problems.length > 0) return usageError(context, problems)
    return withDatabases(context, async (databases) => {
      const { dryRun = false } = options
      const asked = dryRun
        ? await readReloads(databases.ledger)
        : await writeReload(operatorOf(databases, actorOf(context, options)))
      const answers = dryRun ? asked : await awaitAnswers(databases, asked, context.signal)
      if (options.json) printJson(context, { dryRun, instances: answers })
      if (asked.length === 0) {
        context.stderr.write('No daemon runs: one that starts reads its files.\n')
        return exit.nothing
      }
      for (const answer of answers) context.stderr.write(`${escapeControl(messageOf(answer, dryRun))}\n`)
      const isGood = dryRun || answers.every(({ hasAnswered, problem }) => hasAnswered && problem === null)
      return isGood ? exit.done : exit.failed
    })
  },
})

/** A heartbeat comes every three seconds. */
const patienceMs = 15_000
const askAgainMs = 250

/** Waits until all daemons have answered or left, or `patienceMs` is over. */
async function awaitAnswers(
  databases: Databases,
  asked: readonly InstanceReload[],
  signal: AbortSignal,
): Promise<InstanceReload[]> {
  const ids = new Set(asked.map(({ id }) => id))
  const untilMs = systemClock.nowMs() + patienceMs
  for (;;) {
    const answers = (await readReloads(databases.ledger)).filter(({ id }) => ids.has(id))
    if (answers.every(({ hasAnswered }) => hasAnswered) || systemClock.nowMs() > untilMs || signal.aborted)
      return answers
    await setTimeout(askAgainMs)
  }
}

function messageOf({ id, host, version, hasAnswered, problem }: InstanceReload, dryRun: boolean): string {
  const daemon = `daemon ${id.slice(0, 8)} on ${host}`
  if (dryRun) return `Would ask ${daemon}.`
  if (!hasAnswered) return `${daemon} (${version}) has not answered: send it SIGHUP, and see outboxd status.`
  if (problem !== null) return `${daemon} goes on with the files that it had read: ${problem.replaceAll('\n', '; ')}`
  return `${daemon} has read its files again.`
}
