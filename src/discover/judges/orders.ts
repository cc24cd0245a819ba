import { randomUUID } from 'node:crypto'
import { serviceResources } from '../../resources.ts'
import { submittedId } from '../../service/responses.ts'
import {
  type AnsweredExchange,
  describeSeen,
  fieldOf,
  jsonOf,
  statusAndCode,
  transactionStatusIn,
} from '../exchange.ts'
import { certaintyOf, createFinding, type Finding, likelyFinding, sureFinding, unknownFinding } from '../finding.ts'
import { authorizedFirstCallSample } from '../firstCall.ts'
import { isAcceptedRecord, type Observed, observeTwice, pollUntilEnded, repeatUnlessArrived } from '../observe.ts'
import { CannotAsk, type QuestionParts, type Sample } from '../question.ts'
import { explainRefusedRecord, type KeyShape, keyHeaders, requireRecordShape, usualKeyHeaders } from '../testRecord.ts'
import { judgeAcceptedAnswers } from './records.ts'
import { getTwice, judgeUnknownCustomer, judgeUnknownId } from './refusals.ts'

interface OrderShape {
  key: KeyShape
  ownId: boolean
}

interface OrderControl {
  shape: OrderShape | null
  tried: readonly AnsweredExchange[]
}

export const itemsJson = ({ given, run }: Pick<QuestionParts, 'given' | 'run'>): string =>
  given.order === null ? `[{"sku":"outboxd${run}","quantity":1,"price":12.30}]` : JSON.stringify(given.order.items)

/** The same as `testRecordSample`, for orders (docs/reference/interface.md, 4.4). */
export const orderSample: Sample<OrderControl> = {
  name: 'a test order',
  requestsMax: 6,
  recordsMax: 1,
  samples: [authorizedFirstCallSample],
  async take(parts) {
    const tried: AnsweredExchange[] = []
    const { idempotencyHeader, idempotencyKeyForm: form } = parts.config.service
    const ours: KeyShape = { headers: [idempotencyHeader], form }
    const ofRecords = await requireRecordShape(parts).then(
      ({ key }) => key,
      () => ours,
    )
    const keys = [ofRecords, { ...ours, form: 'bare' } as const, { headers: usualKeyHeaders, form: 'quoted' } as const]
    for (const shape of keys.flatMap((key) => [false, true].map((ownId): OrderShape => ({ key, ownId })))) {
      const exchange = await postAs(parts, shape, {})
      tried.push(exchange)
      if (isAcceptedRecord(exchange)) return { shape, tried }
      if (![400, 409, 422, 428].includes(exchange.answer.status) || exchange.answer.code === 'E001') break
    }
    return { shape: null, tried }
  },
}

interface OrderChange {
  customerId?: string
  items?: string
}

function postAs(parts: QuestionParts, shape: OrderShape, change: OrderChange): Promise<AnsweredExchange> {
  const { customerId = parts.given.orderCustomer ?? '', items = itemsJson(parts) } = change
  return repeatUnlessArrived(parts, () => {
    const id = shape.ownId ? `,"${serviceResources.orders.idField}":"${randomUUID()}"` : ''
    const body = `{"customerId":${JSON.stringify(customerId)},"items":${items}${id}}`
    return parts.post(serviceResources.orders.path, body, keyHeaders(shape.key))
  })
}

export async function postOrder(parts: QuestionParts, change: OrderChange = {}): Promise<AnsweredExchange> {
  const { shape, tried } = await parts.sample(orderSample)
  if (shape === null) throw new CannotAsk(explainRefusedRecord(tried.at(-1)?.answer))
  return postAs(parts, shape, change)
}

const observeOrder = (parts: QuestionParts, change: OrderChange): Promise<Observed> =>
  observeTwice(
    () => postOrder(parts, change),
    () => postOrder(parts),
  )

const idIn = ({ answer }: AnsweredExchange): string | null => submittedId('orders', jsonOf(answer))

