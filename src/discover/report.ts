import { renderTable, truncateToOneLine } from '../plainText.ts'
import type { AnsweredQuestion } from './askQuestions.ts'
import { describeAnswer, type Exchange, endedAtMs, formatMsOrSeconds, transactionStatusIn } from './exchange.ts'
import { hasEarlierAttemptArrived } from './observe.ts'
import type { Finding, Setting, Throttle } from './question.ts'

export function renderDiscoverReport(answered: readonly AnsweredQuestion[], seen: readonly string[]): string {
  const found = answered.filter(({ finding }) => finding.found !== null)
  const rows = found.map(({ question, finding }) => [
    question.name,
    truncateToOneLine(finding.found ?? '', 40),
    finding.certainty,
    finding.differs ? 'differs' : '',
    question.assumed,
  ])
  const lines = (each: (finding: Finding) => readonly string[]) =>
    answered.flatMap(({ question, finding }) => each(finding).map((line) => `${question.name}${line}`))
  return [
    renderTable(['QUESTION', 'FOUND', 'CERTAINTY', '', 'ASSUMED'], rows),
    section(
      'THE DAEMON CANNOT HANDLE',
      lines(({ found, why, cannot }) => (cannot === null ? [] : [`: ${found ?? why}: ${cannot}`])),
    ),
    section(
      'SET',
      discoveredSettings(answered).map(({ variable, value, why }) => `${variable}=${value}  (${why})`),
    ),
    section(
      'ADVICE',
      lines(({ advice }) => advice.map((each) => `: ${each}`)),
    ),
    section('SEEN ON THE WAY', seen),
    section(
      'NOT FOUND OUT',
      lines(({ found, certainty, why }) => (found === null ? [` (${certainty}): ${why}`] : [])),
    ),
  ]
    .filter((part) => part !== '')
    .join('\n')
}

const section = (head: string, lines: readonly string[]) =>
  lines.length === 0 ? '' : `${head}\n${lines.map((line) => `  ${line.replace(/\s+/g, ' ')}\n`).join('')}`

/** Returns each variable once, with the value of the last question that sets it. */
export function discoveredSettings(answered: readonly AnsweredQuestion[]): Setting[] {
  const settings = answered.flatMap(({ finding }) => finding.set)
  return [...new Map(settings.map((setting) => [setting.variable, setting])).values()]
}

/** `name=value` pairs with blanks between, for DISCOVERED_CONTRACT. The last value of a name wins. */
export function formatDiscoveredContract(answered: readonly AnsweredQuestion[]): string {
  const pairs = new Map(answered.flatMap(({ finding }) => Object.entries(finding.contract)))
  return [...pairs].map(([name, value]) => `${name}=${value}`).join(' ')
}

export function renderSettingsFile(
  answered: readonly AnsweredQuestion[],
  { baseUrl, at }: { baseUrl: string; at: string },
): string {
  const settings = discoveredSettings(answered)
  const contract = formatDiscoveredContract(answered)
  const blocks = [
    `${beginning}${baseUrl} at ${at}.\n# Variables of outboxd, without secrets: add them to your own, or name this file with --env-file.`,
    ...settings.map(({ variable, value, why }) => `${commentOf(why)}\n${variable}=${value}`),
    ...answered
      .filter(({ finding }) => finding.advice.length > 0)
      .map(({ question, finding }) => finding.advice.map((each) => commentOf(`${question.name}: ${each}`)).join('\n')),
    ...(contract === '' ? [] : [`${commentOf(contractAbout)}\nDISCOVERED_CONTRACT="${contract}"`]),
  ]
  return `${blocks.join('\n\n')}\n`
}

export const isWrittenByDiscover = (text: string): boolean => text.startsWith(beginning)

const beginning = '# What outboxd discover found of '

const contractAbout =
  'What the service answered. outboxd check --contract compares later answers with this, and the daemon counts answers that contradict it (contract_breaches_total).'

/** An answer of the service may hold line breaks. */
const commentOf = (text: string) =>
  text
    .split(/[\r\n\u0085\u2028\u2029]+/)
    .map((line) => `# ${line}`)
    .join('\n')

export function describeSideObservations(exchanges: readonly Exchange[], throttles: readonly Throttle[]): string[] {
  const late = lateRecordsMs(exchanges)
  const arrived = exchanges.filter((exchange) => hasEarlierAttemptArrived(exchanges, exchange)).length
  const troubles = exchanges.filter(({ answer }) => answer.kind === 'no-answer' || answer.status >= 500)
  return [
    late.length > 0 &&
      `${late.length} records were answered 404 at first, for up to ${formatMsOrSeconds(Math.max(...late))} after they were accepted`,
    ...throttles.slice(0, 1).map(({ refused: { answer }, waitedMs }) => {
      const retryAfter = (answer.kind === 'response' && answer.headers['retry-after']) || 'none'
      return `${throttles.length} requests were answered 429, the first let in after ${formatMsOrSeconds(waitedMs)} (Retry-After: ${retryAfter}): ${describeAnswer(answer)}`
    }),
    ...statusesSeenOnce(exchanges).map((status) => `the status ${status} appeared once`),
    ...troubles
      .slice(0, 1)
      .map(
        ({ method, path, answer }) =>
          `${troubles.length} requests met a 5xx or no answer, first ${method} ${path}: ${describeAnswer(answer)}`,
      ),
    arrived > 0 &&
      `${arrived} records had arrived although the first answer was a 5xx or missing: the repetition got E002`,
  ].filter((sentence) => sentence !== false)
}

/** How long each late id was answered 404 before it was answered 200. */
function lateRecordsMs(exchanges: readonly Exchange[]): number[] {
  const gets = exchanges.filter(({ method }) => method === 'GET')
  return Object.values(Object.groupBy(gets, ({ path }) => path)).flatMap((all = []) => {
    const last = all[all.findIndex((each) => transactionStatusIn(each) !== null) - 1]
    const isMissing = last?.answer.kind === 'response' && last.answer.status === 404
    return isMissing ? [endedAtMs(last) - (all[0]?.startedAtMs ?? 0)] : []
  })
}

function statusesSeenOnce(exchanges: readonly Exchange[]): string[] {
  const said = exchanges.filter(({ method }) => method === 'GET').flatMap((each) => transactionStatusIn(each) ?? [])
  return said.filter((status) => said.indexOf(status) === said.lastIndexOf(status))
}
