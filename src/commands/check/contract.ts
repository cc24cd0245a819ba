import { type Contract, readDiscoverConfig } from '../../config.ts'
import { type AnsweredQuestion, planQuestions } from '../../discover/askQuestions.ts'
import { questions } from '../../discover/questions.ts'
import { explainError } from '../../operations/explainError.ts'
import { askDiscoverQuestions } from '../askDiscoverQuestions.ts'
import type { CommandContext } from '../terminal/context.ts'
import { type Finding, makeFinding, makeUncheckedFinding } from './finding.ts'

const what = 'contract'

const harmless = questions.filter((question) => question.harmless)
const asked = ['token-unit', 'address', 'unknown-id', 'bad-token', 'unknown-order', 'unknown-path', 'rate-header']
const budget = 16
const noTestData = {
  ...{ customer: null, unknownCustomer: null, orderCustomer: null, record: null, order: null },
  ...{ slow: false, rate: false, size: false },
}

export async function checkDiscoveredContract(context: CommandContext, expected: Contract): Promise<Finding[]> {
  const config = readDiscoverConfig(context.env)
  const plan = planQuestions(harmless, noTestData, asked)
  try {
    const { answered } = await askDiscoverQuestions(context, {
      config,
      plan,
      budget,
      countsInMemory: false,
      onAnswered() {},
    })
    return compareContract(expected, answered)
  } catch (error) {
    return [makeUncheckedFinding(what, explainError(error).message)]
  }
}

function compareContract(expected: Contract, answered: readonly AnsweredQuestion[]): Finding[] {
  const seen: Contract = Object.assign({}, ...answered.map(({ finding }) => finding.contract))
  const pairs = Object.entries(expected) as [keyof Contract, string][]
  const changed = pairs.filter(([name, value]) => seen[name] !== undefined && seen[name] !== value)
  const same = pairs.filter(([name, value]) => seen[name] === value).map(([name]) => name)
  const unseen = pairs.filter(([name]) => seen[name] === undefined).map(([name]) => name)
  // The question about the token cannot explain the service's other answers.
  const open = answered.find(({ question, finding }) => question.name !== 'token-unit' && finding.found === null)
  const why = open === undefined ? '' : ` (${open.finding.why})`
  const notSeen = unseen.length === 0 ? '' : `; not checked: ${unseen.join(', ')}${why}`
  const problems = changed.map(([name, value]) =>
    makeFinding(
      what,
      'problem',
      `the service has changed: ${subjects[name]} ${seen[name]}, it was ${value}. Check that SERVICE_BASE_URL is still the service. Ask its operator, then run \`outboxd discover --write FILE\` in its test environment, and set DISCOVERED_CONTRACT again`,
    ),
  )
  if (same.length > 0) return [...problems, makeFinding(what, 'ok', `unchanged: ${same.join(', ')}${notSeen}`)]
  return problems.length > 0 ? problems : [makeUncheckedFinding(what, `${unseen.join(', ')}${why}`)]
}

const subjects: Record<keyof Contract, string> = {
  expires_in: 'expires_in counts',
  bad_token: 'an unknown token gets',
  submit_ok: 'an accepted record gets',
  order_ok: 'an accepted order gets',
  status_unknown: 'an unknown id gets',
  order_status_unknown: 'an unknown order gets',
  unknown_path: 'an unknown path gets',
  other_method: 'a wrong method gets',
  e001: 'E001 comes with',
  e002: 'E002 comes with',
  rate_remaining: 'X-RateLimit-Remaining is on',
}
