import { randomUUID } from 'node:crypto'
import { serviceResources } from '../../resources.ts'
import { submittedId } from '../../service/responses.ts'
import { type AnsweredExchange, describeSeen, jsonOf, statusAndCode } from '../exchange.ts'
import {
  describeObserved,
  followTwo,
  isAcceptedRecord,
  type Observed,
  observeTwice,
  repeatUnlessArrived,
} from '../observe.ts'
import {
  CannotAsk,
  type Finding,
  likelyFinding,
  type QuestionParts,
  type Sample,
  sureFinding,
  unknownFinding,
} from '../question.ts'
import { explainRefusedRecord, type KeyShape, keyHeaders, requireRecordShape, usualKeyHeaders } from '../testRecord.ts'
import { judgeAccepted, judgeStatusValues } from './records.ts'
import { judgeUnknownCustomer } from './refusals.ts'

interface OrderShape {
  key: KeyShape
  ownId: boolean
}

interface OrderControl {
  shape: OrderShape | null
  tried: readonly AnsweredExchange[]
}

/** The same as `testRecordSample`, for orders (docs/reference/interface.md, 4.4). */
export const orderSample: Sample<OrderControl> = {
  name: 'a test order',
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
  const { given, run } = parts
  const ourItems = `[{"sku":"outboxd${run}","quantity":1,"price":12.30}]`
  const ownItems = given.order === null ? ourItems : JSON.stringify(given.order.items)
  const { customerId = given.orderCustomer ?? '', items = ownItems } = change
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
  const { shape, tried } = await parts.sample(orderSample)
  const last = tried.at(-1)
  if (last === undefined) return unknownFinding('no order was sent')
  if (shape === null)
    return unknownFinding(explainRefusedRecord(last.answer), {
      cannot: `an order is answered ${statusAndCode(last.answer)}`,
    })
  const { idField } = serviceResources.orders
  const hasId = idIn(last) !== null
  return judgeAccepted([last, await postOrder(parts)], { idField, hasId, status: 201, pair: 'order_ok' })
}

/** The control has an item with sku and quantity. */
export async function askOrderItemShape(parts: QuestionParts): Promise<Finding> {
  const withItems = (items: string) => observeOrder(parts, { items })
  const [none, text, empty] = [await withItems('[]'), await withItems('["outboxd"]'), await withItems('[{}]')]
  const why = describeObserved({ 'no item': none, 'a text': text, 'an empty object': empty })
  const kind = text.taken ? 'any' : empty.taken ? 'objects' : 'objects with certain fields'
  const what = none.taken ? kind : kind === 'any' ? 'not empty' : `${kind}, not empty`
  const advice = what === 'any' ? [] : ['have the mapping build such items: the service refuses others']
  return sureFinding(what, why, { differs: what !== 'any', advice })
}

const unknownCustomer = '00000000-0000-4000-8000-000000000000'

export async function askOrderUnknownCustomer(parts: QuestionParts): Promise<Finding> {
  const observed = await observeOrder(parts, { customerId: unknownCustomer })
  if (!observed.taken) return { ...judgeUnknownCustomer(observed), contract: {} }
  const why = `${describeSeen(observed.exchange.answer)}, twice: the service does not check the customer when an order arrives`
  return likelyFinding('taken', why, { differs: true })
}

export const askOrderStatus = async (parts: QuestionParts): Promise<Finding> =>
  judgeStatusValues(await followTwo(parts, 'orders', () => postOrder(parts)))
