import { systemClock } from '../clock.ts'
import { type Config, readConfig, readStoreConfig, type StoreConfig } from '../config.ts'
import { findBodyWarnings } from '../mapping/findBodyWarnings.ts'
import { loadMappings } from '../mapping/loadMappings.ts'
import type { Mapping } from '../mapping/mapping.ts'
import { explainError } from '../operations/explainError.ts'
import { escapeControl, pluralize } from '../plainText.ts'
import { ConfigInvalid } from '../readVariables.ts'
import { checkContract } from './check/contract.ts'
import {
  type Finding,
  finding,
  findingMarks,
  type Mark,
  type NoticedByCheck,
  notAskedFinding,
} from './check/finding.ts'
import { checkLedger } from './check/ledger.ts'
import { checkChangeCapture, checkOutbox } from './check/outbox.ts'
import { checkServers, judgeClocks } from './check/servers.ts'
import { checkService, judgeCertificates, ourCertificateEnds } from './check/service.ts'
import { defineCommand, type OptionsOf } from './terminal/command.ts'
import { type CommandContext, exitCodes, printJson } from './terminal/context.ts'
import { findMistypedVariables, reviewNodeVariables } from './terminal/environment.ts'

export const command = defineCommand({
  onlyLooks: true,
  description: 'check everything that the daemon needs',
  options: [
    ['--json', 'print JSON'],
    ['--ask-anyway', 'make requests even without the ledger; they may exceed the budget'],
    [
      '--contract',
      'also compare the service with what outboxd discover found, in up to 16 requests that create nothing',
    ],
  ],
  help: `Checks the configuration, both databases and the mapping files, then makes two requests from the budget: for a token, and for a
transaction that does not exist. To test triggers and constraints, it writes each state to one waiting row in a transaction
that it rolls back. It changes nothing.

Each line begins with "ok", "PROBLEM", "WARNING" (it works, but may not be intended) or "-" (not checked). The exit code is 1 if
there is a problem or nothing could be checked, and 2 if the configuration is wrong.`,
  async action(context, options): Promise<number> {
    const configured = readConfigured(context.env)
    const noticed: NoticedByCheck = { clocks: [], certificates: [] }
    const findings: Finding[] = []
    for (const { of, look } of looksFor(context, options)) {
      const found =
        (await look(configured, noticed)) ?? of.map((what) => notAskedFinding(what, 'the configuration is wrong'))
      findings.push(...found)
      if (options.json) continue
      for (const { what, mark, message } of found)
        context.stdout.write(`${findingMarks[mark].shown} ${what}: ${indented(message)}\n`)
    }
    if (options.json)
      printJson(
        context,
        findings.map(({ what, mark, message }) => ({ what, ok: findingMarks[mark].ok, words: message })),
      )
    context.stderr.write(`${summary(findings)}\n`)
    if (configured.config === null) return exitCodes.usage
    return findings.some(({ mark }) => mark === 'problem') || wasNothingAsked(findings)
      ? exitCodes.failed
      : exitCodes.done
  },
})

type CheckOptions = OptionsOf<typeof command>

/** The valid part: everything, only the databases' variables, or nothing. */
interface Configured {
  config: Config | null
  storeConfig: StoreConfig | null
  problems: readonly string[]
}

interface Look {
  of: readonly string[]
  look(configured: Configured, noticed: NoticedByCheck): Promise<readonly Finding[]> | readonly Finding[] | null
}

/** Runs in this order. A problem in one check does not stop the next. */
const looksFor = (context: CommandContext, options: CheckOptions): readonly Look[] => [
  { of: ['configuration'], look: (configured) => [checkConfiguration(configured, context.env)] },
  { of: ['ledger'], look: ({ storeConfig }) => storeConfig && orProblem('ledger', () => checkLedger(storeConfig)) },
  { of: ['outbox', 'types'], look: ({ storeConfig }) => storeConfig && lookAtOutbox(storeConfig) },
  { of: [], look: ({ storeConfig }) => storeConfig && checkChangeCapture(storeConfig) },
  { of: ['mappings'], look: ({ storeConfig }) => storeConfig && checkMappings(storeConfig) },
  {
    of: ['connections', 'disk', 'durability'],
    look: ({ storeConfig }, noticed) => storeConfig && checkServers(storeConfig, noticed),
  },
  {
    of: ['service'],
    look: ({ config }, noticed) => config && checkService(config, context.signal, options.askAnyway ?? false, noticed),
  },
  ...(options.contract
    ? [{ of: ['contract'], look: ({ config }: Configured) => config && checkContract(context) }]
    : []),
  {
    of: [],
    look: ({ config }, { certificates }) =>
      config && judgeCertificates([...ourCertificateEnds(config.service), ...certificates], systemClock.nowMs()),
  },
  { of: [], look: (_, { clocks }) => [judgeClocks(clocks)] },
]

