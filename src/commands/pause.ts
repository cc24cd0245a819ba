import type { Command } from 'commander'
import type { CommandContext } from '../cli/context.ts'
import { exit, usageError } from '../cli/exitCodes.ts'
import { printJson } from '../cli/printJson.ts'
import { isoTimeOrNull, showMoment } from '../cli/time.ts'
import { operatorName, withOperatorStore } from '../cli/withOperatorStore.ts'
import { systemClock } from '../clock.ts'
import { pauseDetail, readPause } from '../operations/pause.ts'

export interface PauseOptions {
  reason?: string
  for?: string
  dryRun?: boolean
  json?: boolean
}

export function describePause(command: Command): Command {
  return command
    .description('stop sending and asking, for all instances; survives restarts')
    .requiredOption('--reason <text>', 'why; outboxd status shows it, with your name')
    .option('--for <duration>', 'ends by itself after 30s, 45m, 2h, 1d, ... (default: until outboxd resume)')
    .option('--dry-run', 'say what it would do; change nothing')
    .option('--json', 'as JSON')
    .addHelpText(
      'after',
      `
What is on the wire comes to its end. New records are still captured, up to CAPTURE_WINDOW. A second pause replaces the first.

Examples:
  outboxd pause --reason "service fails, told its operator" --for 1h
  outboxd pause --reason "year-end closing"`,
    )
}

/** Pauses all instances. */
export async function pause(context: CommandContext, options: PauseOptions): Promise<number> {
  const read = readPause({ reason: options.reason, for: options.for })
  if (read.kind === 'invalid')
    return usageError(
      context,
      read.problems.map(({ field, problem }) => `--${field} ${problem}`),
    )
  const { forMs } = read
  return withOperatorStore(context, async (store) => {
    const detail = pauseDetail(read.reason, operatorName(context.env))
    const { dryRun = false } = options
    if (!dryRun) await store.pause(detail, forMs)
    const nowMs = systemClock.nowMs()
    const untilMs = forMs === null ? null : nowMs + forMs
    if (options.json) printJson(context, { dryRun, reason: detail, until: isoTimeOrNull(untilMs) })
    const until = untilMs === null ? 'until outboxd resume' : `until ${showMoment(untilMs, nowMs)}`
    context.stderr.write(
      dryRun ? `Would pause ${until}.\n` : `Paused ${until}. Running instances stop within a second.\n`,
    )
    return exit.done
  })
}
