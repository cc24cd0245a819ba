import type { Command } from 'commander'
import { type ActorOptions, actorOf } from '../cli/actor.ts'
import { confirm } from '../cli/confirm.ts'
import type { CommandContext } from '../cli/context.ts'
import { exit, usageError } from '../cli/exitCodes.ts'
import { printJson } from '../cli/printJson.ts'
import { hiddenMessage, startMessage } from '../cli/startMessage.ts'
import { pluralize } from '../cli/table.ts'
import { isoTime, parseMoment } from '../cli/time.ts'
import { withOperatorStore } from '../cli/withOperatorStore.ts'
import { systemClock } from '../clock.ts'
import type { Adoption, UnderWay } from '../ledger/operator/adoptOutbox.ts'
import { ForeignOutbox, nameOutbox, type StartPosition } from '../ledger/servedOutbox.ts'
import type { HiddenRows } from '../outbox/beforeStart.ts'
import type { OperatorStore } from '../store/operatorStore.ts'
import { actorProblems, asOption, reasonOption } from './actorOptions.ts'

export interface AdoptOptions extends ActorOptions {
  same?: boolean
  new?: boolean
  start?: string
  yes?: boolean
  dryRun?: boolean
  json?: boolean
}

export function describeAdopt(command: Command): Command {
  return command
    .description('say which outbox table the ledger belongs to, and from which row on')
    .option(
      '--same',
      'the configured table has the rows that the ledger knows: it was renamed or moved, or the ERP edits them',
    )
    .option('--new', 'its rows are others: another table, or ids that began anew (truncate … restart identity)')
    .option('--start <position>', 'ignore rows before it: now, id:N, or since:D (2026-11-01, 2h)')
    .addOption(asOption)
    .addOption(reasonOption)
    .option('--dry-run', 'show what it would mean; change nothing')
    .option('--yes', 'do not ask')
    .option('--json', 'as JSON')
    .addHelpText(
      'after',
      `
A ledger serves one outbox table, known by its database, its name and its id column; where the configuration names
another one, nothing is captured until this says what is meant. Where the ledger knows no table yet, --start alone will do:
give it before the first start to leave an existing table's history alone. It holds for all instances, at once and for ever.

Examples:
  outboxd adopt --start now              from the rows on that are written from now on
  outboxd adopt --new --yes              the table was emptied, and its ids began anew
  outboxd adopt --same                   OUTBOX_TABLE was renamed`,
    )
}

type Start = 'now' | StartPosition | null

/** Says which outbox the ledger belongs to. @returns 4 where nobody confirmed, 1 where the position does not fit the table */
export async function adopt(context: CommandContext, options: AdoptOptions): Promise<number> {
  const start = readStart(options.start)
  const problems = [
    ...actorProblems(options),
    start === undefined ? `--start takes now, id:N or since:D, and not ${options.start}` : null,
    options.same && options.new ? 'give --same or --new, not both' : null,
    !options.same && !options.new && start === null ? 'give --same, --new or --start' : null,
  ].filter((problem) => problem !== null)
  if (problems.length > 0 || start === undefined) return usageError(context, problems)
  return withOperatorStore(context, async (store) => {
    const served = await store.readServedOutbox()
    const identity = await store.outbox.identify()
    const isServed = served.identity === null || nameOutbox(served.identity) === nameOutbox(identity)
    if (!isServed && !options.same && !options.new) {
      const its = served.identity === null ? '' : nameOutbox(served.identity)
      return usageError(context, [
        `the ledger belongs to the outbox ${its}: say whether ${nameOutbox(identity)} has the --same rows, or --new ones`,
      ])
    }
    const position = start === 'now' ? await store.outbox.findNow() : start
    const whyNotAllowed = position === null ? null : await store.outbox.tryStart(position)
    if (whyNotAllowed !== null) return usageError(context, [whyNotAllowed])
    const hidden = position === null ? null : await store.outbox.readHidden(position)
    const isKnown = isServed && served.identity !== null && !options.new
    const notCaptured = position !== null && hidden === null && isKnown ? await countNotCaptured(store) : 0
    const adoption: Adoption = { identity, rows: options.new ? 'new' : 'same', start: position }
    const underWay = await store.readUnderWay()
    context.stderr.write(preview(adoption, underWay, { hidden, notCaptured }))
    if (!options.yes && !options.dryRun) {
      const answer = await confirm(context, 'Is that so?')
      if (answer === 'no-terminal')
        context.stderr.write('outboxd: this is no terminal, so nobody could confirm: give --yes\n')
      if (answer !== 'yes') return exit.unconfirmed
    }
    if (!options.dryRun) {
      await store.actingAs(actorOf(context, options)).adopt(adoption)
      context.stderr.write(`The ledger belongs to the outbox ${nameOutbox(identity)}.\n`)
    }
    if (options.json)
      printJson(context, { dryRun: options.dryRun ?? false, ...adoption, underWay, hidden, notCaptured })
    return exit.done
  })
}

/** Of a table whose ids began anew nothing can be told: which of its rows the ledger knows is what is being said. */
async function countNotCaptured({ outbox }: OperatorStore): Promise<number> {
  try {
    return (await outbox.backlog()).waiting
  } catch (error) {
    if (!(error instanceof ForeignOutbox)) throw error
    return 0
  }
}

/** @returns undefined where it cannot be read */
function readStart(text: string | undefined): Start | undefined {
  if (text === undefined) return null
  if (text === 'now') return 'now'
  const [, kind, value = ''] = /^(id|since):(.+)$/.exec(text) ?? []
  if (kind === 'id') return { id: value, at: null }
  const atMs = kind === 'since' ? parseMoment(value, systemClock.nowMs()) : null
  return atMs === null ? undefined : { id: null, at: isoTime(atMs) }
}

function preview(
  { identity, rows, start }: Adoption,
  { submissions, reports, sent }: UnderWay,
  { hidden, notCaptured }: { hidden: HiddenRows | null; notCaptured: number },
): string {
  const lines = [
    `The ledger will belong to the outbox ${nameOutbox(identity)}.`,
    rows === 'new'
      ? 'Its rows count as others than those that the ledger knows: each that waits will be sent.'
      : 'Its rows are those that the ledger knows.',
    rows === 'new' && sent > 0
      ? `The ledger has sent ${pluralize(sent, 'record')} of this outbox already: each of them whose row is still there and waits (in a table without a state: every row) is sent AGAIN.`
      : null,
    startMessage(start),
    hiddenMessage(hidden),
    notCaptured > 0
      ? `${pluralize(notCaptured, 'row')} of it ${notCaptured === 1 ? 'is' : 'are'} not captured yet: what of them lies before that is never sent.`
      : null,
    rows === 'new' && submissions + reports > 0
      ? `Of the former outbox ${pluralize(submissions, 'record')} are under way and go on; neither these nor ${pluralize(reports, 'outcome')} that are due will be written to any row.`
      : null,
  ]
  return lines.flatMap((line) => (line === null ? [] : [`${line}\n`])).join('')
}
