import { randomUUID } from 'node:crypto'
import { serviceResources } from '../../resources.ts'
import { isServiceCode } from '../../service/errorCode.ts'
import {
  type AnsweredExchange,
  describeSeen,
  type Exchange,
  fieldOf,
  isRefusal,
  isSuccess,
  type Response,
  statusAndCode,
  transactionStatusIn,
} from '../exchange.ts'
import { certaintyOf, createFinding, type Finding, likelyFinding, sureFinding, unknownFinding } from '../finding.ts'
import { type Observed, pollUntilEnded, sendTwice } from '../observe.ts'
import type { QuestionParts } from '../question.ts'
import { customerOf, observeTestRecord, requireAcceptedRecord, transactionIdIn } from '../testRecord.ts'

export const getTwice = (parts: QuestionParts, path: () => string): Promise<AnsweredExchange> =>
  sendTwice(() => parts.get(path()))

/** Also asks with an id in the form of the service's own ids, because a lost transaction has such an id. */
export async function askUnknownId(parts: QuestionParts): Promise<Finding> {
  const other = await getTwice(parts, () => `${serviceResources.data.path}/${randomUUID()}`)
  const finding = judgeUnknownId(other.answer, 'status_unknown')
  if (customerOf(parts.given) === '') return finding
  const id = await requireAcceptedRecord(parts).then(
    (record) => makeSimilarId(record.id),
    () => null,
  )
  if (id === null) return finding
  const own = await getTwice(parts, () => `${serviceResources.data.path}/${encodeURIComponent(id)}`)
  if (statusAndCode(own.answer) === statusAndCode(other.answer)) return finding
  if (isSuccess(own.answer) && !isSuccess(other.answer))
    return unknownFinding(`the id ${id} may be that of a transaction: ${describeSeen(own.answer)}`, { assumed: '404' })
  return { ...judgeUnknownId(own.answer, 'status_unknown'), contract: {} }
}

/**
 * Makes an id of the same form that the service has not given: another uuid, or one with many nines, because a service
 * that counts may have given a short one.
 *
 * @returns null if the id has no digit
 */
export function makeSimilarId(id: string): string | null {
  if (/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(id)) return randomUUID()
  if (!/\d/.test(id)) return null
  const nines = id.replaceAll(/\d/g, '9')
  return nines.replace(/9+(?=\D*$)/, (last) => last.padEnd(9, '9'))
}

export function judgeUnknownId(seen: Response, pair: 'status_unknown' | 'order_status_unknown'): Finding {
  const more = { assumed: '404', contract: { [pair]: String(seen.status) } }
  const why = `${describeSeen(seen)}, twice`
  if (seen.status === 404) return sureFinding(statusAndCode(seen), why, more)
  const cannot = isSuccess(seen)
    ? 'a transaction that the service has lost looks as if it were there: the daemon asks for it until it is a problem (outboxd_problem stuck)'
    : 'if the service has lost a transaction, the daemon asks for it less and less often, and never calls it failed. After STUCK_AFTER_SECONDS it is a problem'
  return sureFinding(statusAndCode(seen), why, { ...more, differs: true, cannot })
}

export async function askUnknownCustomer(parts: QuestionParts): Promise<Finding> {
  const observed = await observeTestRecord(parts, { customerId: parts.given.unknownCustomer ?? '' })
  const id = transactionIdIn(observed.exchange)
  if (!observed.taken || id === null) return judgeUnknownCustomer(observed)
  const [polls = []] = await pollUntilEnded(
    parts,
    [`${serviceResources.data.path}/${encodeURIComponent(id)}`],
    [1_000, 4_000, 15_000],
  )
  const last = polls.at(-1) ?? observed.exchange
  const why = `two records were accepted (${describeSeen(observed.exchange.answer)}); then ${describeSeen(last.answer)}`
  const more = { assumed: '400 E001', differs: true }
  if (/^failed$/i.test(transactionStatusIn(last) ?? ''))
    return likelyFinding(`taken, then failed ${last.answer.code ?? 'without a code'}`, why, more)
  const advice = [
    'the service may know this customer, or not say that it does not: ask its operator about the id of --unknown-customer',
  ]
  return likelyFinding('taken', why, { ...more, advice })
}

