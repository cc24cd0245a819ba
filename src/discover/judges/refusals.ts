import { randomUUID } from 'node:crypto'
import type { Contract } from '../../config.ts'
import { type Resource, serviceResources } from '../../resources.ts'
import { isServiceErrorCode } from '../../service/responses.ts'
import {
  describeAnswer,
  type Exchange,
  isRefusalOfRequestItself,
  isSuccess,
  type ParsedAnswer,
  type Response,
  statusAndCodeText,
  transactionStatusIn,
  whyAnswerIsUnusable,
} from '../exchange.ts'
import { hasEarlierAttemptArrived, type Observation, sendTwice } from '../observe.ts'
import {
  type Finding,
  likelyFinding,
  NoUsableAnswer,
  type QuestionContext,
  QuestionsStopped,
  type Sample,
  sureFinding,
  unknownFinding,
} from '../question.ts'
import { customerIdOf, observeChangedTestRecord, testRecordSample, transactionIdIn } from '../testRecord.ts'

interface FirstCall {
  finding: Finding
  /** Why no more can be asked; null if more can. */
  stop: string | null
  /** The answer to a good token. A token that gets the same answer is let in, too. */
  answer: ParsedAnswer
}

const unknownTransaction = () => `${serviceResources.data.path}/${randomUUID()}`

/** Unless the service lets this call in, nothing more is sent. */
const firstCallSample: Sample<FirstCall> = {
  name: 'a question for an unknown transaction',
  async take(parts) {
    const look = async (path: string) => (await parts.call({ method: 'GET', path })).answer
    const answer = await look(unknownTransaction())
    const falseToken = isForbidden(answer) ? (await callWithFalseToken(parts)).answer : null
    const isTold = falseToken !== null && statusAndCodeText(falseToken) !== statusAndCodeText(answer)
    const beside = isSuccess(answer) || isTold ? await look(`/api/v1/${randomUUID()}`) : null
    // A service that lets the address in refuses an empty record for itself, whatever it says of unknown ids and paths.
    const empty = isTold
      ? (await parts.call({ method: 'POST', path: serviceResources.data.path, body: '{}' })).answer
      : null
    const call = judgeAddress(answer, { beside, falseToken, empty })
    if (call.stop !== null) parts.sender.stop(call.stop)
    return { ...call, answer }
  },
}

const isForbidden = (seen: ParsedAnswer): boolean =>
  seen.kind === 'response' && (seen.status === 401 || seen.status === 403)

const callWithFalseToken = (parts: QuestionContext): Promise<Exchange> =>
  parts.call({ method: 'GET', path: unknownTransaction(), accessToken: `not-a-token-${parts.run}` })

/** @throws QuestionsStopped if the service did not let the first call in */
export async function requireFirstCallAllowed(parts: QuestionContext): Promise<void> {
  const { stop } = await parts.sample(firstCallSample)
  if (stop !== null) throw new QuestionsStopped(stop)
}

export const askWhetherAddressIsLetIn = async (parts: QuestionContext): Promise<Finding> =>
  (await parts.sample(firstCallSample)).finding

/** Whether an answer to a question for an unknown transaction shows that its token was let in, or was refused. */
export interface TokenSigns {
  isLetIn(exchange: Exchange): boolean
  isRefused(exchange: Exchange): boolean
}

/** @throws NoUsableAnswer if a false token gets the same answer as a good one */
export async function findTokenSigns(parts: QuestionContext): Promise<TokenSigns> {
  const { answer: good } = await parts.sample(firstCallSample)
  const { first } = await parts.sample(falseTokenSample)
  if (statusAndCodeText(first) === statusAndCodeText(good))
    throw new NoUsableAnswer(`a false token gets the same answer as a good one: ${describeAnswer(first)}`)
  return {
    isLetIn: ({ answer }) => statusAndCodeText(answer) === statusAndCodeText(good),
    isRefused: ({ answer }) => statusAndCodeText(answer) === statusAndCodeText(first),
  }
}

const falseTokenSample: Sample<{ first: ParsedAnswer; second: ParsedAnswer }> = {
  name: 'a false token',
  async take(parts) {
    const first = await callWithFalseToken(parts)
    return { first: first.answer, second: (await callWithFalseToken(parts)).answer }
  },
}

