import { command as discover } from '../../src/commands/discover.ts'
import type { OptionsOf } from '../../src/commands/terminal/command.ts'
import type { Finding } from '../../src/discover/question.ts'
import { testContext } from '../support/context.ts'
import { serviceEnvironment } from '../support/serviceEnvironment.ts'

/** What the command said. */
export interface Asked {
  code: number
  /** By the question's name. */
  findings: Record<string, Finding>
  set: Record<string, string>
  contract: string
  /** Remarks about what happened on the way, such as records that were answered 404 at first. */
  seen: readonly string[]
  requests: number
  messages: string
  printed: string
}

export type DiscoverOptions = OptionsOf<typeof discover>

/** What the partner of a service with a rule on field2 would send. */
export const ownField2 = 'ABC-1234'

export const customers = {
  customer: 'C1',
  unknownCustomer: 'UNKNOWN',
  orderCustomer: 'a3bb189e-8bf9-4888-9912-ace4e6543002',
}

/** Asks a service with `outboxd discover --json`, counting in memory. */
export async function ask(
  url: string,
  options: DiscoverOptions = {},
  env: Record<string, string> = {},
): Promise<Asked> {
  const context = testContext({
    ...serviceEnvironment(url),
    SERVICE_IS_TEST: 'yes',
    ...env,
  })
  const code = await discover.action(context, { yes: true, json: true, ledger: false, ...options })
  const printed = context.printed()
  const {
    questions = [],
    set = [],
    contract = '',
    seen = [],
    requests = 0,
  } = printed.startsWith('{') ? JSON.parse(printed) : {}
  return {
    code,
    findings: Object.fromEntries(questions.map((each: Finding & { question: string }) => [each.question, each])),
    set: Object.fromEntries(set.map(({ variable, value }: { variable: string; value: string }) => [variable, value])),
    contract,
    seen,
    requests,
    messages: context.messages(),
    printed,
  }
}

/** The values that were found, by the question's name. */
export const foundIn = ({ findings }: Asked): Record<string, string | null> =>
  Object.fromEntries(Object.entries(findings).map(([name, { found }]) => [name, found]))
