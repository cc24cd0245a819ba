import { randomUUID } from 'node:crypto'
import { type Resource, serviceResources } from '../resources.ts'
import { idempotencyKeyHeader } from '../service/client.ts'
import { textOrDigitsOf } from '../service/readJson.ts'
import {
  type AnsweredExchange,
  describeAnswer,
  type Exchange,
  isObject,
  type ParsedAnswer,
  submittedIdIn,
} from './exchange.ts'
import { isAcceptedRecord, type Observation, observeTwice, sendAgainIfEarlierAttemptArrived } from './observe.ts'
import {
  CannotAsk,
  type QuestionContext,
  type QuestionOptions,
  type RequestBody,
  type RequestHeaders,
  type Sample,
} from './question.ts'

/**
 * The test record. Its fields always have the same length and only plain letters and digits, so that a rule on one
 * field does not answer a question about another.
 */

/** `place` is where the fields of docs/reference/interface.md, 2.5, stand. */
export interface RecordShape {
  place: 'data' | 'beside' | 'nowhere'
  amount: 'number' | 'text'
  ownId: boolean
  key: IdempotencyKeyShape
}

export interface IdempotencyKeyShape {
  headers: readonly string[]
  form: 'quoted' | 'bare'
}

export interface RecordChange {
  customerId?: string
  /** Replaces fields of docs/reference/interface.md, 2.5, in any place. */
  mapped?: RequestBody
  data?: RequestBody
  shape?: Partial<RecordShape>
  key?: string
  id?: string
}

export const usualIdempotencyHeaders = ['Idempotency-Key', 'X-Idempotency-Key', 'X-Request-ID', 'Request-Id'] as const

const mappedNames = ['customer_id', 'order_date', 'total_amount'] as const
const ourMapped: RequestBody = {
  customer_id: null,
  order_date: '2026-01-02T03:04:05Z',
  total_amount: JSON.rawJSON('12.30'),
}

interface Base {
  customer: string
  data: RequestBody
  beside: RequestBody
  mapped: RequestBody
  place: RecordShape['place']
}

type RecordParts = Pick<QuestionContext, 'given' | 'run' | 'nextNumber'>

function baseOf({ given, run, nextNumber }: RecordParts): Base {
  if (given.record === null) {
    const data = { field1: 'value1', field2: `outboxd${run}${nextNumber()}` }
    return { customer: given.customer ?? '', data, beside: {}, mapped: ourMapped, place: 'data' }
  }
  const { customerId, data, [serviceResources.data.idField]: _, ...beside } = given.record
  const inner = isObject(data) ? data : {}
  const has = (body: RequestBody) => mappedNames.some((name) => name in body)
  const outside = has(beside) ? 'beside' : 'nowhere'
  const place = has(inner) ? 'data' : outside
  return {
    customer: given.customer ?? textOrDigitsOf(customerId) ?? '',
    data: withoutMapped(inner),
    beside: withoutMapped(beside),
    mapped: { ...ourMapped, ...onlyMapped(place === 'beside' ? beside : inner) },
    place,
  }
}

const isMapped = ([name]: [string, unknown]) => (mappedNames as readonly string[]).includes(name)
const onlyMapped = (body: RequestBody): RequestBody => Object.fromEntries(Object.entries(body).filter(isMapped))
const withoutMapped = (body: RequestBody): RequestBody =>
  Object.fromEntries(Object.entries(body).filter((field) => !isMapped(field)))

export function recordAndOrderOf(
  bodies: readonly { resource: Resource; body: RequestBody }[],
): Pick<QuestionOptions, 'record' | 'order'> {
  const bodyFor = (resource: Resource) => bodies.find((each) => each.resource === resource)?.body ?? null
  return { record: bodyFor('data'), order: bodyFor('orders') }
}

export const customerIdOf = ({ customer, record }: Pick<QuestionOptions, 'customer' | 'record'>): string =>
  customer ?? textOrDigitsOf(record?.customerId) ?? ''