/** @param others answers to an unknown path, to a false token and to an empty record; null if not asked */
function judgeAddress(
  seen: ParsedAnswer,
  { beside, falseToken, empty }: Record<'beside' | 'falseToken' | 'empty', ParsedAnswer | null>,
): Omit<FirstCall, 'answer'> {
  const line = describeAnswer(seen)
  const stop = (why: string) => `the first call with a good token ${why}`
  if (seen.kind === 'no-answer') return { finding: unknownFinding(line), stop: stop(`was not answered: ${line}`) }
  if (seen.status === 503) {
    const isDown = `the service says that it is down: ${line}`
    return { finding: unknownFinding(isDown), stop: isDown }
  }
  const refused = (what: string, why: string, cannot: string) => ({
    finding: likelyFinding(what, why, { differs: true, cannot }),
    stop: stop(why),
  })
  if (isForbidden(seen)) {
    if (falseToken !== null && [beside, empty].some((each) => each !== null && isRefusalOfRequestItself(each))) {
      const why = `a good token was answered ${statusAndCodeText(seen)} for an unknown transaction, a false one ${statusAndCodeText(falseToken)}`
      return { finding: likelyFinding('let in', why), stop: null }
    }
    return refused(
      `refused with ${seen.status}`,
      `was answered ${line}`,
      'every record waits (pause unauthorized) until the operator of the service lets this address in, or gives the client the permission',
    )
  }
  if (seen.status >= 300 && seen.status < 400) {
    const why = `was answered ${seen.status}, a redirect to ${(seen.headers.location ?? '(nowhere)').replace(/[?#].*$/s, '')}`
    const cannot = 'all sending pauses (unauthorized) at a redirect: check SERVICE_BASE_URL, or a proxy in between'
    return { finding: unknownFinding(stop(why), { differs: true, cannot }), stop: stop(why) }
  }
  if (isSuccess(seen) && beside !== null && (isSuccess(beside) || beside.kind === 'no-answer'))
    return refused(
      'something else',
      `was answered ${line}, although the transaction does not exist. A path that the service does not have got the same answer, so something else answers`,
      'the service does not answer at SERVICE_BASE_URL',
    )
  if (!isSuccess(seen) && !isRefusalOfRequestItself(seen)) return { finding: unknownFinding(line), stop: null }
  const why = `a good token was answered ${statusAndCodeText(seen)}; how the service answers other addresses cannot be tested from here`
  return { finding: sureFinding('let in', why), stop: null }
}

function judgeStatus(
  seen: Response,
  pair: keyof Contract,
  expected: readonly number[],
  cannot: { success: string; other: string },
): Finding {
  const contract = { [pair]: String(seen.status) }
  const why = `${describeAnswer(seen)}, twice`
  if (expected.includes(seen.status)) return sureFinding(statusAndCodeText(seen), why, { contract })
  const more = { differs: true, cannot: isSuccess(seen) ? cannot.success : cannot.other, contract }
  return sureFinding(statusAndCodeText(seen), why, more)
}

const getTwice = async (parts: QuestionContext, path: () => string): Promise<Response> =>
  (await sendTwice(() => parts.get(path()))).answer

/** A moved API must not look like a missing record: this is its answer. */
export async function askAnswerToUnknownPath(parts: QuestionContext): Promise<Finding> {
  const cannot = 'if the API moves, records may be rejected or retried one by one, although all should wait'
  const seen = await getTwice(parts, () => `/api/v1/${randomUUID()}`)
  return judgeStatus(seen, 'unknown_path', [404, 405, 410], { success: cannot, other: cannot })
}

export async function askAnswerToBadToken(parts: QuestionContext): Promise<Finding> {
  const { first, second } = await parts.sample(falseTokenSample)
  if (first.kind === 'no-answer' || statusAndCodeText(first) !== statusAndCodeText(second))
    throw new NoUsableAnswer(
      `two calls with a false token were answered ${statusAndCodeText(first)} and ${statusAndCodeText(second)}`,
    )
  if (first.status !== 401 && whyAnswerIsUnusable(first) !== null) throw new NoUsableAnswer(describeAnswer(first))
  const { answer: good } = await parts.sample(firstCallSample)
  const notRenewed =
    'the daemon renews a token before it expires, or after a 401. This service does not answer a bad token with 401: if it revokes a token early, requests fail until the token is due for renewal. Set TOKEN_REFRESH_SECONDS higher, so that tokens are renewed earlier'
  const accepts = 'the service accepts a token that its issuer did not give: it does not check tokens'
  return judgeStatus(first, 'bad_token', [401], { success: isSuccess(good) ? accepts : notRenewed, other: notRenewed })
}

const judgeUnknownId = (seen: Response, resource: Resource): Finding =>
  judgeStatus(seen, resource === 'orders' ? 'order_status_unknown' : 'status_unknown', [404], {
    success:
      'a transaction that the service has lost looks as if it existed: the daemon asks for it until outboxd_problem reports it as stuck',
    other:
      'if the service has lost a transaction, the daemon asks for it less and less often, and never calls it failed. After STUCK_AFTER_SECONDS, outboxd_problem reports it as stuck',
  })

export const askAnswerToUnknownOrder = async (parts: QuestionContext): Promise<Finding> =>
  judgeUnknownId(await getTwice(parts, () => `${serviceResources.orders.path}/${randomUUID()}`), 'orders')

