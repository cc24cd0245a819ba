import { randomUUID } from 'node:crypto'
import { type Resource, resources } from '../resources.ts'
import { keyHeader } from '../service/client.ts'
import { textOf } from '../service/readJson.ts'
import { judgeTaken, submittedId } from '../service/responses.ts'
import { type AnsweredExchange, fieldOf, isObject, isSuccess, jsonOf, lineOf, nameOf, type Seen } from './exchange.ts'
import { addressSample } from './firstCall.ts'
import { type Body, CannotAsk, type Given, type Headers, NoAnswer, type Parts, type Sample } from './question.ts'

/**
 * The test record, and what tells it from the record that the service takes.
 *
 * All test records have fields of the same length, of plain letters and digits: a rule on one field must not answer a question
 * about another. The control is the record in the shape that was accepted; each question changes one thing of it.
 */

/** Where the client's fields of docs/reference/interface.md, 2.5, stand, how the amount is written, and what else a record carries. */
export interface RecordShape {
  place: 'data' | 'beside' | 'nowhere'
  amount: 'number' | 'text'
  /** Whether the record brings its own transactionId, or the order its orderId. */
  ownId: boolean
  key: KeyShape
}

/** The headers in which the idempotency key is sent, and whether it stands in quotes. */
export interface KeyShape {
  headers: readonly string[]
  form: 'quoted' | 'bare'
}

/** One thing that a record does otherwise than the control. */
export interface RecordChange {
  customerId?: string
  /** In place of the client's fields, wherever they stand. */
  mapped?: Body
  /** Fields of `data`. */
  data?: Body
  /** Fields beside `data`. */
  beside?: Body
  shape?: Partial<RecordShape>
  /** The idempotency key; a new one without it. */
  key?: string
  /** The id that the record brings, if it brings one; a new one without it. */
  id?: string
}

/** Headers in which services look for a key, beside that of the draft. */
export const usualHeaders = ['Idempotency-Key', 'X-Idempotency-Key', 'X-Request-ID', 'Request-Id'] as const

const mappedNames = ['customer_id', 'order_date', 'total_amount'] as const
const ourMapped: Body = { customer_id: null, order_date: '2026-01-02T03:04:05Z', total_amount: JSON.rawJSON('12.30') }

/** An amount with its digits. */
export const amountAs = (form: RecordShape['amount'], digits: string): unknown =>
  form === 'text' ? digits : JSON.rawJSON(digits)

/** The parts of the record that is sent: the operator's own, or ours. */
interface Base {
  customer: string
  data: Body
  beside: Body
  mapped: Body
  /** As the record that was given has it. */
  place: RecordShape['place']
}

function baseOf({ given, run, nextNumber }: Pick<Parts, 'given' | 'run' | 'nextNumber'>): Base {
  if (given.record === null) {
    const field2 = `outboxd${run}${String(nextNumber()).padStart(4, '0')}`
    const data = { field1: 'value1', field2 }
    return { customer: given.customer ?? '', data, beside: {}, mapped: ourMapped, place: 'data' }
  }
  const { customerId, data, ...beside } = given.record
  const inner = isObject(data) ? data : {}
  const has = (body: Body) => mappedNames.some((name) => name in body)
  const place = has(inner) ? 'data' : has(beside) ? 'beside' : 'nowhere'
  const mapped = { ...ourMapped, ...only(place === 'beside' ? beside : inner) }
  return {
    customer: given.customer ?? textOf(customerId) ?? '',
    data: without(inner),
    beside: without(beside),
    mapped,
    place,
  }
}

const isMapped = (name: string) => (mappedNames as readonly string[]).includes(name)
const only = (body: Body): Body => Object.fromEntries(Object.entries(body).filter(([name]) => isMapped(name)))
const without = (body: Body): Body => Object.fromEntries(Object.entries(body).filter(([name]) => !isMapped(name)))

