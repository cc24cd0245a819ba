import { randomUUID } from 'node:crypto'
import { resources } from '../../resources.ts'
import { submittedId } from '../../service/responses.ts'
import {
  type AnsweredExchange,
  type Exchange,
  endedAtMs,
  fieldOf,
  isRefusal,
  isSuccess,
  jsonOf,
  lineOf,
} from '../exchange.ts'
import { CannotAsk, type Parts, type Sample } from '../question.ts'
import { firstCallSample } from './calls.ts'

/** Where the client's fields of docs/interface.md, 2.5, stand in a request, and how the amount is written. */
export interface RecordShape {
  place: 'data' | 'beside' | 'nowhere'
  amount: 'number' | 'text'
}

/** In the order in which they are tried: the first is how mappings/data.yaml sends them. */
export const shapes: readonly RecordShape[] = [
  { place: 'data', amount: 'number' },
  { place: 'data', amount: 'text' },
  { place: 'nowhere', amount: 'number' },
  { place: 'beside', amount: 'number' },
  { place: 'beside', amount: 'text' },
]

export interface RecordChange {
  customerId?: string
  /** The client's fields in place of those of a usual record, wherever they stand. */
  mapped?: Readonly<Record<string, unknown>>
  /** Fields of data in place of its own, or beside them. */
  data?: Readonly<Record<string, unknown>>
  /** Fields beside data. */
  beside?: Readonly<Record<string, unknown>>
}

/** What tells one test record from another, and from the client's own, to people at the service. */
export const noteOf = ({ run }: Pick<Parts, 'run'>, what: string): string => `outboxd discover ${run}: ${what}`

/** The body of a test record (docs/interface.md, 2.2) as JSON text. */
export function testRecord(shape: RecordShape, customer: string, note: string, change: RecordChange = {}): string {
  const customerId = change.customerId ?? customer
  const mapped = { ...mappedFields(shape, customerId), ...change.mapped }
  const standing = (place: RecordShape['place']) => (shape.place === place ? mapped : {})
  return JSON.stringify({
    customerId,
    data: { field1: 'value1', field2: note, ...standing('data'), ...change.data },
    ...standing('beside'),
    ...change.beside,
  })
}

function mappedFields({ amount }: RecordShape, customerId: string): Record<string, unknown> {
  return { customer_id: customerId, order_date: '2026-01-02T03:04:05Z', total_amount: amountAs(amount, '12.30') }
}

/** An amount with its digits. */
export const amountAs = (form: RecordShape['amount'], digits: string): unknown =>
  form === 'text' ? digits : JSON.rawJSON(digits)

/** How the service took a test record, or did not. */
export interface SubmissionTaken {
  /** The shape in which the service took it; null where it took none. */
  shape: RecordShape | null
  /** All that were tried; the last is the one that was taken. */
  tried: readonly AnsweredExchange[]
}

/** A test record, in the shape in which the service takes it (docs/interface.md, 4.2). */
export const submissionSample: Sample<SubmissionTaken> = {
  name: 'a test record',
  requestsMax: shapes.length,
  recordsMax: 1,
  samples: [firstCallSample],
  async take(parts) {
    const tried: AnsweredExchange[] = []
    for (const shape of shapes) {
      const exchange = await submit(parts, shape, 'a record')
      tried.push(exchange)
      if (isSuccess(exchange.answer)) return { shape, tried }
      // Another shape helps only where the shape is what was refused.
      if (![400, 422].includes(exchange.answer.status)) break
      if (exchange.answer.code === 'E001') break
    }
    return { shape: null, tried }
  },
}

/** Sends a test record. */
export function submit(
  parts: Parts,
  shape: RecordShape,
  what: string,
  { headers = {}, ...change }: RecordChange & { headers?: Readonly<Record<string, string>> } = {},
): Promise<AnsweredExchange> {
  const body = testRecord(shape, parts.given.customer ?? '', noteOf(parts, what), change)
  return parts.post(resources.data.path, body, { headers })
}

/** The id that an answer gives a test record, as the daemon would read it. */
export const idIn = ({ answer }: Exchange): string | null =>
  isSuccess(answer) ? submittedId('data', jsonOf(answer)) : null

/** The shape in which records are taken. @throws CannotAsk where none is */
export async function acceptedShape(parts: Parts): Promise<RecordShape> {
  const { shape, tried } = await parts.sample(submissionSample)
  if (shape === null) throw new CannotAsk(`no test record was taken: ${lineOf(lastOf(tried).answer)}`)
  return shape
}

/** The record that was taken. @throws CannotAsk where none is, or where it has no id */
export async function acceptedRecord(parts: Parts): Promise<{ exchange: AnsweredExchange; id: string }> {
  await acceptedShape(parts)
  const exchange = lastOf((await parts.sample(submissionSample)).tried)
  const id = idIn(exchange)
  if (id === null)
    throw new CannotAsk(`the answer to a test record has no ${resources.data.idField}: ${lineOf(exchange.answer)}`)
  return { exchange, id }
}