/** Also asks with an id in the form of the service's own ids, because a lost transaction's id has that form. */
export async function askAnswerToUnknownId(parts: QuestionContext): Promise<Finding> {
  const other = await getTwice(parts, () => `${serviceResources.data.path}/${randomUUID()}`)
  const finding = judgeUnknownId(other, 'data')
  if (customerIdOf(parts.given) === '') return finding
  const accepted = (await parts.sample(testRecordSample)).tried.at(-1)
  const given = accepted === undefined ? null : transactionIdIn(accepted)
  const id = given === null ? null : makeSimilarId(given)
  if (id === null) return finding
  const own = await getTwice(parts, () => `${serviceResources.data.path}/${encodeURIComponent(id)}`)
  if (statusAndCodeText(own) === statusAndCodeText(other)) return finding
  if (isSuccess(own) && !isSuccess(other))
    return unknownFinding(`the id ${id} may be that of a transaction: ${describeAnswer(own)}`)
  return { ...judgeUnknownId(own, 'data'), contract: {} }
}

/**
 * Returns a new uuid, or many nines, because a service that counts may have given any short number.
 * @returns null if the id has no digit
 */
function makeSimilarId(id: string): string | null {
  if (/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(id)) return randomUUID()
  if (!/\d/.test(id)) return null
  const nines = id.replaceAll(/\d/g, '9')
  return nines.replace(/9+(?=\D*$)/, (last) => last.padEnd(9, '9'))
}

export async function askAnswerToUnknownCustomer(parts: QuestionContext): Promise<Finding> {
  const observed = await observeChangedTestRecord(parts, { customerId: parts.given.unknownCustomer ?? '' })
  if (!observed.isAccepted) return judgeUnknownCustomerRefusal(observed)
  const advice = [
    'the service may know this customer, or refuse it later in the status of the transaction: ask its operator about the id of --unknown-customer',
  ]
  const why = `two records were accepted (${describeAnswer(observed.exchange.answer)})`
  return likelyFinding('taken', why, { differs: true, advice })
}

/** @param observed a refusal. A control with a known customer was accepted, so only the customer can be the reason. */
export function judgeUnknownCustomerRefusal({ statusAndCode, exchange }: Observation): Finding {
  const { status, code } = exchange.answer
  const hasCode = code === 'E001'
  const contract: Contract = hasCode ? { e001: String(status) } : {}
  const why = `${describeAnswer(exchange.answer)}, twice, and the same for a known customer was accepted`
  if (hasCode && status >= 400 && status < 500)
    return sureFinding(statusAndCode, why, { differs: status !== 400, contract })
  const cannot = `${status} without E001 does not name the customer: the daemon treats such a record as after any ${status} (docs/why/contract.md), and list --code E001 does not find it`
  return sureFinding(statusAndCode, why, { differs: true, cannot, contract })
}

/** A repetition shows it, if the service recognises the key of a record that got a 5xx. */
export async function askWhetherFailedRequestsAreStored(parts: QuestionContext): Promise<Finding> {
  const stored = parts.exchanges.filter((exchange) => hasEarlierAttemptArrived(parts.exchanges, exchange))
  const failed = parts.exchanges.filter(
    ({ method, answer }) => method === 'POST' && answer.kind === 'response' && answer.status >= 500,
  )
  const [first] = stored
  if (first === undefined)
    return unknownFinding(
      failed.length === 0 ? 'no record got a 5xx' : `${failed.length} requests got a 5xx, and no repetition said E002`,
    )
  const why = `${stored.length} repetitions of a record that had got no usable answer got ${describeAnswer(first.answer)}`
  const set = [{ variable: 'SERVER_ERRORS', value: 'hold', why: 'a record that gets a 5xx may be stored' }]
  return (stored.length > 1 ? sureFinding : likelyFinding)('yes', why, { differs: true, set })
}

/** @see docs/reference/interface.md, 7 */
export async function askWhetherErrorCodesAreRead(parts: QuestionContext): Promise<Finding> {
  // A poll that says `failed` was not refused: its transaction failed.
  const refusals = parts.exchanges
    .filter((each) => each.path.includes('/api/') && !/^failed$/i.test(transactionStatusIn(each) ?? ''))
    .flatMap(({ answer }) => (answer.kind === 'response' && isRefusalOfRequestItself(answer) ? [answer] : []))
  const read = refusals.find(({ code }) => isServiceErrorCode(code))
  const hidden = refusals.find(({ code, text }) => /\bE00[123]\b/.test(text) && !isServiceErrorCode(code))
  const why = (seen: Response) => describeAnswer(seen)
  if (hidden !== undefined)
    return likelyFinding('not read', why(hidden), {
      differs: true,
      cannot: 'the daemon does not find the code in this body: it judges E001, E002 and E003 by their HTTP status only',
    })
  if (read !== undefined) return likelyFinding('read', why(read))
  const [other] = refusals
  return unknownFinding(other === undefined ? 'nothing was refused' : `no refusal has an error code: ${why(other)}`)
}
