import { randomUUID } from 'node:crypto'
import { resources } from '../../resources.ts'
import {
  type Exchange,
  fieldOf,
  isRefusal,
  isSuccess,
  lineOf,
  nameOf,
  type Response,
  type Seen,
  whyNoAnswer,
} from '../exchange.ts'
import { type Finding, notAsked, sure, unknown } from '../finding.ts'
import type { Parts } from '../question.ts'
import { firstCallSample } from '../samples/calls.ts'
import {
  acceptedShape,
  follow,
  idIn,
  lengthsSample,
  ownIdsSample,
  repeatsSample,
  statusIn,
  submit,
} from '../samples/records.ts'

/** 404 alone tells the daemon that a transaction is gone. Pure. @param pair its name in the contract */
export function judgeUnknownId(seen: Seen, pair: 'status_unknown' | 'order_status_unknown'): Finding {
  const assumed = '404'
  const unanswered = whyNoAnswer(seen)
  if (seen.kind === 'no-answer' || unanswered !== null) return unknown(unanswered ?? lineOf(seen), { assumed })
  const contract = { [pair]: String(seen.status) }
  const found = nameOf(seen)
  if (seen.status === 404) return sure(found, lineOf(seen), { assumed, contract })
  return sure(found, lineOf(seen), {
    assumed,
    differs: true,
    contract,
    cannot: isSuccess(seen)
      ? 'a transaction that the service has lost looks as if it were there: it is asked for until somebody looks (outboxd_problem stuck)'
      : `a transaction that the service has lost is asked for, less and less often, and never called failed: after STUCK_AFTER_SECONDS it is a problem for a person`,
  })
}

export async function askE002(parts: Parts): Promise<Finding> {
  const { again, otherKey } = await parts.sample(repeatsSample)
  const ids = await parts.sample(ownIdsSample)
  return judgeE002([again, otherKey, ids.again].filter((each) => each !== null))
}

/** Pure. */
export function judgeE002(repeated: readonly Exchange[]): Finding {
  const assumed = 'any: its code is what counts'
  const seen = repeated
    .map(({ answer }) => answer)
    .find((answer) => answer.kind === 'response' && answer.code === 'E002')
  if (seen?.kind !== 'response') return notAsked('nothing that was sent twice was called a duplicate', { assumed })
  return sure(String(seen.status), lineOf(seen), { assumed, contract: { e002: String(seen.status) } })
}

export async function askE003(): Promise<Finding> {
  return notAsked(
    'nobody can bring it about without taking the service down: ask its operator, or see it when it comes',
    {
      assumed: 'any: its code is what counts, or 503 without one',
    },
  )
}

export async function askUnknownCustomer(parts: Parts): Promise<Finding> {
  const shape = await acceptedShape(parts)
  const customerId = parts.given.unknownCustomer ?? ''
  const submitted = await submit(parts, shape, 'an unknown customer', { customerId })
  const id = idIn(submitted)
  if (id === null) return judgeUnknownCustomer(submitted.answer)
  const polls = await follow(parts, `${resources.data.path}/${encodeURIComponent(id)}`, [1_000, 4_000, 15_000])
  const last = polls.at(-1)
  return judgeTakenCustomer(
    submitted.answer,
    last === undefined ? null : statusIn(last),
    last?.answer ?? submitted.answer,
  )
}

/** Pure. */
export function judgeUnknownCustomer(seen: Response): Finding {
  const assumed = '400 E001'
  const hasCode = seen.code === 'E001'
  const contract: Finding['contract'] = hasCode ? { e001: String(seen.status) } : {}
  const found = nameOf(seen)
  if (hasCode && seen.status === 400) return sure(found, lineOf(seen), { assumed, contract })
  return sure(found, lineOf(seen), { assumed, differs: true, contract, cannot: explainRefusal(seen.status, hasCode) })
}

function explainRefusal(status: number, hasCode: boolean): string | null {
  if (hasCode && status >= 400 && status < 500) return null
  if ([404, 405, 410].includes(status))
    return `${status} without E001 is taken for a service that is not there: everybody pauses, and the record is rejected after its third try`
  if (status >= 400 && status < 500)
    return 'the record is rejected, but without its code: list --code E001 does not find it'
  return `the record is retried or held in doubt, as after any ${status}`
}

