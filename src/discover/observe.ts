import { readAcceptance } from '../service/responses.ts'
import {
  type AnsweredExchange,
  describeSeen,
  fieldOf,
  isSuccess,
  jsonOf,
  type Response,
  type SeenAnswer,
  statusAndCode,
} from './exchange.ts'
import { type Finding, unknownFinding } from './finding.ts'
import { NoAnswer, type QuestionParts } from './question.ts'

/**
 * The rules by which an answer is sure.
 *
 * - Two equal requests were answered alike.
 * - A refusal counts only with a control: a request that differs in one thing, and is accepted after the refusal.
 * - An answer that contradicts another one settles nothing.
 */

export interface Observed {
  taken: boolean
  exchange: AnsweredExchange
  name: string
}

export const observeRequestsMax = 3

/**
 * @param control sends the request that must be accepted
 * @throws {NoAnswer} if answers contradict each other
 */
export async function observeTwice(
  send: () => Promise<AnsweredExchange>,
  control: () => Promise<AnsweredExchange>,
): Promise<Observed> {
  const exchange = await sendTwice(send)
  const taken = isAcceptedRecord(exchange)
  if (!taken) await assertControlAccepted(control)
  return { taken, exchange, name: statusAndCode(exchange.answer) }
}

export async function sendTwice(send: () => Promise<AnsweredExchange>): Promise<AnsweredExchange> {
  const [first, second] = [await send(), await send()]
  if (
    isAcceptedRecord(first) === isAcceptedRecord(second) &&
    statusAndCode(first.answer) === statusAndCode(second.answer)
  )
    return first
  throw new NoAnswer(
    `two equal requests were answered differently: ${describeSeen(first.answer)}; ${describeSeen(second.answer)}`,
  )
}

/** @throws {NoAnswer} if the control is refused, because its reason may also have caused the refusal before it */
export async function assertControlAccepted(control: () => Promise<AnsweredExchange>): Promise<void> {
  const checked = await control()
  if (!isAcceptedRecord(checked))
    throw new NoAnswer(`a record like those that were accepted is refused now: ${describeSeen(checked.answer)}`)
}

export function contradictionFinding(answers: readonly Response[], assumed: string): Finding | null {
  if (new Set(answers.map(({ status }) => status)).size <= 1) return null
  return unknownFinding(`equal requests were answered differently: ${answers.map(describeSeen).join('; ')}`, {
    assumed,
  })
}

/** True for a success whose body does not say otherwise. */
export const isAcceptedRecord = ({ answer }: { answer: SeenAnswer }): boolean =>
  isSuccess(answer) && readAcceptance(jsonOf(answer), answer.kind === 'response' ? answer.code : null) !== 'no'

/**
 * Sends a record again if E002 follows a 5xx or no answer to the same body. The first attempt had arrived, so the E002
 * says nothing about the record.
 */
export async function repeatUnlessArrived(
  parts: Pick<QuestionParts, 'exchanges'>,
  send: () => Promise<AnsweredExchange>,
): Promise<AnsweredExchange> {
  const exchange = await send()
  return hadArrivedBefore(parts.exchanges(), exchange) ? send() : exchange
}

/** True if an exchange is E002, and the one before it had the same body and got a 5xx or no answer. */
export function hadArrivedBefore(all: readonly AnsweredOrNot[], exchange: AnsweredOrNot): boolean {
  const before = all[all.indexOf(exchange) - 1]
  if (before === undefined || exchange.answer.kind !== 'response' || exchange.answer.code !== 'E002') return false
  const isTrouble = before.answer.kind === 'no-answer' || before.answer.status >= 500
  return isTrouble && before.body === exchange.body
}

type AnsweredOrNot = ReturnType<QuestionParts['exchanges']>[number]

/** Polls each path until it has ended, or until the waits are over. */
export async function pollUntilEnded(
  parts: QuestionParts,
  paths: readonly string[],
  waitsMs: readonly number[],
): Promise<AnsweredExchange[][]> {
  const polls = paths.map((): AnsweredExchange[] => [])
  for (const waitMs of waitsMs) {
    if (polls.every(hasEnded)) break
    await parts.waitMs(waitMs)
    for (const [i, path] of paths.entries()) {
      const own = polls[i] ?? []
      if (!hasEnded(own)) own.push(await parts.get(path))
    }
  }
  return polls
}

const hasEnded = (polls: readonly AnsweredExchange[]) => {
  const last = polls.at(-1)
  return last !== undefined && endWords.test(String(fieldOf(last.answer.json, 'status')))
}

const endWords =
  /^(completed?|done|finished|closed|processed|success|succeeded|failed|failure|error|rejected|cancell?ed|shipped|delivered)$/i
