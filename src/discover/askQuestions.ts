import { requestHeaders, splitBaseUrl } from '../service/client.ts'
import { isServiceCode } from '../service/responses.ts'
import { type AnsweredExchange, accessTokenIn, type Exchange, whyAnswerIsUnusable } from './exchange.ts'
import { requireFirstCallLetIn } from './judges/refusals.ts'
import { tokenSample } from './judges/token.ts'
import {
  type ApiCall,
  CannotAsk,
  type Finding,
  type GivenOptions,
  type NeededOption,
  NoUsableAnswer,
  notAskedFinding,
  type Question,
  type QuestionParts,
  QuestionsStopped,
  type Sample,
  unknownFinding,
} from './question.ts'
import { Sender, type SenderDeps } from './sender.ts'
import { customerIdOf } from './testRecord.ts'

export interface AnsweredQuestion {
  question: Question
  finding: Finding
}

export interface QuestionPlan {
  asked: readonly Question[]
  left: readonly { question: Question; why: string }[]
  given: GivenOptions
}

/**
 * Chooses the questions that can be asked, in their order.
 * @param only names; null for all
 */
export function planQuestions(
  questions: readonly Question[],
  given: GivenOptions,
  only: readonly string[] | null,
): QuestionPlan {
  const wanted = questions.filter(({ name }) => only === null || only.includes(name))
  const asked = wanted.filter((question) => missingFor(question, given) === undefined)
  const left = wanted.flatMap((question) => {
    const need = missingFor(question, given)
    return need === undefined ? [] : [{ question, why: `${option[need]} was not given` }]
  })
  return { asked, left, given }
}

const missingFor = ({ needs }: Question, given: GivenOptions): NeededOption | undefined =>
  needs.find((need) => !(need === 'customer' ? customerIdOf(given) : given[need]))

const option: Record<NeededOption, string> = {
  customer: '--customer ID (a customer that the service knows)',
  unknownCustomer: '--unknown-customer ID (a customer that the service does not know)',
  orderCustomer: '--order-customer UUID (a customer that may order)',
  slow: '--slow',
  rate: '--rate',
  size: '--size',
}

export async function askQuestions(
  { asked, left }: QuestionPlan,
  { parts, sender }: { parts: QuestionParts; sender: Sender },
  onAnswered: (answered: AnsweredQuestion) => void,
): Promise<AnsweredQuestion[]> {
  const answered: AnsweredQuestion[] = []
  for (const question of asked) {
    sender.asking = question.name
    const finding = await askOne(question, parts).catch(explainUnanswered)
    answered.push({ question, finding })
    onAnswered({ question, finding })
  }
  return [...answered, ...left.map(({ question, why }) => ({ question, finding: notAskedFinding(why) }))]
}

/** These two questions themselves find out why the service lets nothing in. */
const firstQuestions = ['token-unit', 'address']

async function askOne(question: Question, parts: QuestionParts): Promise<Finding> {
  if (!firstQuestions.includes(question.name)) await requireFirstCallLetIn(parts)
  return question.run(parts)
}

function explainUnanswered(error: unknown): Finding {
  if (error instanceof NoUsableAnswer) return unknownFinding(error.message)
  if (error instanceof CannotAsk || error instanceof QuestionsStopped) return notAskedFinding(error.message)
  throw error
}

interface QuestionPartsDeps extends SenderDeps {
  given: GivenOptions
  run: string
}

const triesMax = 3
const betweenTriesMs = 300
const tokenRenewalsMax = 20

export function createQuestionParts(deps: QuestionPartsDeps): { parts: QuestionParts; sender: Sender } {
  const { service } = deps.config
  const sender = new Sender(deps)
  const taken = new Map<Sample<unknown>, Promise<unknown>>()
  const api = splitBaseUrl(service.baseUrl)
  const issuer = splitBaseUrl(service.authUrl)
  let token: string | null = null
  let renewals = 0
  let numbers = 0

  const parts: QuestionParts = {
    config: deps.config,
    given: deps.given,
    run: deps.run,
    get: (path) => answered({ method: 'GET', path }),
    post: (path, body, headers = {}) => answered({ method: 'POST', path, body, headers }),
    call,
    async askToken() {
      const { clientId: client_id, clientSecret: client_secret } = service
      const exchange = await sender.send({
        method: 'POST',
        origin: issuer.origin,
        path: `${issuer.prefix}/oauth/token`,
        headers: { ...requestHeaders, 'content-type': 'application/x-www-form-urlencoded' },
        body: new URLSearchParams({ grant_type: 'client_credentials', client_id, client_secret }).toString(),
        accessToken: null,
        beyondLimit: false,
      })
      token = accessTokenIn(exchange.answer) ?? token
      return exchange
    },
    async token() {
      await parts.sample(tokenSample)
      return token ?? ''
    },
    async sample<T>(sample: Sample<T>) {
      const before = sender.asking
      sender.asking = sample.name
      const taking = taken.get(sample) ?? sample.take(parts)
      taken.set(sample, taking)
      try {
        return (await taking) as T
      } finally {
        sender.asking = before
      }
    },
    stop: (why) => sender.stop(why),
    exchanges: () => sender.exchanges,
    throttles: () => sender.throttles,
    nextNumber: () => numbers++,
    nowMs: deps.nowMs,
    waitMs: deps.waitMs,
  }
  return { parts, sender }

  async function call({ method, path, body, headers = {}, accessToken, beyondLimit = false }: ApiCall) {
    const type = method === 'POST' ? { 'content-type': 'application/json' } : {}
    const callAs = (accessToken: string) =>
      sender.send({
        method,
        origin: api.origin,
        path: api.prefix + path,
        headers: { ...requestHeaders, authorization: `Bearer ${accessToken}`, ...type, ...headers },
        body: body ?? null,
        accessToken,
        beyondLimit,
      })
    if (accessToken !== undefined) return callAs(accessToken)
    const exchange = await callAs(await parts.token())
    if (!hasTokenEnded(exchange, sender.exchanges) || renewals >= tokenRenewalsMax) return exchange
    renewals++
    const renewal = await parts.askToken()
    return accessTokenIn(renewal.answer) === null ? exchange : callAs(await parts.token())
  }

  async function answered(request: ApiCall): Promise<AnsweredExchange> {
    for (let tries = 1; ; tries++) {
      const exchange = await call(request)
      const why = whyAnswerIsUnusable(exchange.answer)
      if (why === null) return exchange as AnsweredExchange
      const isTrouble = exchange.answer.kind === 'no-answer' || exchange.answer.status >= 500
      if (!isTrouble || tries === triesMax) throw new NoUsableAnswer(why)
      await deps.waitMs(betweenTriesMs)
    }
  }
}

/** True if a token was refused that had been accepted before. A token that never worked is not worth renewing. */
function hasTokenEnded({ accessToken, answer }: Exchange, exchanges: readonly Exchange[]): boolean {
  if (answer.kind === 'no-answer' || answer.status !== 401 || isServiceCode(answer.code)) return false
  return exchanges.some(
    (each) =>
      each.accessToken === accessToken &&
      each.answer.kind === 'response' &&
      ![401, 403, 429].includes(each.answer.status),
  )
}