export async function askOrder(parts: QuestionParts): Promise<Finding> {
  const assumed = '201 with an orderId'
  const { shape, tried } = await parts.sample(orderSample)
  const first = tried.at(-1)
  if (first === undefined) return unknownFinding('no order was sent', { assumed })
  if (shape === null) {
    const cannot = `an order is answered ${statusAndCode(first.answer)}`
    return unknownFinding(explainRefusedRecord(first.answer), { assumed, cannot })
  }
  const { idField } = serviceResources.orders
  return judgeAcceptedAnswers([first.answer, (await postOrder(parts)).answer], {
    ...{ assumed, idField, hasId: idIn(first) !== null, status: 201, pair: 'order_ok' },
  })
}

export function judgeOrderItems(lives: readonly (readonly AnsweredExchange[])[], sent: string): Finding {
  const assumed = 'any JSON'
  const read = lives.flatMap((polls) => polls.find((each) => transactionStatusIn(each) !== null) ?? [])
  const [first] = read
  if (first === undefined) return unknownFinding('no order could be read', { assumed })
  const texts = read.map(({ answer }) => JSON.stringify(fieldOf(answer.json, 'items')))
  const [text] = texts
  const certainty = certaintyOf(texts.length)
  if (new Set(texts).size > 1) return unknownFinding(`equal orders were read as ${texts.join(' and ')}`, { assumed })
  if (text === undefined)
    return createFinding(certainty, 'none', `an order is read without items: ${describeSeen(first.answer)}`, {
      assumed,
    })
  if (text === sent) return createFinding(certainty, 'as sent', 'they came back to the digit', { assumed })
  if (text === sent.replace('12.30', '12.3')) {
    const advice = ['if every digit of an amount counts, have the mapping write it `as: string`']
    return createFinding(certainty, 'as numbers', '12.30 came back as 12.3: the service keeps numbers, not digits', {
      assumed,
      advice,
    })
  }
  const advice = ['ask the operator of the service for the shape that an item must have']
  return createFinding(certainty, 'otherwise', `sent ${sent}, read ${text.slice(0, 200)}`, { assumed, advice })
}

/** The control has an item with sku and quantity. */
export async function askOrderItemShape(parts: QuestionParts): Promise<Finding> {
  const withItems = (items: string) => observeOrder(parts, { items })
  const [none, text, empty] = [await withItems('[]'), await withItems('["outboxd"]'), await withItems('[{}]')]
  const why = `no item: ${none.name}, a text: ${text.name}, an empty object: ${empty.name}`
  const kind = text.taken ? 'any' : empty.taken ? 'objects' : 'objects with certain fields'
  const what = none.taken ? kind : kind === 'any' ? 'not empty' : `${kind}, not empty`
  const advice = what === 'any' ? [] : ['have the mapping build such items: the service refuses others']
  return sureFinding(what, why, { assumed: 'any JSON', differs: what !== 'any', advice })
}

const unknownCustomer = '00000000-0000-4000-8000-000000000000'

export async function askOrderUnknownCustomer(parts: QuestionParts): Promise<Finding> {
  const observed = await observeOrder(parts, { customerId: unknownCustomer })
  if (!observed.taken) return { ...judgeUnknownCustomer(observed), contract: {} }
  const why = `${describeSeen(observed.exchange.answer)}, twice: the service does not check the customer when an order arrives`
  return likelyFinding('taken', why, { assumed: '400 E001', differs: true })
}

export async function askUnknownOrder(parts: QuestionParts): Promise<Finding> {
  const { answer } = await getTwice(parts, () => `${serviceResources.orders.path}/${randomUUID()}`)
  return judgeUnknownId(answer, 'order_status_unknown')
}

const waitsMs = [0, 500, 2_500, 5_000, 10_000, 20_000]

export const orderPollsSample: Sample<readonly (readonly AnsweredExchange[])[]> = {
  name: 'the lives of two orders',
  requestsMax: 2 + 2 * waitsMs.length,
  recordsMax: 2,
  samples: [orderSample],
  async take(parts) {
    const ids = [await postOrder(parts), await postOrder(parts)].flatMap((order) => idIn(order) ?? [])
    if (ids.length === 0) throw new CannotAsk(`the answer to a test order has no ${serviceResources.orders.idField}`)
    const paths = ids.map((id) => `${serviceResources.orders.path}/${encodeURIComponent(id)}`)
    return pollUntilEnded(parts, paths, waitsMs)
  },
}