async function lookAtOutbox(config: StoreConfig): Promise<readonly Finding[]> {
  const found = await orProblem('outbox', () => checkOutbox(config))
  const hasTypes = found.some(({ what }) => what === 'types')
  return hasTypes ? found : [...found, notAskedFinding('types', 'the outbox has a problem')]
}

const wasNothingAsked = (findings: readonly Finding[]) =>
  findings.every(({ what, mark }) => what === 'configuration' || mark === 'not-asked')

function summary(findings: readonly Finding[]): string {
  const of = (mark: Mark) => findings.filter((finding) => finding.mark === mark)
  const [problems, warnings, unasked] = [of('problem'), of('warning'), of('not-asked')]
  const parts = [
    problems.length === 0 ? null : pluralize(problems.length, 'problem'),
    warnings.length === 0 ? null : pluralize(warnings.length, 'warning'),
    unasked.length === 0 ? null : `not checked: ${unasked.map(({ what }) => what).join(', ')}`,
  ].filter((part) => part !== null)
  if (parts.length === 0) return 'All is well.'
  return `${problems.length === 0 ? 'No problem found; ' : ''}${parts.join('; ')}.`
}

/** Reads the databases' variables even if those of the service are wrong. */
function readConfigured(env: CommandContext['env']): Configured {
  try {
    const config = readConfig(env)
    return { config, storeConfig: config, problems: [] }
  } catch (error) {
    if (!(error instanceof ConfigInvalid)) throw error
    return { config: null, storeConfig: readStoreOrNull(env), problems: error.problems }
  }
}

function readStoreOrNull(env: CommandContext['env']): StoreConfig | null {
  try {
    return readStoreConfig(env)
  } catch (error) {
    if (error instanceof ConfigInvalid) return null
    throw error
  }
}

/** A variable whose name looks misspelt is only a warning. */
function checkConfiguration({ config, problems }: Configured, env: CommandContext['env']): Finding {
  const { warnings, notes } = reviewNodeVariables(env)
  const doubts = [...findMistypedVariables(env), ...warnings]
  const mark = config === null ? 'problem' : doubts.length > 0 ? 'warning' : 'ok'
  const proxy = config?.service.proxy ?? null
  const way = proxy === null ? [] : [`requests to the service go through the proxy at ${new URL(proxy).host}`]
  const said = config === null ? problems : ['every variable is valid']
  return finding('configuration', mark, ...said, ...[...doubts, ...way, ...notes].map((line) => `note: ${line}`))
}

async function orProblem(what: string, look: () => Promise<Finding[]>): Promise<Finding[]> {
  try {
    return await look()
  } catch (error) {
    return [finding(what, 'problem', explainError(error).message)]
  }
}

const indented = (message: string) => message.split('\n').map(escapeControl).join('\n           ')

function checkMappings({ mappingsDir }: StoreConfig): Finding[] {
  let mappings: Mapping[]
  try {
    mappings = [...loadMappings(mappingsDir).values()]
  } catch (error) {
    return [finding('mappings', 'problem', explainError(error).message)]
  }
  const names = mappings.map(({ type, endpoint }) => `${type} to ${endpoint}`)
  const warned = mappings.map((mapping) => ({ type: mapping.type, warnings: findBodyWarnings(mapping) }))
  return [
    finding('mappings', 'ok', `${names.sort().join(', ')} (${mappingsDir})`),
    ...warned.flatMap(({ type, warnings }) =>
      warnings.length === 0 ? [] : [finding(`mapping of ${type}`, 'warning', ...warnings)],
    ),
  ]
}
