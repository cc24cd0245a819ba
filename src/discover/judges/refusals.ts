import { randomUUID } from 'node:crypto'
import { resources } from '../../resources.ts'
import {
  type AnsweredExchange,
  type Exchange,
  fieldOf,
  isRefusal,
  isSuccess,
  lineOf,
  nameOf,
  type Response,
  type Seen,
  statusIn,
  whyNoAnswer,
} from '../exchange.ts'
import { type Finding, found, likely, sure, unknown } from '../finding.ts'
import { NoAnswer, type Parts } from '../question.ts'
import { acceptedRecord, customerOf, follow, idIn, type Observed, observeRecord } from '../testRecord.ts'

/** Asks twice, as two answers that agree are sure. @throws {NoAnswer} if they contradict each other */
export async function getTwice(parts: Parts, path: () => string): Promise<AnsweredExchange> {
  const [first, second] = [await parts.get(path()), await parts.get(path())]
  if (nameOf(first.answer) === nameOf(second.answer)) return first
  throw new NoAnswer(`two such questions were answered differently: ${lineOf(first.answer)}; ${lineOf(second.answer)}`)
}

/** In the form of the service's own ids if a record was taken, because a lost transaction has one of those. */
export async function askUnknownId(parts: Parts): Promise<Finding> {
  const other = await getTwice(parts, () => `${resources.data.path}/${randomUUID()}`)
  const finding = judgeUnknownId(other.answer, 'status_unknown')
  if (customerOf(parts.given) === '') return finding
  const id = await acceptedRecord(parts).then(
    (record) => unlike(record.id),
    () => null,
  )
  if (id === null) return finding
  const { answer } = await getTwice(parts, () => `${resources.data.path}/${encodeURIComponent(id)}`)
  const alike = judgeUnknownId(answer, 'status_unknown')
  return nameOf(answer) === nameOf(other.answer) ? alike : { ...alike, contract: {} }
}

/**
 * An id of the same form that the service has not given: another uuid, or the same with nines for its digits. Pure.
 *
 * @returns null if the id has no digit
 */
export function unlike(id: string): string | null {
  if (/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(id)) return randomUUID()
  return /\d/.test(id) ? id.replaceAll(/\d/g, '9') : null
}

/** Only a 404 tells the daemon that a transaction is gone. Pure. @param pair its name in the contract */
export function judgeUnknownId(seen: Seen, pair: 'status_unknown' | 'order_status_unknown'): Finding {
  const assumed = '404'
  const unanswered = whyNoAnswer(seen)
  if (seen.kind === 'no-answer' || unanswered !== null) return unknown(unanswered ?? lineOf(seen), { assumed })
  const contract = { [pair]: String(seen.status) }
  if (seen.status === 404) return sure(nameOf(seen), `${lineOf(seen)}, twice`, { assumed, contract })
  return sure(nameOf(seen), `${lineOf(seen)}, twice`, {
    assumed,
    differs: true,
    contract,
    cannot: isSuccess(seen)
      ? 'a transaction that the service has lost looks as if it were there: it is asked for until a person looks (outboxd_problem stuck)'
      : 'a transaction that the service has lost is asked for, less and less often, and never called failed: after STUCK_AFTER_SECONDS it is a problem for a person',
  })
}

export async function askUnknownCustomer(parts: Parts): Promise<Finding> {
  const observed = await observeRecord(parts, { customerId: parts.given.unknownCustomer ?? '' })
  const id = idIn(observed.exchange)
  if (!observed.taken || id === null) return judgeUnknownCustomer(observed)
  const [polls = []] = await follow(parts, [`${resources.data.path}/${encodeURIComponent(id)}`], [1_000, 4_000, 15_000])
  const last = polls.at(-1) ?? observed.exchange
  const why = `two records were taken (${lineOf(observed.exchange.answer)}); then ${lineOf(last.answer)}`
  const isFailed = /^failed$/i.test(statusIn(last) ?? '')
  return likely(isFailed ? `taken, then failed ${last.answer.code ?? 'without a code'}` : 'taken', why, {
    assumed: '400 E001',
    differs: true,
    advice: isFailed
      ? []
      : [
          'the service may not know that this customer is unknown, or not say so: ask its operator about --unknown-customer',
        ],
  })
}

