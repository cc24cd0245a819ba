import { type Contract, readDiscoverConfig } from '../../config.ts'
import { type Answered, planQuestions } from '../../discover/askQuestions.ts'
import { questions } from '../../discover/questions.ts'
import { explainError } from '../../operations/explainError.ts'
import { askDiscoverQuestions } from '../askDiscoverQuestions.ts'
import type { CommandContext } from '../terminal/context.ts'
import { type Finding, finding, notAskedFinding } from './finding.ts'

const what = 'contract'

/** Questions that create nothing, so that production may be asked. */
const harmless = questions.filter((question) => question.harmless)
const asked = ['token-unit', 'address', 'unknown-id', 'bad-token', 'unknown-order', 'unknown-path', 'rate-header']
const budget = 16
const noTestData = {
  ...{ customer: null, unknownCustomer: null, orderCustomer: null, record: null, order: null },
  ...{ slow: false, rate: false, size: false },
}

export async function checkContract(context: CommandContext): Promise<Finding[]> {
  const config = readDiscoverConfig(context.env)
  const { discoveredContract: expected } = config
  if (expected === null)
    return [
      notAskedFinding(
        what,
        'DISCOVERED_CONTRACT is not set: `outboxd discover --write FILE` writes it, in a test environment',
      ),
    ]
  const plan = planQuestions(harmless, noTestData, asked)
  try {
    const { answered } = await askDiscoverQuestions(context, {
      config,
      plan,
      budget,
      ownCount: false,
      onAnswered() {},
    })
    return compareContract(expected, answered)
  } catch (error) {
    return [notAskedFinding(what, explainError(error).message)]
  }
}

function compareContract(expected: Contract, answered: readonly Answered[]): Finding[] {
  const said: Contract = Object.assign({}, ...answered.map(({ finding }) => finding.contract))
  const other = otherThanService(expected, said, answered)
  const seen = other === null ? said : ofToken(said)
  const pairs = Object.entries(expected) as [keyof Contract, string][]
  const changed = pairs.filter(([name, value]) => seen[name] !== undefined && seen[name] !== value)
  const same = pairs.filter(([name, value]) => seen[name] === value)
  const unseen = pairs.filter(([name]) => seen[name] === undefined).map(([name]) => name)
  const problems = [
    ...(other === null
      ? []
      : [
          `something other than the service answers at SERVICE_BASE_URL (${other}). Check that address, and a proxy in between`,
        ]),
    ...changed.map(
      ([name, value]) =>
        `the service has changed: ${sentence(name, seen[name] ?? '')}, it was ${value}. Ask its operator, then run \`outboxd discover\``,
    ),
  ].map((message) => finding(what, 'problem', message))
  const why = other === null ? whyUnseen(answered) : null
  if (same.length === 0)
    return problems.length > 0
      ? problems
      : [notAskedFinding(what, why ?? `harmless requests do not show ${unseen.join(', ')}`)]
  const rest = unseen.length === 0 ? '' : `; not checked: ${unseen.join(', ')}${why === null ? '' : ` (${why})`}`
  return [...problems, finding(what, 'ok', `unchanged: ${same.map(([name]) => name).join(', ')}${rest}`)]
}

const ofToken = ({ expires_in }: Contract): Contract => (expires_in === undefined ? {} : { expires_in })

function otherThanService(expected: Contract, said: Contract, answered: readonly Answered[]): string | null {
  const address = answered.find(({ question }) => question.name === 'address')?.finding
  if (address?.found === 'something else' || (address?.found === null && address.differs)) return address.why
  const alike = alikeNames.filter((name) => said[name] !== undefined && expected[name] !== undefined)
  const different = (contract: Contract) => new Set(alike.map((name) => contract[name])).size
  return alike.length > 2 && alike.includes('bad_token') && different(said) === 1 && different(expected) > 1
    ? `every request gets ${said.bad_token}, with a valid token or without`
    : null
}

/** A service gives these different answers. A page in its place gives one answer. */
const alikeNames = ['bad_token', 'status_unknown', 'order_status_unknown', 'unknown_path'] as const

function whyUnseen(answered: readonly Answered[]): string | null {
  const open = answered.filter(({ question, finding }) => question.name !== 'token-unit' && finding.found === null)
  return open.at(0)?.finding.why ?? null
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

const sentence = (name: keyof Contract, value: string) => `${subjects[name]} ${value}`
