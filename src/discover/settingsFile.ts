import type { Answered } from './askQuestions.ts'
import type { Setting } from './finding.ts'

/** The variables to set, each once. The last question that names one wins. */
export function discoveredSettings(answered: readonly Answered[]): Setting[] {
  const settings = answered.flatMap(({ finding }) => finding.set)
  return [...new Map(settings.map((setting) => [setting.variable, setting])).values()]
}

/** The value of DISCOVERED_CONTRACT: `name=value` with blanks between. The last of two wins. */
export function discoveredContract(answered: readonly Answered[]): string {
  const pairs = new Map(answered.flatMap(({ finding }) => Object.entries(finding.contract)))
  return [...pairs].map(([name, value]) => `${name}=${value}`).join(' ')
}

export function settingsFile(answered: readonly Answered[], { baseUrl, at }: { baseUrl: string; at: string }): string {
  const settings = discoveredSettings(answered)
  const contract = discoveredContract(answered)
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

export const isSettingsFile = (text: string): boolean => text.startsWith(beginning)

const beginning = '# What outboxd discover found of '

const contractAbout =
  'What the service answered. outboxd check --contract compares with it, and the daemon counts answers that contradict it (contract_breaches_total).'

/** Makes every line a comment, because an answer of the service may hold line breaks. */
const commentOf = (text: string) =>
  text
    .split(/[\r\n\u0085\u2028\u2029]+/)
    .map((line) => `# ${line}`)
    .join('\n')
