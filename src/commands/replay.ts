import { readStoreConfig } from '../config.ts'
import { loadMappings } from '../mapping/loadMappings.ts'
import { operatorOf } from '../operations/databases.ts'
import { referenceHelp } from '../operations/references.ts'
import { previewReplay, replayableStates, replayChange, replaySubmissions } from '../operations/replay.ts'
import { changeSubmissions, filterOptions, findSelectionProblems } from './selection.ts'
import { defineCommand } from './terminal/command.ts'
import { printUsageErrors } from './terminal/context.ts'
import { actorOf, asOption, findActorProblems, reasonOption, withDatabases } from './terminal/operator.ts'

export const command = defineCommand({
  description: 'send failed and rejected records again, mapped by the current mapping files',
  arguments: [['[ids...]', referenceHelp]],
  options: [
    ...filterOptions(replayableStates, 'change at most this many, longest in their state first'),
    ['--refresh', 'read payload, type and key from the outbox row again'],
    ['--even-if-arrived', 'also records that may have arrived; the service may then have them twice'],
    ['--new-key', 'also a new idempotency key for records that may have arrived'],
    asOption,
    reasonOption,
    ['--dry-run', 'show what would be replayed or does not map; change nothing'],
    ['--yes', 'do not ask for confirmation'],
    ['--json', 'print JSON'],
  ],
  help: `Without ids and filters: all failed and rejected records. If there are several, it shows them and asks. A record that still does
not map stays as it is, and the exit code is 1. Each replayed record gets a new idempotency key and new retries.

Records that may have arrived (\`outboxd list\` notes them) are replayed only by id or with --even-if-arrived. They keep their
key, so that a service that recognises it has them once.

Examples:
  outboxd replay outbox:4711 --refresh --reason "amount corrected, ticket 231"
  outboxd replay --state failed --since 2h --dry-run   after an outage: look first
  outboxd replay --state failed --since 2h
  outboxd replay --state rejected --type order --yes   after you fixed the mapping`,
  async action(context, ids: readonly string[], options): Promise<number> {
    const { refresh = false, evenIfArrived = false, newKey = false } = options
    const terms = { refresh, evenIfArrived, newKey }
    const change = replayChange(terms)
    const problems = [...findSelectionProblems(change, ids, options), ...findActorProblems(options)]
    if (problems.length > 0) return printUsageErrors(context, problems)
    const mappings = loadMappings(readStoreConfig(context.env).mappingsDir)
    return withDatabases(context, (databases) => {
      const parts = { databases, mappings, operator: operatorOf(databases, actorOf(context, options)) }
      const carryOut = options.dryRun ? previewReplay : replaySubmissions
      return changeSubmissions(context, databases, change, { ids, options }, (submissions, run) =>
        carryOut(parts, submissions, terms, run),
      )
    })
  },
})
