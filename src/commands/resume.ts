import type { Command } from 'commander'
import type { CommandContext } from '../cli/context.ts'
import { exit } from '../cli/exitCodes.ts'
import { truncate } from '../cli/table.ts'
import { showMoment } from '../cli/time.ts'
import { withOperatorStore } from '../cli/withOperatorStore.ts'
import { systemClock } from '../clock.ts'

export interface ResumeOptions {
  all?: boolean
  believeRefusals?: boolean
}

export function describeResume(command: Command): Command {
  return command
    .description("end the operator's pause")
    .option('--all', 'also do not wait for the end of the other pauses: you have removed their cause')
    .option('--believe-refusals', 'refusals of record after record in the same words are right: reject the records')
    .addHelpText(
      'after',
      `
Other pauses (throttled, unavailable, unauthorized, unreachable) end by themselves. With --all one trial request goes first
now, and all resume when it is answered as it should be.

Ten records in a row that are refused in the same words, without a code of the service's, pause everybody and are queued
again, as that is rarely their own fault. Where it is, --believe-refusals takes these words for what they say, for a day: the
records are rejected like any other, and can be replayed when the mapping or the data are right.

Examples:
  outboxd resume
  outboxd resume --all   the credentials are right now: do not wait the minute`,
    )
}

/** How long refusals in the same words are taken at their word. */
const believedMs = 86_400_000

/** Ends the operator's pause, and says which others remain. */
export async function resume(context: CommandContext, options: ResumeOptions): Promise<number> {
  return withOperatorStore(context, async (store) => {
    const ended = await store.resume()
    const believed = options.believeRefusals ? await store.believeRefusals(believedMs) : []
    const shortened = options.all || options.believeRefusals ? await store.shortenPauses() : []
    const { pauses } = await store.readSnapshot()
    const say = (line: string) => context.stderr.write(`${line}\n`)
    if (ended === null && pauses.length === 0) say('No pause was on.')
    else if (ended === null) say('No operator had paused.')
    else say(`Resumed; the pause was: ${truncate(ended, 300)}`)
    for (const summary of believed) say(`Taken at its word for a day: ${truncate(summary, 300)}`)
    if (options.believeRefusals && believed.length === 0) say('There is no mass refusal to believe.')
    const nowMs = systemClock.nowMs()
    for (const { reason, untilMs, detail } of pauses) {
      const until = shortened.includes(reason)
        ? 'until the next request has shown that it is over'
        : `until ${showMoment(untilMs ?? nowMs, nowMs)} at least`
      say(
        `Still paused (${reason}) ${until}: ${truncate(options.believeRefusals ? withoutAdvice(detail) : detail, 300)}`,
      )
    }
    if (pauses.length > 0 && !options.all && !options.believeRefusals)
      say('These end by themselves; outboxd resume --all tries at once.')
    return exit.done
  })
}

/** The advice to give the command that was just given (ledger/refusals.ts) is none any more. */
const withoutAdvice = (detail: string) => detail.replace(/; if it is right, outboxd resume --believe-refusals.*$/s, '')
