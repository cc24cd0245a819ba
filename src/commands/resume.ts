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
    ['--all', "also send one request now; if it succeeds, the daemon's pauses end"],
    ['--believe-refusals', 'a mass refusal is correct: reject its records'],
    actorNameOption,
    reasonOption,
    dryRunOption,
    ['--json', 'print JSON'],
  ],
  help: `Pauses that the daemon began (throttled, unavailable, unauthorized, unreachable) end by themselves. --all does not
wait for that: if its request succeeds, all sending resumes.

If 10 records in a row get the same refusal, all sending pauses, because the data is probably not the cause. If the data is
the cause, use --believe-refusals: for a day such records are rejected, and you can replay them after you fix the mapping or
the data.

Examples:
  outboxd resume
  outboxd resume --all   after you corrected the credentials`,
  async action(context, options): Promise<number> {
    return withOperator(context, options, [], async ({ ledger }, operator) => {
      const { all = false, believeRefusals = false, dryRun = false } = options
      const terms = { all, believeRefusals }
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
  { endedOperatorPause, believedRefusals, pausesTriedNow, remaining }: ResumeOutcome,
  { dryRun = false }: ResumeOptions,
) => ({
  dryRun,
  ended: endedOperatorPause,
  believed: believedRefusals,
  remaining: remaining.map(({ reason, untilMs, detail }) => ({
    reason,
    until: formatIsoInstantOrNull(untilMs),
    detail,
    isTriedNow: pausesTriedNow.includes(reason),
  })),
})