/** The bodies of --record by what they stand in for. */
export function givenBodies(bodies: readonly { resource: Resource; body: Body }[]): Pick<Given, 'record' | 'order'> {
  const bodyFor = (resource: Resource) => bodies.find((each) => each.resource === resource)?.body ?? null
  return { record: bodyFor('data'), order: bodyFor('orders') }
}

/** The customer for whom test records are; empty if none was named. */
export const customerOf = ({ customer, record }: Pick<Given, 'customer' | 'record'>): string =>
  customer ?? textOf(record?.customerId) ?? ''

/** The body of a record as JSON text (docs/reference/interface.md, 2.2). */
export function recordBody(
  parts: Pick<Parts, 'given' | 'run' | 'nextNumber'>,
  shape: RecordShape,
  change: RecordChange = {},
): string {
  const base = baseOf(parts)
  const customerId = change.customerId ?? base.customer
  const digits = textOf(base.mapped.total_amount) ?? '12.30'
  const mapped = {
    ...base.mapped,
    customer_id: customerId,
    total_amount: amountAs(shape.amount, digits),
    ...change.mapped,
  }
  const standing = (place: RecordShape['place']) => (shape.place === place ? mapped : {})
  const { [resources.data.idField]: _, ...beside } = base.beside
  return JSON.stringify({
    customerId,
    data: { ...base.data, ...standing('data'), ...change.data },
    ...beside,
    ...standing('beside'),
    ...(shape.ownId ? { [resources.data.idField]: change.id ?? randomUUID() } : {}),
    ...change.beside,
  })
}

/** The headers with the idempotency key, as the daemon would send it in this shape. */
export function keyHeaders({ headers, form }: KeyShape, key: string): Headers {
  return Object.assign(
    {},
    ...headers.map((idempotencyHeader) => keyHeader(key, { idempotencyHeader, idempotencyKeyForm: form })),
  )
}

/** Sends a record in the accepted shape, but for one change. */
export async function submit(parts: Parts, change: RecordChange = {}): Promise<AnsweredExchange> {
  return submitAs(parts, await acceptedShape(parts), change)
}

/**
 * Sends a record. After a 5xx the same request is sent again: if the answer is then E002 the record had arrived, which says
 * nothing of the change, and another record is sent.
 */
async function submitAs(parts: Parts, accepted: RecordShape, change: RecordChange): Promise<AnsweredExchange> {
  const shape = { ...accepted, ...change.shape }
  const send = () =>
    parts.post(resources.data.path, recordBody(parts, shape, change), keyHeaders(shape.key, change.key ?? randomUUID()))
  const exchange = await send()
  return arrivedBefore(parts, exchange) && change.key === undefined && change.id === undefined ? send() : exchange
}

/** Whether an exchange was refused as a repetition of the one before it, which met a 5xx or no answer. */
export function arrivedBefore(parts: Pick<Parts, 'exchanges'>, exchange: AnsweredExchange): boolean {
  const all = parts.exchanges()
  const before = all[all.indexOf(exchange) - 1]
  const isTrouble = before?.answer.kind === 'no-answer' || (before?.answer.status ?? 0) >= 500
  return exchange.answer.code === 'E002' && isTrouble && before?.body === exchange.body
}

/** The id that an answer gives a record, as the daemon would read it. */
export const idIn = ({ answer }: { answer: Seen }): string | null =>
  isSuccess(answer) ? submittedId('data', jsonOf(answer)) : null

/** Whether the record was taken: a success that says nothing else. */
export const isTaken = ({ answer }: { answer: Seen }): boolean =>
  isSuccess(answer) && judgeTaken(jsonOf(answer), answer.kind === 'response' ? answer.code : null) !== 'no'

/** How the service took a record, or did not. */
export interface Control {
  /** The shape in which a record was accepted; null if none was. */
  shape: RecordShape | null
  /** All that were tried; the last is the one that was accepted. */
  tried: readonly { shape: RecordShape; exchange: AnsweredExchange }[]
}

