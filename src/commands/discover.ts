import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { systemClock } from '../clock.ts'
import { type DiscoverConfig, readDiscoverConfig } from '../config.ts'
import { type AnsweredQuestion, planQuestions, type QuestionPlan } from '../discover/askQuestions.ts'
import type { Exchange } from '../discover/exchange.ts'
import type { QuestionOptions } from '../discover/question.ts'
import { questions } from '../discover/questions.ts'
import {
  discoveredSettings,
  formatDiscoveredContract,
  isWrittenByDiscover,
  renderDiscoverReport,
  renderSettingsFile,
} from '../discover/report.ts'
import { formatMaskedExchange, maskExchanges } from '../discover/savedExchanges.ts'
import { customerIdOf, recordAndOrderOf } from '../discover/testRecord.ts'
import { ServiceMismatch } from '../ledger/binding.ts'
import { CommandRequests } from '../ledger/commandRequests.ts'
import { escapeControlInLines, pluralize, renderTable } from '../plainText.ts'
import { textOrDigitsOf } from '../service/readJson.ts'
import { formatIsoInstant } from '../time.ts'
import { findNearestWord } from '../yaml/nearestWord.ts'
import { askDiscoverQuestions } from './askDiscoverQuestions.ts'
import { readTestRecord, type TestRecord } from './readTestRecord.ts'
import { defineCommand, type OptionsOf, wholeNumberParser } from './terminal/command.ts'
import { askForConfirmation } from './terminal/confirm.ts'
import { type CommandContext, exitCodes, printJson, printUsageErrors } from './terminal/context.ts'

const budgetDefault = 300
const budgetWithRate = 900

export const command = defineCommand({
  withoutMappings: true,
  description: 'ask a test environment what the description of its interface leaves open, and print what to set',
  options: [
    [
      '--budget <number>',
      `make at most this many requests (default: ${budgetDefault}, with --rate ${budgetWithRate})`,
      { read: wholeNumberParser(1, 99_999) },
    ],
    ['--customer <id>', 'a known customer; without it no record is created'],
    ['--unknown-customer <id>', 'a customer that the service does not know'],
    ['--order-customer <uuid>', 'a customer that may order; without it no order is created'],
    [
      '--record <file>',
      'send this file (a body, or a payload to map) instead of the test record or order; give it twice to replace both',
      { read: (text: string, before?: string[]): string[] => [...(before ?? []), text] },
    ],
    ['--type <type>', 'with --record: the payload’s type, which names its mapping file'],
    ['--only <names>', 'ask only these questions, separated by commas', { values: questions.map(({ name }) => name) }],
    ['--list', 'list the questions, and ask nothing'],
    ['--slow', 'use a token until it expires, for 75 minutes at most'],
    ['--rate', 'send requests up to the rate limit, twice; meanwhile other clients with these credentials are refused'],
    ['--size', 'find the largest body that the service accepts'],
    ['--write <file>', 'write the variables into a file such as .env.discovered'],
    ['--save <dir>', 'save each exchange as text, without secrets'],
    ['--no-ledger', 'count requests in memory, if there is no ledger yet'],
    ['--json', 'print JSON'],
    ['--yes', 'do not ask for confirmation; overwrite the file of --write'],
    ['--yes-this-is-a-test-environment', 'the same as SERVICE_IS_TEST=yes'],
  ],
  help: `Before it sends anything, it prints its questions and the most requests and test records that they take, and asks you.
Requests count against the daemon's budget; those of --rate and rate-second are sent even if none is free. discover ends if it
gets no token, if something other than the service answers, if the service is down, or if three requests in a row get no answer.

Examples:
  outboxd discover --list
  outboxd discover --customer C1 --unknown-customer NOBODY --rate --write .env.discovered
  outboxd discover --record body.json --order-customer UUID
  outboxd discover --only token-unit,unknown-id --save exchanges`,
  async action(context, options): Promise<number> {
    if (options.list) return list(context, options)
    const only = options.only?.split(',').map((name) => name.trim()) ?? null
    const config = readDiscoverConfig(context.env)
    const records = (options.record ?? []).map((file) => readTestRecord(context, file, options.type))
    const problems = [...misnamed(only ?? []), ...misplaced(config, options), ...misread(records, options)]
    if (problems.length > 0) return printUsageErrors(context, problems)
    if (options.ledger !== false) await assertOwnLedger(config)
    const given = givenBy(options, records)
    const budget = options.budget ?? (given.rate ? budgetWithRate : budgetDefault)
    const plan = planQuestions(questions, given, only)
    context.stderr.write(escapeControlInLines(announce(plan, config, budget)))
    const isMeant =
      options.yes || (await askForConfirmation(context, 'Ask the service?', { otherwise: 'Nothing was sent.' }))
    if (!isMeant) return exitCodes.unconfirmed
    const { answered, exchanges, requests, seen } = await askDiscoverQuestions(context, {
      config,
      plan,
      budget,
      countsInMemory: options.ledger === false,
      onAnswered: ({ question, finding }) =>
        context.stderr.write(escapeControlInLines(`${question.name}: ${finding.found ?? finding.certainty}\n`)),
    })
    // Printed before the files are written, because writing may fail.
    tell(context, answered, { requests, seen, json: options.json ?? false })
    if (options.save !== undefined)
      save(context, options.save, maskExchanges(exchanges, [config.service.clientSecret, config.service.clientId]))
    const isWhole = !context.signal.aborted && answered.some(({ finding }) => finding.found !== null)
    if (options.write !== undefined) {
      if (isWhole) writeSettings(context, options.write, answered, config)
      else context.stderr.write(`Not written: ${options.write}, because discover was interrupted or found nothing.\n`)
    }
    return isWhole ? exitCodes.done : exitCodes.failed
  },
})

