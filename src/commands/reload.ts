import { setTimeout } from 'node:timers/promises'
import { systemClock } from '../clock.ts'
import { type InstanceReload, readInstanceReloads, requestReload } from '../ledger/instances.ts'
import type { Databases } from '../operations/databases.ts'
import { escapeControl } from '../plainText.ts'
import { defineCommand } from './terminal/command.ts'
import { exitCodes, printJson } from './terminal/context.ts'
import { actorNameOption, reasonOption, withOperator } from './terminal/operator.ts'

export const command = defineCommand({
  description: 'make all running daemons read mapping files, outbox.yaml and credentials again',
  options: [actorNameOption, reasonOption, ['--dry-run', 'show which daemons it would ask'], ['--json', 'print JSON']],
  help: `Use it after you changed a file. It reaches all daemons through the ledger, on every host; SIGHUP does the same for one daemon.
A daemon whose new files are wrong keeps the previous ones and says why. The exit code is 1 if a daemon cannot use the new
files, could not reach the table to try outbox.yaml, or does not answer.`,
  async action(context, options): Promise<number> {
    return withOperator(context, options, [], async (databases, operator) => {
      const { dryRun = false } = options
      const asked = await (dryRun ? readInstanceReloads(databases.ledger) : requestReload(operator))
      const answers = dryRun ? asked : await awaitAnswers(databases, asked, context.signal)
      if (options.json) printJson(context, { dryRun, instances: answers })
      if (asked.length === 0) {
        context.stderr.write('No daemon is running. A daemon reads its files when it starts.\n')
        return exitCodes.nothing
      }
      for (const answer of answers) context.stderr.write(`${escapeControl(messageOf(answer, dryRun))}\n`)
      const isGood = dryRun || answers.every(({ hasAnswered, problem }) => hasAnswered && problem === null)
      return isGood ? exitCodes.done : exitCodes.failed
    })
  },
})

const patienceMs = 15_000
const askAgainMs = 250

async function awaitAnswers(
  databases: Databases,
  asked: readonly InstanceReload[],
  signal: AbortSignal,
): Promise<InstanceReload[]> {
  const ids = new Set(asked.map(({ id }) => id))
  const untilMs = systemClock.nowMs() + patienceMs
  for (;;) {
    const answers = (await readInstanceReloads(databases.ledger)).filter(({ id }) => ids.has(id))
    if (answers.every(({ hasAnswered }) => hasAnswered) || systemClock.nowMs() > untilMs || signal.aborted)
      return answers
    await setTimeout(askAgainMs)
  }
}

function messageOf({ id, host, version, hasAnswered, problem }: InstanceReload, dryRun: boolean): string {
  const daemon = `daemon ${id.slice(0, 8)} on ${host}`
  if (dryRun) return `Would ask ${daemon}.`
  if (!hasAnswered) return `${daemon} (${version}) has not answered. Send it SIGHUP, and look at \`outboxd status\`.`
  if (problem !== null) return `${daemon} keeps its previous files: ${problem.replaceAll('\n', '; ')}`
  return `${daemon} reloaded its files.`
}