/** It was taken, and asked for. Pure. */
export function judgeTakenCustomer(submitted: Seen, status: string | null, last: Seen): Finding {
  const why = `the record was taken (${lineOf(submitted)}); then ${lineOf(last)}`
  const assumed = '400 E001'
  if (last.kind === 'response' && /^failed$/i.test(status ?? '')) {
    const code = last.code ?? 'without a code'
    return sure(`taken, then failed ${code}`, why, { assumed, differs: true })
  }
  return sure('taken', why, {
    assumed,
    differs: true,
    advice: [
      'the service may not know that this customer is unknown, or not say so: ask whether --unknown-customer was one',
    ],
  })
}

export async function askUnknownPath(parts: Parts): Promise<Finding> {
  return judgeUnknownPath((await parts.get(`/api/v1/${randomUUID()}`)).answer)
}

/** Where the API is not there, the daemon has to notice that it is not the record’s fault. Pure. */
export function judgeUnknownPath(seen: Response): Finding {
  const assumed = '404, 405 or 410'
  const contract = { unknown_path: String(seen.status) }
  if ([404, 405, 410].includes(seen.status)) return sure(nameOf(seen), lineOf(seen), { assumed, contract })
  return sure(nameOf(seen), lineOf(seen), {
    assumed,
    differs: true,
    contract,
    cannot: 'should the API move, records may be rejected, or held back, one by one, where everybody should wait',
  })
}

export async function askOtherMethod(parts: Parts): Promise<Finding> {
  const { answer } = await parts.get(resources.data.path)
  const allow = answer.headers.allow === undefined ? '' : `; Allow: ${answer.headers.allow}`
  const why = `GET ${resources.data.path}: ${lineOf(answer)}${allow}`
  return sure(nameOf(answer), why, { contract: { other_method: String(answer.status) } })
}

export async function askOddId(parts: Parts): Promise<Finding> {
  const known = (await parts.sample(firstCallSample)).first
  const path = `${resources.data.path}/${encodeURIComponent(`odd/id %41 ü-${parts.run}`)}`
  return judgeOddId((await parts.get(path)).answer, known.answer)
}

/** @param usual the answer to an unknown id without such characters. Pure */
export function judgeOddId(seen: Response, usual: Seen): Finding {
  const found = nameOf(seen)
  const unusual = whyNoAnswer(usual)
  if (unusual !== null) return unknown(`${lineOf(seen)}; an id without such characters: ${unusual}`)
  if (found === nameOf(usual)) return sure(found, `${lineOf(seen)}: as any unknown id`)
  const more =
    'ids with such characters do not get through to where ids are looked up; harmless unless the service gives some, or a mapping chooses them'
  return sure(found, `${lineOf(seen)}; ${isSuccess(seen) ? 'a success for an id that nobody gave' : more}`)
}

export async function askCustomerLength(parts: Parts): Promise<Finding> {
  const { ten, eleven, bytes, halves } = await parts.sample(lengthsSample)
  return judgeCustomerLength({ ten: ten.answer, eleven: eleven.answer, bytes: bytes.answer, halves: halves.answer })
}

export type LengthAnswers = Record<'ten' | 'eleven' | 'bytes' | 'halves', Response>

/** Pure. */
export function judgeCustomerLength({ ten, eleven, bytes, halves }: LengthAnswers): Finding {
  const assumed = 'characters, as `maxLength` of a mapping counts'
  const why = `10: ${nameOf(ten)}, 11: ${nameOf(eleven)}, 10 of two bytes: ${nameOf(bytes)}, 10 of two halves: ${nameOf(halves)}`
  const fits = (seen: Response) => readLength(seen, ten)
  if (fits(ten) !== 'fits') return unknown(`10 characters were answered ${lineOf(ten)}`, { assumed })
  if (fits(eleven) === 'unclear') return unknown(`${why}: that does not tell the length from the customer`, { assumed })
  if (fits(eleven) === 'fits')
    return sure('not limited', why, {
      assumed,
      differs: true,
      advice: ['the service takes longer ids than the interface says: keep to 10 all the same'],
    })
  if (fits(bytes) === 'too long')
    return sure('bytes', why, {
      assumed,
      differs: true,
      cannot:
        'a mapping counts characters: a customerId with letters beyond ASCII may be refused by the service though it maps',
    })
  if (fits(halves) === 'too long')
    return sure('UTF-16 units', why, {
      assumed,
      differs: true,
      cannot:
        'a mapping counts characters: a customerId with emoji or the like may be refused by the service though it maps',
    })
  return fits(bytes) === 'fits' && fits(halves) === 'fits'
    ? sure('characters', why, { assumed })
    : unknown(why, { assumed })
}