/** @throws ServiceMismatch, because another service's budget would not keep this service's limit */
async function assertOwnLedger({ databaseUrl, service }: DiscoverConfig): Promise<void> {
  if (databaseUrl === null) return
  await using requests = new CommandRequests(databaseUrl, { name: 'outboxd discover', ...service })
  await requests.assertLimitIsOf(service).catch((error: unknown) => {
    if (error instanceof ServiceMismatch) throw error
    // `askDiscoverQuestions` explains a ledger that cannot be read.
  })
}

type DiscoverOptions = OptionsOf<typeof command>

function list(context: CommandContext, { json }: DiscoverOptions): number {
  if (json) printJson(context, questions)
  else {
    const rows = questions.map(({ name, section, asks, decides }) => [name, section, asks, decides])
    context.stdout.write(renderTable(['QUESTION', 'INTERFACE', 'ASKS', 'DECIDES'], rows))
  }
  return exitCodes.done
}

function misread(records: readonly TestRecord[], { record, type }: DiscoverOptions): string[] {
  const read = records.filter((each) => each.kind === 'record')
  const twice = new Set(read.map(({ resource }) => resource)).size < read.length
  return [
    ...records.flatMap((each) => (each.kind === 'invalid' ? [each.problem] : [])),
    ...(twice ? [bothForOneEndpoint] : []),
    ...(type !== undefined && record === undefined ? ['--type needs --record'] : []),
  ]
}

const bothForOneEndpoint =
  '--record: both files are records, or both are orders. Give one file with a record and one with an order'

function givenBy(options: DiscoverOptions, records: readonly TestRecord[]): QuestionOptions {
  const { record, order } = recordAndOrderOf(records.filter((each) => each.kind === 'record'))
  return {
    record,
    order,
    customer: options.customer ?? null,
    unknownCustomer: options.unknownCustomer ?? null,
    orderCustomer: options.orderCustomer ?? textOrDigitsOf(order?.customerId),
    slow: options.slow ?? false,
    rate: options.rate ?? false,
    size: options.size ?? false,
  }
}

