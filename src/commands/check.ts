import { systemClock } from '../clock.ts'
import { type Config, type DatabaseConfig, readConfig, readDatabaseConfig } from '../config.ts'
import { ConfigInvalid } from '../createVariableReader.ts'
import { explainError } from '../operations/explainError.ts'
import { escapeControl, pluralize } from '../plainText.ts'
import { checkDiscoveredContract } from './check/contract.ts'
import {
  type ClocksAndCertificates,
  type Finding,
  type FindingMark,
  findingMarks,
  makeFinding,
  makeUncheckedFinding,
} from './check/finding.ts'
import { checkLedger } from './check/ledger.ts'
import { checkMappings } from './check/mappings.ts'
import { checkOutboxAndTypes } from './check/outbox.ts'
import { checkServers, judgeClocks } from './check/servers.ts'
import { checkService, judgeCertificates, parseConfiguredCertificateExpiries } from './check/service.ts'
import { checkSettings } from './check/settings.ts'
import { defineCommand } from './terminal/command.ts'
import { type CommandContext, exitCodes, printJson, printUsageErrors } from './terminal/context.ts'
import { findMistypedVariables, findUnsafeNodeOptions } from './terminal/environment.ts'

export const command = defineCommand({
  onlyLooks: true,
  description: 'check everything that the daemon needs',
  options: [
    ['--json', 'print JSON'],
    ['--ask-anyway', 'make the requests even if the ledger is unreadable; they may exceed the budget'],
    ['--contract', 'also compare the service with what outboxd discover found, in up to 16 harmless requests'],
  ],
  help: `Checks the configuration, both databases and the mapping files, then makes two requests from the budget: for a token, and for a
transaction that does not exist (sometimes a third, to rule out that a gateway answered). To test triggers and
constraints, it writes each state to one row in a transaction that it rolls back: a waiting row, or, if rows do not show
whether they were captured, any row that the filter allows. To notice a full disk, it writes 70 kB to the ledger and rolls that back.

Each line begins with "ok", "PROBLEM", "WARNING" (it works, but may not be intended) or "-" (not checked). The exit code is 2 if
a variable is missing or wrong. It is 1 if anything else is a problem, such as a mistake in outbox.yaml or a mapping file, or if
nothing could be checked.`,
  async action(context, options): Promise<number> {
    const configured = readConfigured(context.env)
    const { config, databaseConfig } = configured
    if (options.contract && config?.discoveredContract === null)
      return printUsageErrors(context, [
        '--contract compares the service with DISCOVERED_CONTRACT, which is not set: `outboxd discover --write FILE` writes it, in a test environment',
      ])
    const noticed: ClocksAndCertificates = { clocks: [], certificates: [] }
    const findings: Finding[] = []
    function tell(found: readonly Finding[]): void {
      findings.push(...found)
      if (options.json) return
      for (const { what, mark, message } of found)
        context.stdout.write(`${findingMarks[mark].shown} ${what}: ${indented(message)}\n`)
    }
    tell([checkConfiguration(configured, context.env)])
    if (databaseConfig === null) tell(notAsked(ofDatabases, wrongConfiguration))
    else {
      tell(await orProblem(['ledger'], () => checkLedger(databaseConfig)))
      tell(await orProblem(['outbox', 'types'], () => checkOutboxAndTypes(databaseConfig)))
      tell(await orProblem(['mappings'], async () => checkMappings(databaseConfig)))
      if (config !== null && findings.every(({ mark }) => mark !== 'problem')) tell(await checkSettings(config))
      tell(await checkServers(databaseConfig, noticed))
    }
    if (config === null) tell(notAsked(['service', ...(options.contract ? ['contract'] : [])], wrongConfiguration))
    else {
      tell(await checkService(config, context.signal, options.askAnyway ?? false, noticed))
      const contract = config.discoveredContract
      if (options.contract && contract !== null) tell(await checkDiscoveredContract(context, contract))
      const ends = [...parseConfiguredCertificateExpiries(config.service), ...noticed.certificates]
      tell(judgeCertificates(ends, systemClock.nowMs()))
    }
    tell([judgeClocks(noticed.clocks)])
    if (options.json)
      printJson(
        context,
        findings.map(({ what, mark, message }) => ({ what, ok: findingMarks[mark].ok, words: message })),
      )
    context.stderr.write(`${summary(findings)}\n`)
    if (config === null) return exitCodes.usage
    const wasNothingAsked = findings.every(({ what, mark }) => what === 'configuration' || mark === 'not-asked')
    return wasNothingAsked || findings.some(({ mark }) => mark === 'problem') ? exitCodes.failed : exitCodes.done
  },
})

const ofDatabases = ['ledger', 'outbox', 'types', 'mappings', 'durability']
const wrongConfiguration = 'the configuration is wrong'

const notAsked = (of: readonly string[], why: string) => of.map((what) => makeUncheckedFinding(what, why))

async function orProblem([what, ...others]: [string, ...string[]], look: () => Promise<Finding[]>): Promise<Finding[]> {
  try {
    return await look()
  } catch (error) {
    return [makeFinding(what, 'problem', explainError(error).message), ...notAsked(others, `the ${what} has a problem`)]
  }
}

function summary(findings: readonly Finding[]): string {
  const of = (mark: FindingMark) => findings.filter((finding) => finding.mark === mark)
  const [problems, warnings, unasked] = [of('problem'), of('warning'), of('not-asked')]
  const parts = [
    problems.length === 0 ? null : pluralize(problems.length, 'problem'),
    warnings.length === 0 ? null : pluralize(warnings.length, 'warning'),
    unasked.length === 0 ? null : `not checked: ${unasked.map(({ what }) => what).join(', ')}`,
  ].filter((part) => part !== null)
  if (parts.length === 0) return 'All is well.'
  return `${problems.length === 0 ? 'No problem found; ' : ''}${parts.join('; ')}.`
}

interface Configured {
  config: Config | null
  databaseConfig: DatabaseConfig | null
  problems: readonly string[]
}

function readConfigured(env: CommandContext['env']): Configured {
  const whole = readOrProblems(() => readConfig(env))
  if (whole.config !== null) return { ...whole, databaseConfig: whole.config }
  return { ...whole, databaseConfig: readOrProblems(() => readDatabaseConfig(env)).config }
}

function readOrProblems<T>(read: () => T): { config: T | null; problems: readonly string[] } {
  try {
    return { config: read(), problems: [] }
  } catch (error) {
    if (!(error instanceof ConfigInvalid)) throw error
    return { config: null, problems: error.problems }
  }
}

function checkConfiguration({ config, problems }: Configured, env: CommandContext['env']): Finding {
  const doubts = [...findMistypedVariables(env), ...findUnsafeNodeOptions(env)]
  const proxy = config?.service.proxy ?? null
  const way = proxy === null ? [] : [`requests to the service go through the proxy at ${new URL(proxy).host}`]
  const notes = [...doubts, ...way].map((line) => `note: ${line}`)
  if (config === null) return makeFinding('configuration', 'problem', ...problems, ...notes)
  const mark = doubts.length > 0 ? 'warning' : 'ok'
  return makeFinding('configuration', mark, 'every variable is valid', ...notes)
}

const indented = (message: string) => message.split('\n').map(escapeControl).join('\n           ')
