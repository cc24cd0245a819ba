import { loadLedgerMappings } from '../operations/ledgerFiles.ts'
import { referenceHelp } from '../operations/references.ts'
import { replayableStates, replayRules, replaySubmissions } from '../operations/replay.ts'
import { changeSubmissions, filterOptions, findSelectionProblems } from './selection.ts'
import { defineCommand } from './terminal/command.ts'
import { changeOptions, reasonOption, withOperator } from './terminal/operator.ts'

export const command = defineCommand({
  description: 'send failed and rejected records again, mapped by the current mapping files',
  arguments: [['[ids...]', referenceHelp]],
  options: [
    ...filterOptions(
      { allowedStates: replayableStates, defaultStates: replayableStates },
      'change at most this many, longest in their state first',
    ),
    ['--refresh', 'read payload, type and key from the outbox row again'],
    ['--discarded', 'also discarded records, which you name by id'],
    ['--even-if-arrived', 'also records that may have arrived; the service may then have them twice'],
    ['--new-key', 'give a new idempotency key also to records that may have arrived'],
    reasonOption,
    ...changeOptions,
  ],
  help: `Without ids and filters, all failed and rejected records that cannot have arrived are replayed. If there are several, the command
shows them and asks. All get new retries. A record that still cannot be mapped stays as it is, and the exit code is 1.

Records that may have arrived (\`outboxd list\` notes them) are replayed only by id or with --even-if-arrived. They keep their
idempotency key, so a service that recognises keys has each record once. A record gets a new key if it cannot have arrived, or
if the service has finished a transaction under its key.

A discarded record is sent again only by id and with --discarded. If it was uncertain or accepted before, it may have arrived.

Examples:
  outboxd replay outbox:4711 --refresh --reason "amount corrected, ticket 231"
  outboxd replay --state failed --since 2h --dry-run   after an outage: look first
  outboxd replay --state failed --since 2h
  outboxd replay --state rejected --type order --yes   after you fixed the mapping`,
  async action(context, ids: readonly string[], options): Promise<number> {
    const { refresh = false, discarded = false, evenIfArrived = false, newKey = false } = options
    const terms = { refresh, discarded, evenIfArrived, newKey }
    const change = replayRules(terms)
    const problems = findSelectionProblems(change, ids, options)
    if (discarded && ids.length === 0) problems.push('--discarded needs the ids of the records, such as outbox:4711')
    return withOperator(context, options, problems, async (databases, operator) => {
      const parts = {
        databases,
        mappings: await loadLedgerMappings(databases),
        operator: options.dryRun ? null : operator,
      }
      return changeSubmissions(context, databases, change, { ids, options }, (submissions, run) =>
        replaySubmissions(parts, submissions, terms, run),
      )
    })
  },
})
