import { randomUUID } from 'node:crypto'
import { type Resource, serviceResources } from '../resources.ts'
import { idempotencyKeyHeader } from '../service/client.ts'
import { textOf } from '../service/readJson.ts'
import { submittedId } from '../service/responses.ts'
import { type AnsweredExchange, describeSeen, isObject, isSuccess, jsonOf, type SeenAnswer } from './exchange.ts'
import { authorizedFirstCallSample } from './firstCall.ts'
import { isAcceptedRecord, type Observed, observeTwice, repeatUnlessArrived } from './observe.ts'
import { type Body, CannotAsk, type Given, type Headers, type QuestionParts, type Sample } from './question.ts'

/**
 * The test record. In all records its fields have the same length and only plain letters and digits, so that a rule on
 * one field does not answer a question about another. The control is the record in the accepted shape. Each question
 * changes one thing.
 */

/** The place of the fields of docs/reference/interface.md, 2.5, and other differences between services. */
export interface RecordShape {
  place: 'data' | 'beside' | 'nowhere'
  amount: 'number' | 'text'
  ownId: boolean
  key: KeyShape
}

export interface KeyShape {
  headers: readonly string[]
  form: 'quoted' | 'bare'
}

export interface RecordChange {
  customerId?: string
  /** Replaces the fields of 2.5, whatever their place. */
  mapped?: Body
  data?: Body
  shape?: Partial<RecordShape>
  key?: string
  id?: string
}

export const usualKeyHeaders = ['Idempotency-Key', 'X-Idempotency-Key', 'X-Request-ID', 'Request-Id'] as const

const mappedNames = ['customer_id', 'order_date', 'total_amount'] as const
const ourMapped: Body = { customer_id: null, order_date: '2026-01-02T03:04:05Z', total_amount: JSON.rawJSON('12.30') }

interface Base {
  customer: string
  data: Body
  beside: Body
  mapped: Body
  place: RecordShape['place']
}

type RecordParts = Pick<QuestionParts, 'given' | 'run' | 'nextNumber'>

function baseOf({ given, run, nextNumber }: RecordParts): Base {
  if (given.record === null) {
    const data = { field1: 'value1', field2: `outboxd${run}${String(nextNumber()).padStart(4, '0')}` }
    return { customer: given.customer ?? '', data, beside: {}, mapped: ourMapped, place: 'data' }
  }
  const { customerId, data, [serviceResources.data.idField]: _, ...beside } = given.record
  const inner = isObject(data) ? data : {}
  const has = (body: Body) => mappedNames.some((name) => name in body)
  const place = has(inner) ? 'data' : has(beside) ? 'beside' : 'nowhere'
  return {
    customer: given.customer ?? textOf(customerId) ?? '',
    data: withoutMapped(inner),
    beside: withoutMapped(beside),
    mapped: { ...ourMapped, ...onlyMapped(place === 'beside' ? beside : inner) },
    place,
  }
}

const isMapped = ([name]: [string, unknown]) => (mappedNames as readonly string[]).includes(name)
const onlyMapped = (body: Body): Body => Object.fromEntries(Object.entries(body).filter(isMapped))
const withoutMapped = (body: Body): Body => Object.fromEntries(Object.entries(body).filter((field) => !isMapped(field)))

export function pickGivenBodies(
  bodies: readonly { resource: Resource; body: Body }[],
): Pick<Given, 'record' | 'order'> {
  const bodyFor = (resource: Resource) => bodies.find((each) => each.resource === resource)?.body ?? null
  return { record: bodyFor('data'), order: bodyFor('orders') }
}

export const customerOf = ({ customer, record }: Pick<Given, 'customer' | 'record'>): string =>
  customer ?? textOf(record?.customerId) ?? ''

export function recordBody(parts: RecordParts, shape: RecordShape, change: RecordChange = {}): string {
  const base = baseOf(parts)
  const customerId = change.customerId ?? base.customer
  const digits = textOf(base.mapped.total_amount) ?? '12.30'
  const total_amount = shape.amount === 'text' ? digits : JSON.rawJSON(digits)
  const mapped = { ...base.mapped, customer_id: customerId, total_amount, ...change.mapped }
  return JSON.stringify({
    customerId,
    data: { ...base.data, ...(shape.place === 'data' ? mapped : {}), ...change.data },
    ...base.beside,
    ...(shape.place === 'beside' ? mapped : {}),
    ...(shape.ownId ? { [serviceResources.data.idField]: change.id ?? randomUUID() } : {}),
  })
}

export function keyHeaders({ headers, form }: KeyShape, key: string = randomUUID()): Headers {
  return Object.assign(
    {},
    ...headers.map((idempotencyHeader) => idempotencyKeyHeader(key, { idempotencyHeader, idempotencyKeyForm: form })),
  )
}

export async function submitTestRecord(parts: QuestionParts, change: RecordChange = {}): Promise<AnsweredExchange> {
  return submitAs(parts, await requireRecordShape(parts), change)
}

async function submitAs(parts: QuestionParts, accepted: RecordShape, change: RecordChange): Promise<AnsweredExchange> {
  const shape = { ...accepted, ...change.shape }
  const send = () =>
    parts.post(serviceResources.data.path, recordBody(parts, shape, change), keyHeaders(shape.key, change.key))
  return change.key === undefined ? repeatUnlessArrived(parts, send) : send()
}

export const observeTestRecord = (parts: QuestionParts, change: RecordChange): Promise<Observed> =>
  observeTwice(
    () => submitTestRecord(parts, change),
    () => submitTestRecord(parts),
  )

export const transactionIdIn = ({ answer }: { answer: SeenAnswer }): string | null =>
  isSuccess(answer) ? submittedId('data', jsonOf(answer)) : null