const triedMax = 24

/** A record that the service takes (docs/reference/interface.md, 4.2): first as the daemon would send it, then otherwise. */
export const controlSample: Sample<Control> = {
  name: 'a test record',
  requestsMax: triedMax + usualHeaders.length,
  recordsMax: 2,
  samples: [addressSample],
  async take(parts) {
    const tried: { shape: RecordShape; exchange: AnsweredExchange }[] = []
    const attempt = async (shape: RecordShape) => {
      const exchange = await submitAs(parts, shape, {})
      tried.push({ shape, exchange })
      return isTaken(exchange)
    }
    const left = shapesFor(parts)
    while (tried.length < triedMax) {
      const shape = nextShape(left, tried)
      if (shape === undefined) break
      left.splice(left.indexOf(shape), 1)
      if (await attempt(shape)) return { shape: await withOneHeader(shape, attempt), tried }
      const { answer } = tried.at(-1)?.exchange ?? {}
      // Another shape helps only if the shape is what was refused.
      if (answer === undefined || ![400, 409, 415, 422, 428].includes(answer.status) || answer.code === 'E001') break
    }
    return { shape: null, tried }
  },
}

/** A key that was demanded and sent in all headers goes into the first of them that suffices. */
async function withOneHeader(
  shape: RecordShape,
  attempt: (shape: RecordShape) => Promise<boolean>,
): Promise<RecordShape> {
  if (shape.key.headers.length === 1) return shape
  for (const header of shape.key.headers) {
    const one = { ...shape, key: { ...shape.key, headers: [header] } }
    if (await attempt(one)) return one
  }
  return shape
}

function shapesFor(parts: Parts): RecordShape[] {
  const { idempotencyHeader, idempotencyKeyForm: form } = parts.config.service
  const other = form === 'bare' ? 'quoted' : 'bare'
  const keys: KeyShape[] = [
    { headers: [idempotencyHeader], form },
    { headers: [idempotencyHeader], form: other },
    { headers: usualHeaders, form: other },
    { headers: usualHeaders, form },
  ]
  const { place, mapped } = baseOf(parts)
  const amount: RecordShape['amount'] = typeof mapped.total_amount === 'string' ? 'text' : 'number'
  const otherAmount: RecordShape['amount'] = amount === 'text' ? 'number' : 'text'
  const places = [...new Set([place, 'data', 'beside', 'nowhere'] as const)]
  const bodies = places.flatMap((place) =>
    (place === 'nowhere' ? [amount] : [amount, otherAmount]).map(
      (amount): Pick<RecordShape, 'place' | 'amount'> => ({ place, amount }),
    ),
  )
  const brings = resources.data.idField in (parts.given.record ?? {})
  return keys.flatMap((key) => [brings, !brings].flatMap((ownId) => bodies.map((body) => ({ ...body, ownId, key }))))
}

/** What a refusal speaks of, by the part of the shape that answers it. */
const hints = {
  key: /idempot|x-request-id|request-id/i,
  ownId: /transaction_?id|order_?id/i,
  body: /customer_id|order_date|total_amount|amount|unrecognized|additional propert|unknown (field|propert)/i,
} as const
const partOf = {
  key: ({ key }: RecordShape) => JSON.stringify(key),
  ownId: ({ ownId }: RecordShape) => String(ownId),
  body: ({ place, amount }: RecordShape) => `${place} ${amount}`,
}
type Dimension = keyof typeof hints
const dimensions = Object.keys(hints) as Dimension[]

/** The shape to try next: few deviations from the first, and none whose part a refusal has named. Pure. */
function nextShape(left: readonly RecordShape[], tried: Control['tried']): RecordShape | undefined {
  const first = tried[0]?.shape ?? left[0]
  if (first === undefined) return undefined
  const refused = new Set(
    tried.flatMap(({ shape, exchange }) =>
      dimensions
        .filter((each) => hints[each].test(exchange.answer.text))
        .map((each) => `${each} ${partOf[each](shape)}`),
    ),
  )
  const score = (shape: RecordShape) =>
    dimensions.filter((each) => partOf[each](shape) !== partOf[each](first)).length +
    3 * dimensions.filter((each) => refused.has(`${each} ${partOf[each](shape)}`)).length
  return left.toSorted((a, b) => score(a) - score(b))[0]
}

