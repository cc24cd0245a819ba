import { systemClock } from '../clock.ts'
import {
  previewResume,
  type ResumeOutcome,
  readReachMessage,
  resumeMessages,
  resumeSending,
} from '../operations/pause.ts'
import { escapeControl } from '../plainText.ts'
import { formatIsoInstantOrNull } from '../time.ts'
import { defineCommand, type OptionsOf } from './terminal/command.ts'
import { exitCodes, printJson } from './terminal/context.ts'
import { actorNameOption, dryRunOption, reasonOption, withOperator } from './terminal/operator.ts'

export const command = defineCommand({
  description: "end the operator's pause",
  options: [
    ['--all', "also send one request now; if it succeeds, the daemon's pause ends"],
    actorNameOption,
    reasonOption,
    dryRunOption,
    ['--json', 'print JSON'],
  ],
  help: `A pause that the daemon began (throttled, unavailable, unauthorized, unreachable) ends when one request succeeds. The
daemon tries by itself, unless three submissions were left in doubt one after the other: then only --all sends the next.

Examples:
  outboxd resume
  outboxd resume --all   after you corrected the credentials`,
  async action(context, options): Promise<number> {
    return withOperator(context, options, [], async ({ ledger }, operator) => {
      const { all = false, dryRun = false } = options
      const terms = { all }
      const resumed = await (dryRun ? previewResume(ledger, terms) : resumeSending(operator, terms))
      if (options.json) printJson(context, jsonOf(resumed, options))
      for (const line of resumeMessages(resumed, { ...terms, dryRun, nowMs: systemClock.nowMs() }))
        context.stderr.write(`${escapeControl(line)}\n`)
      context.stderr.write(`${await readReachMessage(ledger)}\n`)
      return exitCodes.done
    })
  },
})

type ResumeOptions = OptionsOf<typeof command>

const jsonOf = (
  { endedOperatorPause, pauseTriedNow, remaining }: ResumeOutcome,
  { dryRun = false }: ResumeOptions,
) => ({
  dryRun,
  ended: endedOperatorPause,
  remaining: remaining.map(({ reason, untilMs, detail }) => ({
    reason,
    until: formatIsoInstantOrNull(untilMs),
    detail,
    isTriedNow: reason === pauseTriedNow,
  })),
})
