import { systemClock } from '../clock.ts'
import { operatorOf } from '../operations/databases.ts'
import { previewResume, type Resumed, resumeMessages, resumeSending } from '../operations/pause.ts'
import { escapeControl } from '../plainText.ts'
import { isoTimeOrNull } from '../time.ts'
import { defineCommand, type OptionsOf } from './terminal/command.ts'
import { exit, printJson, usageError } from './terminal/context.ts'
import { actorOf, actorProblems, asOption, reasonOption, withDatabases } from './terminal/operator.ts'

export const command = defineCommand({
  description: "end the operator's pause",
  options: [
    ['--all', 'also try the other pauses now, because you have removed their cause'],
    ['--believe-refusals', 'a mass refusal is correct: reject the refused records'],
    asOption,
    reasonOption,
    ['--dry-run', 'say what it would do; change nothing'],
    ['--json', 'as JSON'],
  ],
  help: `Other pauses (throttled, unavailable, unauthorized, unreachable) end by themselves. With --all one trial request goes first
now, and all resume when it is answered as it should be.

Ten records in a row that are refused in the same words, without a code of the service's, pause everybody and are queued
again, as that is rarely their own fault. Where it is, --believe-refusals takes these words for what they say, for a day: the
records are rejected like any other, and can be replayed when the mapping or the data are right.

Examples:
  outboxd resume
  outboxd resume --all   the credentials are right now: do not wait the minute`,
  async action(context, options): Promise<number> {
    const problems = actorProblems(options)
    if (problems.length > 0) return usageError(context, problems)
    return withDatabases(context, async (databases) => {
      const { all = false, believeRefusals = false, dryRun = false } = options
      const terms = { all, believeRefusals }
      const resumed = await (dryRun
        ? previewResume(databases.ledger, terms)
        : resumeSending(operatorOf(databases, actorOf(context, options)), terms))
      if (options.json) printJson(context, jsonOf(resumed, options))
      for (const line of resumeMessages(resumed, { ...terms, dryRun, nowMs: systemClock.nowMs() }))
        context.stderr.write(`${escapeControl(line)}\n`)
      return exit.done
    })
  },
})

type ResumeOptions = OptionsOf<typeof command>

const jsonOf = ({ ended, believed, shortened, remaining }: Resumed, { dryRun = false }: ResumeOptions) => ({
  dryRun,
  ended,
  believed,
  remaining: remaining.map(({ reason, untilMs, detail }) => ({
    reason,
    until: isoTimeOrNull(untilMs),
    detail,
    isTriedNow: shortened.includes(reason),
  })),
})
