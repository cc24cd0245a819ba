import { referenceHelp } from '../operations/references.ts'
import { resolveFile } from './resolveFile.ts'
import { resolveOne } from './resolveOne.ts'
import { asOption, reasonOption } from './terminal/actor.ts'
import type { CommandModule, OptionRow, OptionsOf } from './terminal/command.ts'
import { type CommandContext, usageError } from './terminal/context.ts'

const options = [
  ['--file <file.csv>', 'settle many: a line each, with the outbox id and the transaction id or not-arrived'],
  ['--arrived <transaction-id>', 'it arrived, as this transaction (or order): we follow it to its end'],
  ['--not-arrived', 'it never arrived: we send it again under the same idempotency key'],
  ['--take-back', 'the id that a person gave is wrong, and no other is known yet: it is uncertain again'],
  ['--unchecked', 'with --arrived or --file: do not ask the service first'],
  ['--new-key', 'with --not-arrived or --file: under a new idempotency key'],
  asOption,
  reasonOption,
  ['--dry-run', 'show what would be settled; change nothing, and do not ask the service'],
  ['--yes', 'do not ask whether it is meant (what is asked is said below)'],
  ['--json', 'what was settled and what was left alone, as JSON'],
] as const satisfies readonly OptionRow[]

export type ResolveOptions = OptionsOf<typeof options>

export const command: CommandModule = {
  action: resolve,
  description: 'settle an uncertain record: say whether it arrived at the service',
  arguments: [['[id]', referenceHelp]],
  options,
  help: `Exactly one of --arrived, --not-arrived and --take-back, and only when you know: if it did arrive and you say that it did not, it is
sent twice, unless the service recognises the idempotency key. Those that its key held back go on.

--not-arrived asks on a terminal; a script that names one record need not say --yes. All else that is asked (--unchecked, --file, and
what has ended by a person's word) needs a terminal or --yes, and leaves with 4 without either. --dry-run never asks.

--arrived refuses an id that the ledger has for another record, and asks the service once (two requests of the budget):
what it does not know is refused. Also settles failed and rejected records that may have arrived (outboxd list notes
them), and corrects the id of an accepted one that the service never gave a usable answer for.

An id that a person gave can be corrected whatever has become of the record by it, completed and failed too: with
--arrived OTHER, or --take-back if the other is not known or belongs to a record whose id is wrong as well.

--file takes what outboxd list --state uncertain --csv has made and you have filled in (column arrived_as), or two columns
without a header: the outbox id or the submission's id; the transaction's id or not-arrived. Lines without an answer are left
alone. Nothing is written while a line is wrong, or says two things. Each line is checked as above; a line whose id the service
does not know is left alone. The same file may be given again: what is settled already stays as it is, and an answer about an
attempt before the last is not believed, by the column attempts. Without that column, not-arrived is believed only of a record
that was sent once. What a person has said of a record is corrected only by a file that lists it as it is now.

Examples:
  outboxd list --state uncertain --csv > ask.csv    then, when it is filled in:
  outboxd resolve --file ask.csv --dry-run
  outboxd resolve outbox:4711 --arrived 7f0c9f2e-2f0d-4a86-9d55-0f1f2f3f4f5f
  outboxd resolve outbox:4711 --not-arrived`,
}

/**
 * Settles one submission, or those of a file. @returns 1 if that is not possible, 3 if there is none, 4 if it was
 * not confirmed
 */
export async function resolve(
  context: CommandContext,
  name: string | undefined,
  options: ResolveOptions,
): Promise<number> {
  if (options.file === undefined) return resolveOne(context, name ?? '', options)
  const alone = name === undefined && options.arrived === undefined && !options.notArrived && !options.takeBack
  if (!alone) return usageError(context, ['--file goes without an id, --arrived, --not-arrived and --take-back'])
  return resolveFile(context, options.file, options)
}
