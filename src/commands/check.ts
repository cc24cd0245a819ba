import type { Command } from 'commander'
import type { CommandContext } from '../cli/context.ts'
import { exit } from '../cli/exitCodes.ts'
import { explain } from '../cli/explainError.ts'
import { findMistypedVariables } from '../cli/mistypedVariables.ts'
import { printJson } from '../cli/printJson.ts'
import { escapeControl, pluralize } from '../cli/table.ts'
import { type Config, readConfig, readStoreConfig, type StoreConfig } from '../config.ts'
import { loadMappings } from '../mapping/loadMappings.ts'
import { ConfigInvalid } from '../readVariables.ts'
import { checkCapture } from './checkCapture.ts'
import { checkService } from './checkService.ts'
import { checkLedger, checkOutbox } from './checkStore.ts'

export interface CheckOptions {
  json?: boolean
  /** Ask the service though the ledger cannot say whether the budget allows it. */
  askAnyway?: boolean
}

/** What came of looking at one thing: fine, fine with a remark, or a problem and what to do next. */
export interface Finding {
  what: string
  isOk: boolean
  message: string
}

export function describeCheck(command: Command): Command {
  return command
    .description('look at everything the daemon needs and say what is wrong')
    .option('--json', 'as JSON')
    .option('--ask-anyway', 'ask the service even where the ledger cannot say what is left of the budget')
    .addHelpText(
      'after',
      `
Looks at the configuration, both databases, the mapping files, asks for a token, and asks the service for a transaction that
does not exist. That is two requests, paid for from the budget; where the ledger
cannot be read they are not made, unless with --ask-anyway. One row that waits is told each state that a record can come to, in
a transaction that is taken back: so triggers and constraints of the table are heard. Changes nothing.
The exit code is 1 where something is wrong, and 2 where the configuration is.`,
    )
}

/** Looks at one thing after the other; each is looked at even where another is wrong, as far as that is possible. */
export async function check(context: CommandContext, options: CheckOptions): Promise<number> {
  const findings: Finding[] = []
  const found = (finding: Finding) => {
    findings.push(finding)
    if (!options.json)
      context.stdout.write(`${finding.isOk ? 'ok      ' : 'PROBLEM '} ${finding.what}: ${indented(finding.message)}\n`)
    return finding
  }

  const configuration = readOr(() => readConfig(context.env))
  const config = configuration.kind === 'config' ? configuration.config : null
  const storeConfig = config ?? readStoreOr(context.env)
  found(checkConfiguration(configuration, findMistypedVariables(context.env)))
  if (storeConfig !== null) {
    found(await orProblem('ledger', () => checkLedger(storeConfig)))
    found(await orProblem('outbox', () => checkOutbox(storeConfig)))
    const capture = await checkCapture(storeConfig)
    if (capture !== null) found(capture)
    found(await orProblem('mappings', async () => checkMappings(storeConfig)))
  }
  if (config !== null)
    for (const finding of await checkService(config, context.signal, options.askAnyway ?? false)) found(finding)

  const problems = findings.filter(({ isOk }) => !isOk).length
  if (options.json)
    printJson(
      context,
      findings.map(({ what, isOk, message }) => ({ what, ok: isOk, words: message })),
    )
  context.stderr.write(problems === 0 ? 'All is well.\n' : `${pluralize(problems, 'problem')}.\n`)
  if (config === null) return exit.usage
  return problems === 0 ? exit.done : exit.failed
}

type Configuration<C> = { kind: 'config'; config: C } | { kind: 'invalid'; problems: readonly string[] }

function readOr<C>(read: () => C): Configuration<C> {
  try {
    return { kind: 'config', config: read() }
  } catch (error) {
    if (error instanceof ConfigInvalid) return { kind: 'invalid', problems: error.problems }
    throw error
  }
}

/** The databases can be looked at even where the service's variables are wrong. */
function readStoreOr(env: CommandContext['env']): StoreConfig | null {
  const read = readOr(() => readStoreConfig(env))
  return read.kind === 'config' ? read.config : null
}

/** @param mistyped what looks like a slip: a remark, since other programs have variables too */
function checkConfiguration(configuration: Configuration<Config>, mistyped: readonly string[]): Finding {
  const isOk = configuration.kind === 'config'
  const problems = isOk ? ['every variable is well formed'] : configuration.problems
  const notes = mistyped.map((sentence) => `note: ${sentence}`)
  return { what: 'configuration', isOk, message: [...problems, ...notes].join('\n') }
}

function checkMappings({ mappingsDir }: StoreConfig): Finding {
  const mappings = [...loadMappings(mappingsDir).values()].map(({ type, endpoint }) => `${type} to ${endpoint}`)
  return { what: 'mappings', isOk: true, message: `${mappings.sort().join(', ')} (${mappingsDir})` }
}

/** Whatever goes wrong while looking is what was found. */
async function orProblem(what: string, look: () => Promise<Finding>): Promise<Finding> {
  try {
    return await look()
  } catch (error) {
    return { what, isOk: false, message: explain(error).message }
  }
}

const indented = (message: string) => message.split('\n').map(escapeControl).join('\n           ')
