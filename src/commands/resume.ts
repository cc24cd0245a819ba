import type { Command } from 'commander'
import type { CommandContext } from '../cli/context.ts'
import { exit } from '../cli/exitCodes.ts'
import { printJson } from '../cli/printJson.ts'
import { escapeControl, truncate } from '../cli/table.ts'
import { isoTimeOrNull, showMoment } from '../cli/time.ts'
import { withOperatorStore } from '../cli/withOperatorStore.ts'
import { systemClock } from '../clock.ts'
import type { LedgerSnapshot } from '../ledger/snapshot.ts'
import type { PauseReason } from '../model.ts'
import type { OperatorStore } from '../store/operatorStore.ts'

export interface ResumeOptions {
  all?: boolean
  believeRefusals?: boolean
  dryRun?: boolean
  json?: boolean
}

export function describeResume(command: Command): Command {
  return command
    .description("end the operator's pause")
    .option('--all', 'also do not wait for the end of the other pauses: you have removed their cause')
    .option('--believe-refusals', 'refusals of record after record in the same words are right: reject the records')
    .option('--dry-run', 'say what it would do; change nothing')
    .option('--json', 'as JSON')
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

/** There is one mass refusal a resource. */
const problemsMax = 1_000

/** Ends the operator's pause, and says which others remain. */
export async function resume(context: CommandContext, options: ResumeOptions): Promise<number> {
  return withOperatorStore(context, async (store) => {
    const resumed = await (options.dryRun ? foresee : act)(store, options)
    if (options.json) printJson(context, jsonOf(resumed, options))
    for (const line of messages(resumed, options)) context.stderr.write(`${escapeControl(line)}\n`)
    return exit.done
  })
}

/** What was, or would be, changed. */
interface Resumed {
  /** What was said when the operator's pause was raised; null where there was none. */
  ended: string | null
  /** Refusals that are taken at their word. */
  believed: readonly string[]
  /** Pauses that now end with the first good answer. */
  shortened: readonly PauseReason[]
  remaining: LedgerSnapshot['pauses']
}

async function act(store: OperatorStore, { all, believeRefusals }: ResumeOptions): Promise<Resumed> {
  const ended = await store.resume()
  const believed = believeRefusals ? await store.believeRefusals(believedMs) : []
  const shortened = all || believeRefusals ? await store.shortenPauses() : []
  const { pauses } = await store.readSnapshot()
  return { ended, believed, shortened, remaining: pauses }
}

/** What `act` would do, from what stands. */
async function foresee(store: OperatorStore, { all, believeRefusals }: ResumeOptions): Promise<Resumed> {
  const { pauses } = await store.readSnapshot()
  const problems = await store.readProblems(problemsMax)
  const remaining = pauses.filter(({ reason }) => reason !== 'operator')
  const refusals = problems.filter(({ kind }) => kind === 'mass_refusal')
  return {
    ended: pauses.find(({ reason }) => reason === 'operator')?.detail ?? null,
    believed: believeRefusals ? refusals.map(({ detail }) => withoutAdvice(detail)) : [],
    shortened: all || believeRefusals ? remaining.map(({ reason }) => reason) : [],
    remaining,
  }
}

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

function messages({ ended, believed, shortened, remaining }: Resumed, options: ResumeOptions): string[] {
  const { all, believeRefusals, dryRun } = options
  const nowMs = systemClock.nowMs()
  const endedMessage =
    ended !== null
      ? `${dryRun ? 'Would resume' : 'Resumed'}; the pause ${dryRun ? 'is' : 'was'}: ${truncate(ended, 300)}`
      : remaining.length === 0
        ? 'No pause was on.'
        : 'No operator had paused.'
  return [
    endedMessage,
    ...believed.map((summary) => `Taken at its word for a day: ${truncate(summary, 300)}`),
    ...(believeRefusals && believed.length === 0 ? ['There is no mass refusal to believe.'] : []),
    ...remaining.map(({ reason, untilMs, detail }) => {
      const until = shortened.includes(reason)
        ? 'until the next request has shown that it is over'
        : `until ${showMoment(untilMs ?? nowMs, nowMs)} at least`
      return `Still paused (${reason}) ${until}: ${truncate(believeRefusals ? withoutAdvice(detail) : detail, 300)}`
    }),
    ...(remaining.length > 0 && !all && !believeRefusals
      ? ['These end by themselves; outboxd resume --all tries at once.']
      : []),
  ]
}

/** The advice to give the command that was just given (ledger/refusals.ts) is none any more. */
const withoutAdvice = (detail: string) => detail.replace(/; if it is right, outboxd resume --believe-refusals.*$/s, '')
