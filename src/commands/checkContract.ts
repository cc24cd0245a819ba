import type { CommandContext } from '../cli/context.ts'
import { explain } from '../cli/explainError.ts'
import { type Contract, readDiscoverConfig } from '../config.ts'
import type { Answered } from '../discover/askQuestions.ts'
import { planQuestions } from '../discover/plan.ts'
import { questions } from '../discover/questions.ts'
import { askService } from './askService.ts'
import { type Finding, notAsked } from './finding.ts'

const what = 'contract'

/** What production may be asked: it creates nothing. */
const harmless = questions.filter((question) => question.harmless)
const asked = ['token-unit', 'unknown-id', 'bad-token', 'unknown-order', 'unknown-path', 'other-method', 'rate-header']
const budget = 12
const nobody = { customer: null, unknownCustomer: null, orderCustomer: null, slow: false, rate: false, size: false }

/** Asks the service what creates nothing, and compares with what `outboxd discover` saw. */
export async function checkContract(context: CommandContext): Promise<Finding[]> {
  const config = readDiscoverConfig(context.env)
  const { discoveredContract: expected } = config
  if (expected === null)
    return [
      notAsked(what, 'DISCOVERED_CONTRACT is not set: outboxd discover --write FILE has it for a test environment'),
    ]
  const plan = planQuestions(harmless, nobody, asked)
  try {
    const { answered } = await askService(context, {
      config,
      given: nobody,
      plan,
      budget,
      ownCount: false,
      onAnswered() {},
    })
    return compareContract(expected, answered)
  } catch (error) {
    return [notAsked(what, explain(error).message)]
  }
}

/** Pure. */
export function compareContract(expected: Contract, answered: readonly Answered[]): Finding[] {
  const seen: Contract = Object.assign({}, ...answered.map(({ finding }) => finding.contract))
  const pairs = Object.entries(expected) as [keyof Contract, string][]
  const changed = pairs.filter(([name, value]) => seen[name] !== undefined && seen[name] !== value)
  const same = pairs.filter(([name, value]) => seen[name] === value)
  const unseen = pairs.filter(([name]) => seen[name] === undefined).map(([name]) => name)
  const problems = changed.map(
    ([name, value]): Finding => ({
      what,
      mark: 'problem',
      message: `the service has changed: ${sentence(name, seen[name] ?? '')}, it was ${value}; ask its operator, then outboxd discover`,
    }),
  )
  if (same.length === 0) {
    const why = answered.map(({ finding }) => finding.why).find((each) => each !== '') ?? 'nothing was answered'
    return [...problems, ...(changed.length === 0 ? [notAsked(what, why)] : [])]
  }
  const rest = unseen.length === 0 ? '' : `; not asked: ${unseen.join(', ')}`
  return [
    ...problems,
    { what, mark: 'ok', message: `as it was discovered: ${same.map(([name]) => name).join(', ')}${rest}` },
  ]
}

const subjects: Record<keyof Contract, string> = {
  expires_in: 'expires_in counts',
  bad_token: 'a token that nobody gave gets',
  submit_ok: 'a record that is taken gets',
  order_ok: 'an order that is taken gets',
  status_unknown: 'an unknown id gets',
  order_status_unknown: 'an unknown order gets',
  unknown_path: 'a path at which nothing is served gets',
  other_method: 'a method that a path does not take gets',
  e001: 'E001 comes with',
  e002: 'E002 comes with',
  rate_remaining: 'X-RateLimit-Remaining is on',
}

const sentence = (name: keyof Contract, value: string) => `${subjects[name]} ${value}`
