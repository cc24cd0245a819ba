import { systemClock } from '../clock.ts'
import { type Config, readConfig, readStoreConfig, type StoreConfig } from '../config.ts'
import { explain } from '../operations/explainError.ts'
import { escapeControl, pluralize } from '../plainText.ts'
import { ConfigInvalid } from '../readVariables.ts'
import { checkCapture } from './checkCapture.ts'
import { judgeCertificates, ownCertificates } from './checkCertificates.ts'
import { judgeClocks } from './checkClocks.ts'
import { checkContract } from './checkContract.ts'
import { checkLedger } from './checkLedger.ts'
import { checkMappings } from './checkMappings.ts'
import { checkOutbox } from './checkOutbox.ts'
import { checkServers, type Servers } from './checkServers.ts'
import { checkService, type ServiceSeen } from './checkService.ts'
import { type Finding, type Mark, notAsked, okOf, shownMarks } from './finding.ts'
import type { CommandModule, OptionRow, OptionsOf } from './terminal/command.ts'
import { type CommandContext, exit, printJson } from './terminal/context.ts'
import { findEnvironmentNotes, findMistypedVariables } from './terminal/environmentNotes.ts'

const options = [
  ['--json', 'as JSON'],
  ['--ask-anyway', 'ask the service even where the ledger cannot say what is left of the budget'],
  [
    '--contract',
    'ask, too, whether the service answers as outboxd discover saw it: up to 12 requests that create nothing',
  ],
] as const satisfies readonly OptionRow[]

export type CheckOptions = OptionsOf<typeof options>

export const command: CommandModule = {
  action: check,
  onlyLooks: true,
  description: 'look at everything the daemon needs and say what is wrong',
  options,
  help: `Looks at the configuration, both databases, the mapping files, asks for a token, and asks the service for a transaction that
does not exist. That is two requests, paid for from the budget; where the ledger
cannot be read they are not made, unless with --ask-anyway. One row that waits is told each state that a record can come to, in
a transaction that is taken back: so triggers and constraints of the table are heard. Changes nothing.

A line begins with "ok", with "PROBLEM", with "WARNING" where it works and may not be what was meant, or with "-" where nobody
could look (in JSON: true, false, true, null).
The exit code is 1 where something is wrong or nothing could be looked at, and 2 where the configuration is wrong.`,
}

/** Looks at one thing after the other; each is looked at even where another is wrong, as far as that is possible. */
export async function check(context: CommandContext, options: CheckOptions): Promise<number> {
  const findings: Finding[] = []
  const found = (finding: Finding) => {
    findings.push(finding)
    if (!options.json)
      context.stdout.write(`${shownMarks[finding.mark]} ${finding.what}: ${indented(finding.message)}\n`)
    return finding
  }

  const configuration = readOr(() => readConfig(context.env))
  const config = configuration.kind === 'config' ? configuration.config : null
  const storeConfig = config ?? readStoreOr(context.env)
  found(checkConfiguration(configuration, context.env))
  for await (const finding of lookAtDatabases(storeConfig)) found(finding)
  const servers = storeConfig === null ? unseenServers : await checkServers(storeConfig)
  for (const finding of servers.findings) found(finding)
  const service =
    config === null ? unseenService : await checkService(config, context.signal, options.askAnyway ?? false)
  for (const finding of service.findings) found(finding)
  if (options.contract)
    for (const finding of config === null ? [notAsked('contract', why)] : await checkContract(context)) found(finding)
  const own = config === null ? [] : ownCertificates(config.service)
  const certificates = judgeCertificates([...own, ...service.certificates], systemClock.nowMs())
  if (certificates !== null) found(certificates)
  found(judgeClocks([...servers.clocks, ...service.clocks]))

  if (options.json)
    printJson(
      context,
      findings.map(({ what, mark, message }) => ({ what, ok: okOf[mark], words: message })),
    )
  context.stderr.write(`${summary(findings)}\n`)
  if (config === null) return exit.usage
  return hasMark(findings, 'problem') || wasNothingAsked(findings) ? exit.failed : exit.done
}

const why = 'the configuration is wrong'
const unseenServers: Servers = {
  findings: ['connections', 'disk', 'durability'].map((what) => notAsked(what, why)),
  clocks: [],
}
const unseenService: ServiceSeen = { findings: [notAsked('service', why)], clocks: [], certificates: [] }

async function* lookAtDatabases(config: StoreConfig | null): AsyncGenerator<Finding> {
  if (config === null) return yield* ['ledger', 'outbox', 'types', 'mappings'].map((what) => notAsked(what, why))
  yield* await orProblem('ledger', () => checkLedger(config))
  const outbox = await orProblem('outbox', () => checkOutbox(config))
  yield* outbox
  if (!outbox.some(({ what }) => what === 'types')) yield notAsked('types', 'the outbox has a problem')
  const capture = await checkCapture(config)
  if (capture !== null) yield capture
  yield* checkMappings(config)
}

const hasMark = (findings: readonly Finding[], mark: Mark) => findings.some((finding) => finding.mark === mark)

/** The configuration alone says nothing of what it leads to. */
const wasNothingAsked = (findings: readonly Finding[]) =>
  findings.every(({ what, mark }) => what === 'configuration' || mark === 'not-asked')

/** In one line. */
function summary(findings: readonly Finding[]): string {
  const of = (mark: Mark) => findings.filter((finding) => finding.mark === mark)
  const [problems, warnings, unasked] = [of('problem'), of('warning'), of('not-asked')]
  const parts = [
    problems.length === 0 ? null : pluralize(problems.length, 'problem'),
    warnings.length === 0 ? null : pluralize(warnings.length, 'warning'),
    unasked.length === 0 ? null : `not asked: ${unasked.map(({ what }) => what).join(', ')}`,
  ].filter((part) => part !== null)
  if (parts.length === 0) return 'All is well.'
  return `${problems.length === 0 ? 'No problem found; ' : ''}${parts.join('; ')}.`
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

/** What looks like a slip, or belongs to other programs, is a warning or a note alone. */
function checkConfiguration(configuration: Configuration<Config>, env: CommandContext['env']): Finding {
  const isOk = configuration.kind === 'config'
  const problems = isOk ? ['every variable is well formed'] : configuration.problems
  const { warnings, notes } = findEnvironmentNotes(env)
  const doubts = [...findMistypedVariables(env), ...warnings]
  const mark = isOk ? (doubts.length === 0 ? 'ok' : 'warning') : 'problem'
  const proxy = isOk ? configuration.config.service.proxy : null
  const way = proxy === null ? [] : [`requests to the service go through the proxy at ${new URL(proxy).host}`]
  const lines = [...doubts, ...way, ...notes].map((sentence) => `note: ${sentence}`)
  return { what: 'configuration', mark, message: [...problems, ...lines].join('\n') }
}

/** Whatever goes wrong while looking is what was found. */
async function orProblem(what: string, look: () => Promise<Finding[]>): Promise<Finding[]> {
  try {
    return await look()
  } catch (error) {
    return [{ what, mark: 'problem', message: explain(error).message }]
  }
}

const indented = (message: string) => message.split('\n').map(escapeControl).join('\n           ')