/** @param observed a refusal with a control for a known customer, so that only the customer can be the reason */
export function judgeUnknownCustomer({ name, exchange }: Observed): Finding {
  const { status, code } = exchange.answer
  const hasCode = code === 'E001'
  const isClient = status >= 400 && status < 500
  const contract: Finding['contract'] = hasCode ? { e001: String(status) } : {}
  const more = { assumed: '400 E001', contract }
  const why = `${describeSeen(exchange.answer)}, twice, and the same for a known customer was accepted`
  if (hasCode && status === 400) return sureFinding(name, why, more)
  const cannot =
    hasCode && isClient
      ? null
      : [404, 405, 410].includes(status)
        ? `to the daemon, ${status} without E001 means that the service is not there: all sending pauses, and the record is rejected after its third try`
        : isClient
          ? 'the record is rejected, but without its code: list --code E001 does not find it'
          : `the record is retried or uncertain, as after any ${status}`
  return sureFinding(name, why, { ...more, differs: true, cannot })
}

/** If the API moves, the daemon must notice that the record is not the reason. */
export async function askUnknownPath(parts: QuestionParts): Promise<Finding> {
  const { answer } = await getTwice(parts, () => `/api/v1/${randomUUID()}`)
  const more = { assumed: '404, 405 or 410', contract: { unknown_path: String(answer.status) } }
  const why = `${describeSeen(answer)}, twice`
  if ([404, 405, 410].includes(answer.status)) return sureFinding(statusAndCode(answer), why, more)
  const cannot = 'if the API moves, records may be rejected or retried one by one, although all should wait'
  return sureFinding(statusAndCode(answer), why, { ...more, differs: true, cannot })
}

export function judgeErrorBody(exchanges: readonly Exchange[]): Finding {
  const assumed = 'any: the code is found in the usual places'
  const refusals = exchanges
    .filter((exchange) => exchange.path.includes('/api/') && !isFailedTransaction(exchange))
    .flatMap(({ answer }) => (answer.kind === 'response' && isRefusal(answer) ? [answer] : []))
  const hasCode = ({ code }: Response) => isServiceCode(code)
  const kinds = [refusals.filter(hasCode), refusals.filter(hidesCode), refusals]
  const all = kinds.find((each) => each.length > 0) ?? []
  const [seen] = all
  if (seen === undefined) return unknownFinding('nothing was refused', { assumed })
  const shape = shapeOf(seen)
  const shapes = new Set(all.map(shapeOf))
  if (shapes.size > 1) return unknownFinding(`refusals have several shapes: ${[...shapes].join(', ')}`, { assumed })
  const certainty = certaintyOf(all.length)
  const shown = `${seen.status} ${seen.text.replace(/\s+/g, ' ').slice(0, 200)}`
  if (hidesCode(seen)) {
    const cannot =
      'the daemon does not find the code in this body: it judges E001, E002 and E003 by their HTTP status only'
    return createFinding(certainty, shape, shown, { assumed, differs: true, cannot })
  }
  const place = hasCode(seen)
    ? `the code is in ${placesOf(seen.json, seen.code ?? '')[0] ?? 'the text'}`
    : 'no code was seen'
  return createFinding(certainty, shape, `${place}: ${shown}`, { assumed })
}

/** A poll answered with status failed was not itself refused. */
const isFailedTransaction = (exchange: Exchange) =>
  exchange.method === 'GET' && /^failed$/i.test(transactionStatusIn(exchange) ?? '')

/** A code is in the body, and the daemon does not read it. */
const hidesCode = ({ text, code }: Response) => /\bE00[123]\b/.test(text) && !isServiceCode(code)

function shapeOf({ headers, json, text }: Response): string {
  if (text.trim() === '') return 'empty'
  if (/^\s*</.test(text)) return 'page'
  if (json === undefined) return 'text'
  if (/problem\+json/i.test(headers['content-type'] ?? ''))
    return fieldOf(json, 'code') === undefined && /\bE\d{3}$/.test(String(fieldOf(json, 'type')))
      ? 'problem type'
      : 'problem document'
  if (Array.isArray(json)) return 'list'
  if (typeof json !== 'object' || json === null) return 'bare value'
  if (Array.isArray(fieldOf(json, 'errors'))) return 'errors[]'
  if (typeof fieldOf(json, 'error') === 'object') return 'error.code'
  const field = ['errorCode', 'error_code', 'code', 'error', 'message'].find(
    (name) => fieldOf(json, name) !== undefined,
  )
  return field ?? `object: ${Object.keys(json).slice(0, 5).join(', ')}`
}

function placesOf(json: unknown, code: string, at = ''): string[] {
  if (typeof json === 'string') return json.trim().endsWith(code) ? [at || '(the whole)'] : []
  if (typeof json !== 'object' || json === null) return []
  return Object.entries(json).flatMap(([key, value]) =>
    placesOf(value, code, Array.isArray(json) ? `${at}[]` : at === '' ? key : `${at}.${key}`),
  )
}