function misnamed(only: readonly string[]): string[] {
  const names = questions.map(({ name }) => name)
  return only
    .filter((name) => !names.includes(name))
    .map((name) => {
      const near = findNearestWord(name, names)
      return `there is no question "${name}"${near === null ? '' : `: did you mean ${near}?`} (outboxd discover --list)`
    })
}

function misplaced({ isTest, service }: DiscoverConfig, options: DiscoverOptions): string[] {
  const problems: string[] = []
  if (!isTest && !options.yesThisIsATestEnvironment)
    problems.push(
      `discover creates records, and ${service.baseUrl} is not marked as a test environment: set SERVICE_IS_TEST=yes, or give --yes-this-is-a-test-environment`,
    )
  if (options.write !== undefined && existsSync(options.write)) {
    if (!isWrittenByDiscover(readFileSync(options.write, 'utf8')))
      problems.push(`${options.write} exists, and discover did not write it: name another file`)
    else if (!options.yes) problems.push(`${options.write} exists: name another file, or give --yes to overwrite it`)
  }
  if (options.save !== undefined && existsSync(options.save) && readdirSync(options.save).length > 0)
    problems.push(`the folder ${options.save} is not empty: name a new one`)
  return problems
}

function announce({ asked, notAsked, given }: QuestionPlan, { service }: DiscoverConfig, budget: number): string {
  const isCreating = customerIdOf(given) !== '' || given.orderCustomer !== null
  const lines = [
    `${pluralize(asked.length, 'question')} to ${service.baseUrl} (tokens from ${service.authUrl}): ${pluralize(budget, 'request')} at most.`,
    isCreating
      ? `It creates up to ${pluralize(budget, 'test record')} in the service, ${given.record === null ? 'each with a field2 that begins with outboxd' : 'with the contents of --record'}.`
      : 'No record is created.',
    `It asks: ${asked.map(({ name }) => name).join(', ')}.`,
    ...(notAsked.length === 0
      ? []
      : [`Not asked: ${notAsked.map(({ question, why }) => `${question.name} (${why})`).join('; ')}.`]),
  ]
  return `${lines.join('\n')}\n`
}

function tell(
  context: CommandContext,
  answered: readonly AnsweredQuestion[],
  { requests, seen, json }: { requests: number; seen: readonly string[]; json: boolean },
): void {
  if (json) {
    const told = answered.map(({ question: { name, section, assumed }, finding }) => ({
      ...{ question: name, section, assumed },
      ...finding,
    }))
    const [set, contract] = [discoveredSettings(answered), formatDiscoveredContract(answered)]
    printJson(context, { requests, questions: told, seen, set, contract })
  } else context.stdout.write(escapeControlInLines(renderDiscoverReport(answered, seen)))
  context.stderr.write(`${pluralize(requests, 'request')} made.\n`)
}

function writeSettings(
  context: CommandContext,
  file: string,
  answered: readonly AnsweredQuestion[],
  { service }: DiscoverConfig,
): void {
  // A renamed file is whole even if the process ends here.
  const unfinished = `${file}.${process.pid}`
  writeFileSync(
    unfinished,
    renderSettingsFile(answered, { baseUrl: service.baseUrl, at: formatIsoInstant(systemClock.nowMs()) }),
  )
  renameSync(unfinished, file)
  context.stderr.write(`Written: ${file}. Read it, then give it to commands with --env-file, or copy its lines.\n`)
}

function save(context: CommandContext, dir: string, masked: readonly Exchange[]): void {
  mkdirSync(dir, { recursive: true })
  chmodSync(dir, 0o700)
  for (const [i, exchange] of masked.entries()) {
    const name = `${String(i + 1).padStart(3, '0')}-${exchange.purpose.replace(/[^\w-]+/g, '-')}.txt`
    writeFileSync(join(dir, name), formatMaskedExchange(exchange), { mode: 0o600 })
  }
  context.stderr.write(`Saved: ${pluralize(masked.length, 'exchange')} in ${dir}, without secrets.\n`)
}