/** The shape in which records are accepted. @throws CannotAsk if there is none */
export async function acceptedShape(parts: Parts): Promise<RecordShape> {
  const { shape, tried } = await parts.sample(controlSample)
  if (shape === null) throw new CannotAsk(explainRefused(tried.at(-1)?.exchange.answer))
  return shape
}

/** Says which field of the record is refused, and what to do. Pure. */
export function explainRefused(seen: Seen | undefined): string {
  if (seen === undefined) return 'no test record was sent'
  const text = seen.kind === 'response' ? seen.text : ''
  const field = ['field1', 'field2', 'customerId', ...mappedNames, 'items', 'orderId', 'transactionId'].find((name) =>
    text.includes(name),
  )
  const what =
    field === undefined ? 'the service refused the test record' : `the service refused ${field} of the test record`
  const hint =
    field === 'customerId' ? 'name a customer that it knows' : 'give a record that it takes with --record FILE'
  return `${what}: ${lineOf(seen)}. ${hint[0]?.toUpperCase()}${hint.slice(1)}`
}

/** The record that was accepted. @throws CannotAsk if none was, or if it has no id */
export async function acceptedRecord(parts: Parts): Promise<{ exchange: AnsweredExchange; id: string }> {
  await acceptedShape(parts)
  const exchange = (await parts.sample(controlSample)).tried.findLast((each) => isTaken(each.exchange))?.exchange
  const id = exchange === undefined ? null : idIn(exchange)
  if (exchange === undefined || id === null)
    throw new CannotAsk(`the answer to a test record has no ${resources.data.idField}`)
  return { exchange, id }
}

/** What two equal requests were answered. */
export interface Observed {
  taken: boolean
  /** The first answer. */
  exchange: AnsweredExchange
  /** Its status and code. */
  name: string
}

/**
 * Sends the same request twice, a third time if the answers differ. A refusal counts only if the control is accepted after it.
 *
 * @param control sends a request that differs in one thing, and must be taken
 * @throws {NoAnswer} if the answers contradict each other
 */
export async function observe(
  send: () => Promise<AnsweredExchange>,
  control: () => Promise<AnsweredExchange>,
): Promise<Observed> {
  const [first, second] = [await send(), await send()]
  if (isTaken(first) !== isTaken(second) || nameOf(first.answer) !== nameOf(second.answer))
    throw new NoAnswer(
      `two equal requests were answered differently: ${lineOf(first.answer)}; ${lineOf(second.answer)}`,
    )
  if (!isTaken(first)) {
    const checked = await control()
    if (!isTaken(checked))
      throw new NoAnswer(`a record like those that were taken is refused now: ${lineOf(checked.answer)}`)
  }
  return { taken: isTaken(first), exchange: first, name: nameOf(first.answer) }
}

/** Sends twice a record that differs from the accepted one in one thing. @throws {NoAnswer} */
export const observeRecord = (parts: Parts, change: RecordChange): Promise<Observed> =>
  observe(
    () => submit(parts, change),
    () => submit(parts),
  )

/** How many requests `observe` makes at most. */
export const observeMax = 3

/** Asks for each path until its status is one of an end, or until the waits are over. */
export async function follow(
  parts: Parts,
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
  return last !== undefined && soundsEnded.test(String(fieldOf(last.answer.json, 'status')))
}

/** Words of an end, also such that the daemon does not know: nothing more is awaited after one. */
const soundsEnded =
  /^(completed?|done|finished|closed|processed|success|succeeded|failed|failure|error|rejected|cancell?ed|shipped|delivered)$/i