export interface Control {
  shape: RecordShape | null
  tried: readonly { shape: RecordShape; exchange: AnsweredExchange }[]
}

const triedMax = 24
/** Only after these statuses another shape may help. */
const shapeStatuses = [400, 409, 415, 422, 428]

/** Tries a record as the daemon would send it, then other shapes (docs/reference/interface.md, 4.2). */
export const testRecordSample: Sample<Control> = {
  name: 'a test record',
  requestsMax: triedMax + usualKeyHeaders.length,
  recordsMax: 2,
  samples: [authorizedFirstCallSample],
  async take(parts) {
    const tried: { shape: RecordShape; exchange: AnsweredExchange }[] = []
    const attempt = async (shape: RecordShape) => {
      const exchange = await submitAs(parts, shape, {})
      tried.push({ shape, exchange })
      return isAcceptedRecord(exchange)
    }
    const left = shapesFor(parts)
    while (tried.length < triedMax) {
      const shape = nextShape(left, tried)
      if (shape === undefined) break
      left.splice(left.indexOf(shape), 1)
      if (await attempt(shape)) return { shape: await withOneHeader(shape, attempt), tried }
      const { status, code } = tried.at(-1)?.exchange.answer ?? { status: 0, code: null }
      if (!shapeStatuses.includes(status) || code === 'E001') break
    }
    return { shape: null, tried }
  },
}

/** Finds the one header that is enough. */
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

const otherForm = (form: KeyShape['form']): KeyShape['form'] => (form === 'bare' ? 'quoted' : 'bare')
export const otherAmountType = (amount: RecordShape['amount']): RecordShape['amount'] =>
  amount === 'text' ? 'number' : 'text'

/** The ways to send a key, the configured one first. */
export function keyShapesToTry({ headers, form }: KeyShape): KeyShape[] {
  return [
    { headers, form },
    { headers, form: otherForm(form) },
    { headers: usualKeyHeaders, form: otherForm(form) },
    { headers: usualKeyHeaders, form },
  ]
}

function shapesFor(parts: QuestionParts): RecordShape[] {
  const { idempotencyHeader, idempotencyKeyForm: form } = parts.config.service
  const { place, mapped } = baseOf(parts)
  const amount: RecordShape['amount'] = typeof mapped.total_amount === 'string' ? 'text' : 'number'
  const places = [...new Set([place, 'data', 'beside', 'nowhere'] as const)]
  const bodies = places.flatMap((place) =>
    (place === 'nowhere' ? [amount] : [amount, otherAmountType(amount)]).map((amount) => ({ place, amount })),
  )
  const brings = serviceResources.data.idField in (parts.given.record ?? {})
  return keyShapesToTry({ headers: [idempotencyHeader], form }).flatMap((key) =>
    [brings, !brings].flatMap((ownId) => bodies.map((body) => ({ ...body, ownId, key }))),
  )
}

/** The parts of a shape, and the words of a refusal that is about one of them. */
const dimensions = [
  { words: /idempot|x-request-id|request-id/i, of: ({ key }: RecordShape) => JSON.stringify(key) },
  { words: /transaction_?id|order_?id/i, of: ({ ownId }: RecordShape) => `id ${ownId}` },
  {
    words: /customer_id|order_date|total_amount|amount|unrecognized|additional propert|unknown (field|propert)/i,
    of: ({ place, amount }: RecordShape) => `${place} ${amount}`,
  },
]

/** Chooses the next shape to try. It differs little from the first, and in what a refusal named. */
function nextShape(left: readonly RecordShape[], tried: Control['tried']): RecordShape | undefined {
  const first = tried[0]?.shape ?? left[0]
  if (first === undefined) return undefined
  const refused = new Set(
    tried.flatMap(({ shape, exchange }) =>
      dimensions.filter(({ words }) => words.test(exchange.answer.text)).map(({ of }) => of(shape)),
    ),
  )
  const score = (shape: RecordShape) =>
    dimensions.filter(({ of }) => of(shape) !== of(first)).length +
    3 * dimensions.filter(({ of }) => refused.has(of(shape))).length
  return left.toSorted((a, b) => score(a) - score(b))[0]
}

export async function requireRecordShape(parts: QuestionParts): Promise<RecordShape> {
  const { shape, tried } = await parts.sample(testRecordSample)
  if (shape === null) throw new CannotAsk(explainRefusedRecord(tried.at(-1)?.exchange.answer))
  return shape
}

export async function requireAcceptedRecord(parts: QuestionParts): Promise<{ exchange: AnsweredExchange; id: string }> {
  await requireRecordShape(parts)
  const exchange = (await parts.sample(testRecordSample)).tried.findLast((each) =>
    isAcceptedRecord(each.exchange),
  )?.exchange
  const id = exchange === undefined ? null : transactionIdIn(exchange)
  if (exchange === undefined || id === null)
    throw new CannotAsk(`the answer to a test record has no ${serviceResources.data.idField}`)
  return { exchange, id }
}

export function explainRefusedRecord(seen: SeenAnswer | undefined): string {
  if (seen === undefined) return 'no test record was sent'
  const text = seen.kind === 'response' ? seen.text : ''
  const field = ['field1', 'field2', 'customerId', ...mappedNames, 'items', 'orderId', 'transactionId'].find((name) =>
    text.includes(name),
  )
  const what = field === undefined ? 'the test record' : `${field} of the test record`
  const todo =
    field === 'customerId' ? 'Name a customer that it knows' : 'Give a record that it accepts with --record FILE'
  return `the service refused ${what}: ${describeSeen(seen)}. ${todo}`
}
