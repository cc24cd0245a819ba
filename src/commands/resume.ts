import type { Command } from 'commander'
import { systemClock } from '../clock.ts'
import type { CommandContext } from './context.ts'
import { exit, operate } from './operate.ts'
import { cut } from './table.ts'
import { showMoment } from './time.ts'

export interface ResumeOptions {
  all?: boolean
}

export function describeResume(command: Command): Command {
  return command
    .description("end the operator's pause")
    .option('--all', 'also do not wait for the end of the other pauses: you have removed their cause')
    .addHelpText(
      'after',
      `
Other pauses (throttled, unavailable, unauthorized, unreachable) end by themselves. With --all one request feels the way
now, and all resume when it is answered as it should be.

Examples:
  outboxd resume
  outboxd resume --all   the credentials are right now: do not wait the minute`,
    )
}

/** Ends the operator's pause, and says which others remain. */
export async function resume(context: CommandContext, options: ResumeOptions): Promise<number> {
  return operate(context, async (store) => {
    const ended = await store.resume()
    const shortened = options.all ? await store.shortenPauses() : []
    const { pauses } = await store.readSnapshot()
    const say = (line: string) => context.stderr.write(`${line}\n`)
    if (ended === null && pauses.length === 0) say('No pause was on.')
    else if (ended === null) say('No operator had paused.')
    else say(`Resumed; the pause was: ${cut(ended, 300)}`)
    const nowMs = systemClock.nowMs()
    for (const { reason, untilMs, detail } of pauses) {
      const until = shortened.includes(reason)
        ? 'until the next request has shown that it is over'
        : `until ${showMoment(untilMs ?? nowMs, nowMs)} at least`
      say(`Still paused (${reason}) ${until}: ${cut(detail, 300)}`)
    }
    if (pauses.length > 0 && !options.all) say('These end by themselves; outboxd resume --all tries at once.')
    return exit.done
  })
}