export function renderTestRecordBody(parts: RecordParts, shape: RecordShape, change: RecordChange = {}): string {
  const base = baseOf(parts)
  const customerId = change.customerId ?? base.customer
  const digits = textOrDigitsOf(base.mapped.total_amount) ?? '12.30'
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

export function idempotencyKeyHeaders(
  { headers, form }: IdempotencyKeyShape,
  key: string = randomUUID(),
): RequestHeaders {
  return Object.assign(
    {},
    ...headers.map((idempotencyHeader) => idempotencyKeyHeader(key, { idempotencyHeader, idempotencyKeyForm: form })),
  )
}

export async function submitTestRecord(parts: QuestionContext, change: RecordChange = {}): Promise<AnsweredExchange> {
  return submitAs(parts, await findAcceptedRecordShape(parts), change)
}

async function submitAs(
  parts: QuestionContext,
  accepted: RecordShape,
  change: RecordChange,
): Promise<AnsweredExchange> {
  const shape = { ...accepted, ...change.shape }
  const send = () =>
    parts.post(
      serviceResources.data.path,
      renderTestRecordBody(parts, shape, change),
      idempotencyKeyHeaders(shape.key, change.key),
    )
  return change.key === undefined ? sendAgainIfEarlierAttemptArrived(parts, send) : send()
}

/** Sends the changed record twice. A refusal counts only if the service accepts the unchanged record. */
export const observeChangedTestRecord = (parts: QuestionContext, change: RecordChange): Promise<Observation> =>
  observeTwice(
    () => submitTestRecord(parts, change),
    () => submitTestRecord(parts),
  )

export const transactionIdIn = (exchange: Exchange): string | null => submittedIdIn('data', exchange)

export interface ShapeSearchResult<Shape> {
  /** Null if the service refused all shapes. */
  shape: Shape | null
  tried: readonly AnsweredExchange[]
}

/** Only after these statuses, another shape may be accepted. */
const shapeStatuses = [400, 409, 415, 422, 428]

/** Tries a record as the daemon would send it, then other shapes (docs/reference/interface.md, 4.2). */
export const testRecordSample: Sample<ShapeSearchResult<RecordShape>> = {
  name: 'a test record',
  take: (parts) => findAcceptedShape(shapesFor(parts), (shape) => submitAs(parts, shape, {})),
}

export async function findAcceptedShape<Shape>(
  shapes: readonly Shape[],
  submit: (shape: Shape) => Promise<AnsweredExchange>,
): Promise<ShapeSearchResult<Shape>> {
  const tried: AnsweredExchange[] = []
  for (const shape of shapes) {
    const exchange = await submit(shape)
    tried.push(exchange)
    if (isAcceptedRecord(exchange)) return { shape, tried }
    const { status, code } = exchange.answer
    if (!shapeStatuses.includes(status) || code === 'E001') break
  }
  return { shape: null, tried }
}

export const otherAmountType = (amount: RecordShape['amount']): RecordShape['amount'] =>
  amount === 'text' ? 'number' : 'text'

/** First the daemon's shape, then those that differ from it in one, two and three parts. */
function shapesFor(parts: QuestionContext): RecordShape[] {
  const { idempotencyHeader, idempotencyKeyForm: form } = parts.config.service
  const { place, mapped } = baseOf(parts)
  const amount: RecordShape['amount'] = typeof mapped.total_amount === 'string' ? 'text' : 'number'
  const places = [...new Set([place, 'data', 'beside', 'nowhere'] as const)]
  const bodies = places.flatMap((place) =>
    (place === 'nowhere' ? [amount] : [amount, otherAmountType(amount)]).map((amount) => ({ place, amount })),
  )
  const brings = serviceResources.data.idField in (parts.given.record ?? {})
  const otherForm = form === 'bare' ? 'quoted' : 'bare'
  const keys: IdempotencyKeyShape[] = [[idempotencyHeader], usualIdempotencyHeaders].flatMap((headers) => [
    { headers, form },
    { headers, form: otherForm },
  ])
  const shapes = keys.flatMap((key, k) =>
    [brings, !brings].flatMap((ownId, i) =>
      bodies.map((body, b) => ({ shape: { ...body, ownId, key }, differences: [k, i, b].filter((n) => n > 0).length })),
    ),
  )
  return shapes.toSorted((one, other) => one.differences - other.differences).map(({ shape }) => shape)
}

/** @throws CannotAsk if the service accepted a test record in none of the shapes */
export const findAcceptedRecordShape = (parts: QuestionContext): Promise<RecordShape> =>
  requireAcceptedShape(parts, testRecordSample)

export async function requireAcceptedShape<Shape>(
  parts: QuestionContext,
  control: Sample<ShapeSearchResult<Shape>>,
): Promise<Shape> {
  const { shape, tried } = await parts.sample(control)
  if (shape === null) throw new CannotAsk(explainRefusedRecord(tried.at(-1)?.answer))
  return shape
}

export function explainRefusedRecord(seen: ParsedAnswer | undefined): string {
  if (seen === undefined) return 'no test record was sent'
  const text = seen.kind === 'response' ? seen.text : ''
  const field = ['field1', 'field2', 'customerId', ...mappedNames, 'items', 'orderId', 'transactionId'].find((name) =>
    text.includes(name),
  )
  const what = field === undefined ? 'the test record' : `${field} of the test record`
  const todo =
    field === 'customerId'
      ? 'Name a customer that the service knows'
      : 'Give a record that the service accepts with --record FILE'
  return `the service refused ${what}: ${describeAnswer(seen)}. ${todo}`
}
