import { type Resource, serviceResources } from '../resources.ts'
import { readAcceptance } from '../service/responses.ts'
import {
  type AnsweredExchange,
  describeAnswer,
  type Exchange,
  isSuccess,
  jsonOf,
  type ParsedAnswer,
  statusAndCodeText,
  submittedIdIn,
  transactionStatusIn,
} from './exchange.ts'
import { CannotAsk, NoUsableAnswer, type QuestionContext } from './question.ts'

/**
 * A finding is sure only if:
 *
 * - two equal requests got equal answers,
 * - after a refusal, a control request that differs in one thing was accepted.
 *
 * Answers that contradict each other settle nothing.
 */

export interface Observation {
  isAccepted: boolean
  exchange: AnsweredExchange
  statusAndCode: string
}

/**
 * Sends a record twice. If both were refused, the control must be accepted.
 * @throws {NoUsableAnswer} if answers contradict each other
 */
export async function observeTwice(
  send: () => Promise<AnsweredExchange>,
  sendControlRecord: () => Promise<AnsweredExchange>,
): Promise<Observation> {
  const exchange = await sendTwice(send)
  const isAccepted = isAcceptedRecord(exchange)
  if (!isAccepted) await assertControlRecordAccepted(sendControlRecord)
  return { isAccepted, exchange, statusAndCode: statusAndCodeText(exchange.answer) }
}

/** @throws {NoUsableAnswer} if the two answers differ */
export async function sendTwice(send: () => Promise<AnsweredExchange>): Promise<AnsweredExchange> {
  const [first, second] = [await send(), await send()]
  if (
    isAcceptedRecord(first) === isAcceptedRecord(second) &&
    statusAndCodeText(first.answer) === statusAndCodeText(second.answer)
  )
    return first
  throw new NoUsableAnswer(
    `two equal requests were answered differently: ${describeAnswer(first.answer)}; ${describeAnswer(second.answer)}`,
  )
}

/** @throws {NoUsableAnswer} if the control is refused, because its reason may also explain the earlier refusal */
export async function assertControlRecordAccepted(sendControlRecord: () => Promise<AnsweredExchange>): Promise<void> {
  const checked = await sendControlRecord()
  if (!isAcceptedRecord(checked))
    throw new NoUsableAnswer(`a record like the accepted ones is now refused: ${describeAnswer(checked.answer)}`)
}

export const describeObservations = (observed: Readonly<Record<string, Observation>>): string =>
  Object.entries(observed)
    .map(([what, { statusAndCode }]) => `${what}: ${statusAndCode}`)
    .join('; ')

/** True for a 2xx whose body does not say that the record was refused. */
export const isAcceptedRecord = ({ answer }: { answer: ParsedAnswer }): boolean =>
  isSuccess(answer) && readAcceptance(jsonOf(answer), answer.kind === 'response' ? answer.code : null) !== 'no'

/**
 * Sends a record, and again if it got E002 (duplicate) after its body got a 5xx or no answer. The E002 then shows only
 * that the earlier attempt arrived.
 */
export async function sendAgainIfEarlierAttemptArrived(
  parts: Pick<QuestionContext, 'exchanges'>,
  send: () => Promise<AnsweredExchange>,
): Promise<AnsweredExchange> {
  const exchange = await send()
  return hasEarlierAttemptArrived(parts.exchanges, exchange) ? send() : exchange
}

export function hasEarlierAttemptArrived(exchanges: readonly Exchange[], exchange: Exchange): boolean {
  const before = exchanges[exchanges.indexOf(exchange) - 1]
  if (before === undefined || exchange.answer.kind !== 'response' || exchange.answer.code !== 'E002') return false
  const isTrouble = before.answer.kind === 'no-answer' || before.answer.status >= 500
  return isTrouble && before.body === exchange.body
}

/** Waits between polls: short at first, because the first states may be short. */
const waitsMs = [150, 350, 700, 2_000, 4_000, 8_000, 15_000, 30_000]

/** Polls both transactions until they end, for a minute at most. */
export async function followTwoTransactions(
  parts: QuestionContext,
  resource: Resource,
  submit: () => Promise<AnsweredExchange>,
): Promise<AnsweredExchange[][]> {
  const { path, idField } = serviceResources[resource]
  const lives: { own: string; polls: AnsweredExchange[] }[] = []
  for (let i = 0; i < 2; i++) {
    const id = submittedIdIn(resource, await submit())
    if (id === null) throw new CannotAsk(`the answer to a test record has no ${idField}`)
    const own = `${path}/${encodeURIComponent(id)}`
    lives.push({ own, polls: [await parts.get(own)] })
  }
  for (const waitMs of waitsMs) {
    const open = lives.filter(({ polls }) => !endWords.test(polls.map(transactionStatusIn).at(-1) ?? ''))
    if (open.length === 0) break
    await parts.waitMs(waitMs)
    for (const { own, polls } of open) polls.push(await parts.get(own))
  }
  return lives.map(({ polls }) => polls)
}

const endWords =
  /^(completed?|done|finished|closed|processed|success|succeeded|failed|failure|error|rejected|cancell?ed|shipped|delivered)$/i