/** A record for a known customer was taken before and after, so that only the customer can be the reason. Pure. */
export function judgeUnknownCustomer({ name, exchange }: Pick<Observed, 'name' | 'exchange'>): Finding {
  const assumed = '400 E001'
  const { status, code } = exchange.answer
  const hasCode = code === 'E001'
  const contract: Finding['contract'] = hasCode ? { e001: String(status) } : {}
  const why = `${lineOf(exchange.answer)}, twice, and the same for a known customer was taken`
  if (hasCode && status === 400) return sure(name, why, { assumed, contract })
  return sure(name, why, { assumed, differs: true, contract, cannot: explainRefusal(status, hasCode) })
}

function explainRefusal(status: number, hasCode: boolean): string | null {
  if (hasCode && status >= 400 && status < 500) return null
  if ([404, 405, 410].includes(status))
    return `${status} without E001 means to the daemon that the service is not there: all sending pauses, and the record is rejected after its third try`
  if (status >= 400 && status < 500)
    return 'the record is rejected, but without its code: list --code E001 does not find it'
  return `the record is retried or held in doubt, as after any ${status}`
}

/** If the API is not there, the daemon has to notice that it is not the record’s fault. */
export async function askUnknownPath(parts: Parts): Promise<Finding> {
  const { answer } = await getTwice(parts, () => `/api/v1/${randomUUID()}`)
  const assumed = '404, 405 or 410'
  const contract = { unknown_path: String(answer.status) }
  const why = `${lineOf(answer)}, twice`
  if ([404, 405, 410].includes(answer.status)) return sure(nameOf(answer), why, { assumed, contract })
  return sure(nameOf(answer), why, {
    assumed,
    differs: true,
    contract,
    cannot: 'should the API move, records may be rejected or held back one by one, although all should wait',
  })
}

/** Of all refusals so far the shape that says most, which is that of one with a code. Pure. */
export function judgeErrorBody(exchanges: readonly Exchange[]): Finding {
  const assumed = 'any: the code is found in the usual places'
  const refusals = exchanges
    .filter(({ path }) => path.includes('/api/'))
    .flatMap(({ answer }) => (answer.kind === 'response' && isRefusal(answer) ? [answer] : []))
  const hasCode = ({ code }: Response) => code !== null && serviceCode.test(code)
  const kinds = [refusals.filter(hasCode), refusals.filter(hidesCode), refusals]
  const all = kinds.find((each) => each.length > 0) ?? []
  const [seen] = all
  if (seen === undefined) return unknown('nothing was refused', { assumed })
  const shapes = new Set(all.map(shapeOf))
  const shape = shapeOf(seen)
  if (shapes.size > 1) return unknown(`refusals have several shapes: ${[...shapes].join(', ')}`, { assumed })
  const certainty = all.length > 1 ? 'sure' : 'likely'
  const shown = `${seen.status} ${seen.text.replace(/\s+/g, ' ').slice(0, 200)}`
  if (hidesCode(seen))
    return found(certainty, shape, shown, {
      assumed,
      differs: true,
      cannot:
        'the daemon does not find the code in this body: E001, E002 and E003 are judged by their HTTP status only',
    })
  const place = hasCode(seen)
    ? `the code stands in ${placeOf(seen.json, seen.code ?? '')}`
    : 'no error with a code was seen'
  return found(certainty, shape, `${place}: ${shown}`, { assumed })
}

const serviceCode = /^E\d{3}$/

/** A code stands in it, and the daemon does not read it. */
const hidesCode = ({ text, code }: Response) => /\bE00[123]\b/.test(text) && (code === null || !serviceCode.test(code))

/** In a word. Pure. */
export function shapeOf({ headers, json, text }: Pick<Response, 'headers' | 'json' | 'text'>): string {
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
  for (const name of ['errorCode', 'error_code', 'code', 'error', 'message'])
    if (fieldOf(json, name) !== undefined) return name
  return `object: ${Object.keys(json).slice(0, 5).join(', ')}`
}

/** Where a code stands, as a path. */
const placeOf = (json: unknown, code: string): string => placesOf(json, code, '')[0] ?? 'the text'

function placesOf(json: unknown, code: string, at: string): string[] {
  if (typeof json === 'string') return json.trim().endsWith(code) ? [at || '(the whole)'] : []
  if (typeof json !== 'object' || json === null) return []
  return Object.entries(json).flatMap(([key, value]) =>
    placesOf(value, code, Array.isArray(json) ? `${at}[]` : at === '' ? key : `${at}.${key}`),
  )
}