function lastOf(tried: readonly AnsweredExchange[]): AnsweredExchange {
  const last = tried.at(-1)
  if (last === undefined) throw new CannotAsk('no test record was sent')
  return last
}

/** What was answered to the questions for one transaction, from the first to its end. */
export interface Life {
  acceptedAtMs: number
  polls: readonly Exchange[]
}

/** When to ask again: often at first, as the first states may be short. A minute in all. */
const waitsMs = [0, 300, 700, 2_000, 4_000, 8_000, 15_000, 30_000]

/** A transaction followed to its end, or for a minute (docs/interface.md, 3.1). */
export const lifeSample: Sample<Life> = {
  name: 'the life of a transaction',
  requestsMax: waitsMs.length,
  recordsMax: 0,
  samples: [submissionSample],
  async take(parts) {
    const { exchange, id } = await acceptedRecord(parts)
    const polls = await follow(parts, `${resources.data.path}/${encodeURIComponent(id)}`, waitsMs)
    return { acceptedAtMs: endedAtMs(exchange), polls }
  },
}

/** Asks for it until its status is one of an end. */
export async function follow(parts: Parts, path: string, waits: readonly number[]): Promise<Exchange[]> {
  const polls: Exchange[] = []
  for (const waitMs of waits) {
    await parts.waitMs(waitMs)
    const poll = await parts.getWhatever(path)
    polls.push(poll)
    if (soundsEnded.test(statusIn(poll) ?? '')) break
  }
  return polls
}

/** Words of an end, also such that the daemon does not know: nobody waits for more after one. */
const soundsEnded =
  /^(completed?|done|finished|closed|processed|success|succeeded|failed|failure|error|rejected|cancell?ed|shipped|delivered)$/i

/** The status that an answer says, as it is written; null where it says none. */
export function statusIn({ answer }: Exchange): string | null {
  const status = isSuccess(answer) ? fieldOf(jsonOf(answer), 'status') : undefined
  return typeof status === 'string' ? status : null
}

export const hasEnded = (status: string | null): boolean =>
  status !== null && /^(completed|failed)$/i.test(status.trim())

/** Where the service reads the client's fields of docs/interface.md, 2.5. */
export interface Mapped {
  /** The shape in which a record was taken first. */
  taken: RecordShape
  /** A record whose amount in data is none; null where none was sent. */
  wrongInData: AnsweredExchange | null
  /** A record whose amount beside data is none. */
  wrongBeside: AnsweredExchange | null
  /** A record without these fields. */
  without: AnsweredExchange | null
}

/** A field that nobody looks at is taken whatever it holds: so what is wrong on purpose tells where it is read. */
export const mappedSample: Sample<Mapped> = {
  name: 'records whose amount is none',
  requestsMax: 3,
  recordsMax: 3,
  samples: [submissionSample],
  async take(parts) {
    const taken = await acceptedShape(parts)
    if (taken.place === 'nowhere') return { taken, wrongInData: null, wrongBeside: null, without: null }
    const wrong = (place: RecordShape['place']) =>
      submit(parts, { ...taken, place }, `a wrong amount in ${place}`, { mapped: { total_amount: 'no amount' } })
    const wrongInData = taken.place === 'data' ? await wrong('data') : null
    const isReadInData = wrongInData !== null && isRefusal(wrongInData.answer)
    const wrongBeside = isReadInData ? null : await wrong('beside')
    const without = await submit(parts, { ...taken, place: 'nowhere' }, 'without the mapped fields')
    return { taken, wrongInData, wrongBeside, without }
  },
}

/** Where these fields are read; null where nowhere. Pure. */
export function placeRead({ wrongInData, wrongBeside }: Mapped): 'data' | 'beside' | null {
  if (wrongInData !== null && isRefusal(wrongInData.answer)) return 'data'
  return wrongBeside !== null && isRefusal(wrongBeside.answer) ? 'beside' : null
}

/** One record with an amount as a number, and one with the same as text, where amounts are read. */
export interface Amounts {
  place: 'data' | 'beside'
  number: AnsweredExchange
  text: AnsweredExchange
}

export const amountsSample: Sample<Amounts> = {
  name: 'an amount as a number and as text',
  requestsMax: 2,
  recordsMax: 2,
  samples: [mappedSample],
  async take(parts) {
    const place = placeRead(await parts.sample(mappedSample))
    if (place === null) throw new CannotAsk('the service looks at none of customer_id, order_date and total_amount')
    const as = (amount: RecordShape['amount']) => submit(parts, { place, amount }, `an amount as ${amount}`)
    return { place, number: await as('number'), text: await as('text') }
  },
}

/** The shape in which these fields are read and taken. @throws CannotAsk where there is none */
export async function readShape(parts: Parts): Promise<RecordShape> {
  const { place, number, text } = await parts.sample(amountsSample)
  if (isSuccess(number.answer)) return { place, amount: 'number' }
  if (isSuccess(text.answer)) return { place, amount: 'text' }
  throw new CannotAsk('neither an amount as a number nor one as text was taken')
}

