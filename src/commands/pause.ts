import { systemClock } from '../clock.ts'
import { describeOperatorPause, raiseOperatorPause } from '../ledger/pauses.ts'
import {
  colleaguesPauseMessage,
  parsePauseRequest,
  pauseMessage,
  readColleaguesPause,
  readReachMessage,
} from '../operations/pause.ts'
import { escapeControl } from '../plainText.ts'
import { formatIsoInstantOrNull } from '../time.ts'
import { defineCommand } from './terminal/command.ts'
import { askForConfirmation } from './terminal/confirm.ts'
import { exitCodes, printJson } from './terminal/context.ts'
import { actorNameOption, dryRunOption, withOperator } from './terminal/operator.ts'

export const command = defineCommand({
  description: 'stop all requests of all instances, until outboxd resume or for a time',
  options: [
    ['--reason <text>', 'why; outboxd status shows it', { required: true }],
    actorNameOption,
    ['--for <duration>', 'for 30s, 45m, 2h or 1d (default: until outboxd resume)'],
    dryRunOption,
    ['--yes', 'replace a pause of a colleague without asking'],
    ['--json', 'print JSON'],
  ],
  help: `Requests under way are finished. New records are still captured, until CAPTURE_WINDOW records are queued. A second
pause replaces the first. If the first is a colleague's, the command names it and asks.

Examples:
  outboxd pause --reason "service fails, told its operator" --for 1h
  outboxd pause --reason "year-end closing"`,
  async action(context, options): Promise<number> {
    const problems: string[] = []
    const { reason, forMs } = parsePauseRequest({ reason: options.reason, for: options.for }, problems)
    const actor = { as: options.as, reason: problems.length > 0 ? undefined : reason }
    return withOperator(context, actor, problems, async ({ ledger }, operator) => {
      const { dryRun = false, yes = false } = options
      const standing = await readColleaguesPause(ledger, operator.actor.who)
      if (standing !== null) {
        context.stderr.write(`${escapeControl(colleaguesPauseMessage(standing, systemClock.nowMs()))}\n`)
        const isWanted = dryRun || yes || (await askForConfirmation(context, 'Replace it?'))
        if (!isWanted) return exitCodes.unconfirmed
      }
      if (!dryRun) await raiseOperatorPause(operator, forMs)
      const nowMs = systemClock.nowMs()
      const until = formatIsoInstantOrNull(forMs === null ? null : nowMs + forMs)
      if (options.json) printJson(context, { dryRun, reason: describeOperatorPause(operator.actor), until })
      context.stderr.write(`${pauseMessage(forMs, { dryRun, nowMs })}\n${await readReachMessage(ledger)}\n`)
      return exitCodes.done
    })
  },
})
