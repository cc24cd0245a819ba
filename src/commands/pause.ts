import { systemClock } from '../clock.ts'
import { describeOperatorPause, raiseOperatorPause } from '../ledger/pauses.ts'
import { operatorOf } from '../operations/databases.ts'
import { parsePauseRequest, pauseMessage } from '../operations/pause.ts'
import { formatIsoInstantOrNull } from '../time.ts'
import { defineCommand } from './terminal/command.ts'
import { exitCodes, printJson, printUsageErrors } from './terminal/context.ts'
import { actorOf, asOption, dryRunOption, findActorProblems, withDatabases } from './terminal/operator.ts'

export const command = defineCommand({
  description: 'stop all requests of all instances, until outboxd resume or for a time',
  options: [
    ['--reason <text>', 'why; outboxd status shows it', { required: true }],
    asOption,
    ['--for <duration>', 'for 30s, 45m, 2h or 1d (default: until outboxd resume)'],
    dryRunOption,
    ['--json', 'print JSON'],
  ],
  help: `Requests under way are finished. New records are still captured, up to CAPTURE_WINDOW. A second pause replaces the first.

Examples:
  outboxd pause --reason "service fails, told its operator" --for 1h
  outboxd pause --reason "year-end closing"`,
  async action(context, options): Promise<number> {
    const read = parsePauseRequest({ reason: options.reason, for: options.for })
    const problems = findActorProblems({ as: options.as })
    if (read.kind === 'invalid') problems.push(...read.problems.map(({ field, problem }) => `--${field} ${problem}`))
    if (read.kind === 'invalid' || problems.length > 0) return printUsageErrors(context, problems)
    const { forMs } = read
    return withDatabases(context, async (databases) => {
      const actor = actorOf(context, { ...options, reason: read.reason })
      const detail = describeOperatorPause(actor)
      const { dryRun = false } = options
      if (!dryRun) await raiseOperatorPause(operatorOf(databases, actor), forMs)
      const nowMs = systemClock.nowMs()
      const untilMs = forMs === null ? null : nowMs + forMs
      if (options.json) printJson(context, { dryRun, reason: detail, until: formatIsoInstantOrNull(untilMs) })
      context.stderr.write(`${pauseMessage(forMs, { dryRun, nowMs })}\n`)
      return exitCodes.done
    })
  },
})