export const amountIn = ({ amount }: RecordShape, digits: string) => ({
  mapped: { total_amount: amountAs(amount, digits) },
})

/** One request twice under one key, and once more under another. */
export interface Repeats {
  /** The header in which the keys were sent. */
  header: string
  first: AnsweredExchange
  again: AnsweredExchange
  otherKey: AnsweredExchange
}

/** Where services look for a key, beside the header of the draft. */
const otherHeaders = ['X-Idempotency-Key', 'X-Request-ID', 'Request-Id'] as const

/**
 * Under the configured header, as the daemon sends it: the uuid in quotes. Where nothing comes of that, under all the others at
 * once, and where something does, under one after the other.
 */
export const repeatsSample: Sample<Repeats> = {
  name: 'a record twice under one idempotency key',
  requestsMax: 3 + 2 + (otherHeaders.length - 1) + 1,
  recordsMax: 3 + 2 + (otherHeaders.length - 1) + 1,
  samples: [submissionSample],
  async take(parts) {
    const usual = parts.config.service.idempotencyHeader
    const [one, other] = [randomUUID(), randomUUID()]
    const first = await under(parts, [usual], one)
    const again = await under(parts, [usual], one)
    const otherKey = await under(parts, [usual], other)
    const asConfigured = { header: usual, first, again, otherKey }
    if (recognised(first, again) !== 'no') return asConfigured
    return (
      (await underOthers(
        parts,
        otherHeaders.filter((each) => each.toLowerCase() !== usual.toLowerCase()),
      )) ?? asConfigured
    )
  },
}

/** @returns null where none of these headers is looked at */
async function underOthers(parts: Parts, headers: readonly string[]): Promise<Repeats | null> {
  const key = randomUUID()
  const first = await under(parts, headers, key)
  const again = await under(parts, headers, key)
  if (recognised(first, again) === 'no' || idIn(first) === null) return null
  let header = headers.at(-1) ?? ''
  for (const each of headers.slice(0, -1)) {
    if (recognised(first, await under(parts, [each], key)) === 'no') continue
    header = each
    break
  }
  return { header, first, again, otherKey: await under(parts, [header], randomUUID()) }
}

async function under(parts: Parts, names: readonly string[], key: string): Promise<AnsweredExchange> {
  const headers = Object.fromEntries(names.map((name) => [name.toLowerCase(), `"${key}"`]))
  return submit(parts, await acceptedShape(parts), 'one record, repeated', { headers })
}

/** Whether a second request was known for the first; null where its answer says neither. Pure. */
export function recognised(
  first: AnsweredExchange,
  second: AnsweredExchange,
): 'same id' | 'E002' | 'other' | 'no' | null {
  const { answer } = second
  if (isSuccess(answer)) return idIn(second) === null ? null : idIn(second) === idIn(first) ? 'same id' : 'no'
  if (answer.code === 'E002') return 'E002'
  return answer.status >= 400 && ![401, 403, 429].includes(answer.status) ? 'other' : null
}

/** A record that brings its own transactionId; where the service took that, another record with the same. */
export interface OwnIds {
  id: string
  first: AnsweredExchange
  again: AnsweredExchange | null
}

export const ownIdsSample: Sample<OwnIds> = {
  name: 'a record with an id of its own',
  requestsMax: 2,
  recordsMax: 2,
  samples: [submissionSample],
  async take(parts) {
    const shape = await acceptedShape(parts)
    const id = `outboxd-${parts.run}`
    const withId = (what: string) => submit(parts, shape, what, { beside: { [resources.data.idField]: id } })
    const first = await withId('a record that brings its id')
    return { id, first, again: idIn(first) === id ? await withId('another record of the same id') : null }
  },
}

/** Records for customers whose ids are as long as may be, by different ways to count, and too long by all. */
export interface Lengths {
  ten: AnsweredExchange
  eleven: AnsweredExchange
  /** Ten characters that have two bytes each. */
  bytes: AnsweredExchange
  /** Ten characters that are two halves each where a language counts as JavaScript does. */
  halves: AnsweredExchange
}

export const lengthsSample: Sample<Lengths> = {
  name: 'customer ids of 10 and 11 characters',
  requestsMax: 4,
  recordsMax: 4,
  samples: [submissionSample],
  async take(parts) {
    const shape = await acceptedShape(parts)
    const customer = parts.given.customer ?? ''
    const withId = (customerId: string) => submit(parts, shape, 'a customer id at the limit', { customerId })
    return {
      ten: await withId(customer.padEnd(10, '0').slice(0, 10)),
      eleven: await withId(customer.padEnd(11, '0').slice(0, 11)),
      bytes: await withId('é'.repeat(10)),
      halves: await withId('𝒳'.repeat(10)),
    }
  },
}