/** That a customer is unknown is said of one whose id fits, unless one whose id fits is known. */
function readLength(seen: Response, ten: Response): 'fits' | 'too long' | 'unclear' {
  if (isSuccess(seen)) return 'fits'
  if (seen.status >= 500) return 'unclear'
  if (seen.code !== 'E001') return 'too long'
  if (seen === ten) return 'fits'
  return isSuccess(ten) ? 'too long' : 'unclear'
}

export async function askLongCustomer(parts: Parts): Promise<Finding> {
  const { answer } = (await parts.sample(lengthsSample)).eleven
  const assumed = '400, with or without E001'
  if (isSuccess(answer)) return sure('taken', lineOf(answer), { assumed, differs: true })
  return sure(nameOf(answer), `${lineOf(answer)}: the record would be rejected`, {
    assumed,
    differs: answer.status !== 400,
  })
}

export async function askField1(parts: Parts): Promise<Finding> {
  const shape = await acceptedShape(parts)
  const { answer } = await submit(parts, shape, 'another field1', { data: { field1: 'value4' } })
  const assumed = '400'
  if (isSuccess(answer)) return sure('taken', lineOf(answer), { assumed, differs: true })
  return sure(nameOf(answer), lineOf(answer), { assumed, differs: answer.status !== 400 })
}

export async function askField2(parts: Parts): Promise<Finding> {
  const shape = await acceptedShape(parts)
  const withText = async (text: string) => (await submit(parts, shape, text, { data: { field2: text } })).answer
  return judgeField2(await withText(''), await withText(`outboxd discover ${parts.run} `.padEnd(1_000, 'x')))
}

/** Pure. */
export function judgeField2(empty: Response, long: Response): Finding {
  const assumed = 'any text'
  const limits = [isSuccess(empty) ? null : 'not empty', isSuccess(long) ? null : 'below 1,000 characters'].filter(
    (each) => each !== null,
  )
  const why = `empty: ${lineOf(empty)}; 1,000 characters: ${lineOf(long)}`
  if (limits.length === 0) return sure('any text', why, { assumed })
  const advice = [
    'say so in the mapping (required, maxLength), so that such a record is rejected before it costs a request',
  ]
  return sure(limits.join(', '), why, { assumed, differs: true, advice })
}

/** Of all refusals so far the one that says most, which is one with a code. Pure. */
export function judgeErrorBody(exchanges: readonly Exchange[]): Finding {
  const assumed = 'any: the code is found in the usual places'
  const refusals = exchanges
    .filter(({ path }) => path.includes('/api/'))
    .flatMap(({ answer }) => (answer.kind === 'response' && isRefusal(answer) ? [answer] : []))
  const seen =
    refusals.find(({ code }) => code !== null && serviceCode.test(code)) ?? refusals.find(hidesCode) ?? refusals[0]
  if (seen === undefined) return unknown('nothing was refused', { assumed })
  const shape = shapeOf(seen)
  if (hidesCode(seen))
    return sure(shape, `${seen.status} ${seen.text.slice(0, 200)}`, {
      assumed,
      differs: true,
      cannot:
        'the daemon does not find the code in this body: E001, E002 and E003 are judged by their HTTP status alone',
    })
  const place =
    seen.code !== null && serviceCode.test(seen.code)
      ? `the code stands in ${placeOf(seen.json, seen.code)}`
      : 'no error with a code was seen'
  return sure(shape, `${place}: ${seen.status} ${seen.text.replace(/\s+/g, ' ').slice(0, 200)}`, { assumed })
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
function placeOf(json: unknown, code: string): string {
  const places = placesOf(json, code, '')
  return places[0] ?? 'the text'
}

function placesOf(json: unknown, code: string, at: string): string[] {
  if (typeof json === 'string') return json.trim().endsWith(code) ? [at || '(the whole)'] : []
  if (typeof json !== 'object' || json === null) return []
  return Object.entries(json).flatMap(([key, value]) =>
    placesOf(value, code, Array.isArray(json) ? `${at}[]` : at === '' ? key : `${at}.${key}`),
  )
}
