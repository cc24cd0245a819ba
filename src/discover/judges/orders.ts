import { randomUUID } from 'node:crypto'
import { serviceResources } from '../../resources.ts'
import { type AnsweredExchange, describeAnswer } from '../exchange.ts'
import {
  describeObservations,
  followTwoTransactions,
  type Observation,
  observeTwice,
  sendAgainIfEarlierAttemptArrived,
} from '../observe.ts'
import { type Finding, likelyFinding, type QuestionContext, type Sample, sureFinding } from '../question.ts'
import {
  findAcceptedShape,
  type IdempotencyKeyShape,
  idempotencyKeyHeaders,
  requireAcceptedShape,
  type ShapeSearchResult,
  testRecordSample,
  usualIdempotencyHeaders,
} from '../testRecord.ts'
import { askHowRecordIsAccepted, judgeStatusValues } from './records.ts'
import { judgeUnknownCustomerRefusal } from './refusals.ts'

interface OrderShape {
  key: IdempotencyKeyShape
  ownId: boolean
}

/** Does for orders what `testRecordSample` does for records (docs/reference/interface.md, 4.4). */
const orderSample: Sample<ShapeSearchResult<OrderShape>> = {
  name: 'a test order',
  async take(parts) {
    const { idempotencyHeader, idempotencyKeyForm: form } = parts.config.service
    const ours: IdempotencyKeyShape = { headers: [idempotencyHeader], form }
    const { shape } = await parts.sample(testRecordSample)
    const keys: IdempotencyKeyShape[] = [
      shape?.key ?? ours,
      { ...ours, form: 'bare' },
      { headers: usualIdempotencyHeaders, form: 'quoted' },
    ]
    const shapes = keys.flatMap((key) => [false, true].map((ownId): OrderShape => ({ key, ownId })))
    return findAcceptedShape(shapes, (shape) => postAs(parts, shape, {}))
  },
}

interface OrderChange {
  customerId?: string
  items?: string
}

function postAs(parts: QuestionContext, shape: OrderShape, change: OrderChange): Promise<AnsweredExchange> {
  const { given, run } = parts
  const ourItems = `[{"sku":"outboxd${run}","quantity":1,"price":12.30}]`
  const ownItems = given.order === null ? ourItems : JSON.stringify(given.order.items)
  const { customerId = given.orderCustomer ?? '', items = ownItems } = change
  return sendAgainIfEarlierAttemptArrived(parts, () => {
    const id = shape.ownId ? `,"${serviceResources.orders.idField}":"${randomUUID()}"` : ''
    const body = `{"customerId":${JSON.stringify(customerId)},"items":${items}${id}}`
    return parts.post(serviceResources.orders.path, body, idempotencyKeyHeaders(shape.key))
  })
}

const postOrder = async (parts: QuestionContext, change: OrderChange = {}): Promise<AnsweredExchange> =>
  postAs(parts, await requireAcceptedShape(parts, orderSample), change)

const observeOrder = (parts: QuestionContext, change: OrderChange): Promise<Observation> =>
  observeTwice(
    () => postOrder(parts, change),
    () => postOrder(parts),
  )

export const askAnswerToNewOrder = (parts: QuestionContext): Promise<Finding> =>
  askHowRecordIsAccepted(parts, orderSample, postOrder, { resource: 'orders', status: 201, pair: 'order_ok' })

/** The built-in control has sku, quantity and price. */
export async function askOrderItemShape(parts: QuestionContext): Promise<Finding> {
  const withItems = (items: string) => observeOrder(parts, { items })
  const [none, text, empty] = [await withItems('[]'), await withItems('["outboxd"]'), await withItems('[{}]')]
  const why = describeObservations({ 'no item': none, 'a text': text, 'an empty object': empty })
  const kindOfObject = empty.isAccepted ? 'objects' : 'objects with certain fields'
  const kind = text.isAccepted ? 'any' : kindOfObject
  const kindIfNotEmpty = kind === 'any' ? 'not empty' : `${kind}, not empty`
  const what = none.isAccepted ? kind : kindIfNotEmpty
  const advice = what === 'any' ? [] : ['have the mapping build such items: the service refuses others']
  return sureFinding(what, why, { differs: what !== 'any', advice })
}

const unknownCustomer = '00000000-0000-4000-8000-000000000000'

export async function askAnswerToOrderOfUnknownCustomer(parts: QuestionContext): Promise<Finding> {
  const observed = await observeOrder(parts, { customerId: unknownCustomer })
  if (!observed.isAccepted) return { ...judgeUnknownCustomerRefusal(observed), contract: {} }
  const why = `${describeAnswer(observed.exchange.answer)}, twice: the service does not check the customer when an order arrives`
  return likelyFinding('taken', why, { differs: true })
}

export const askOrderStatusValues = async (parts: QuestionContext): Promise<Finding> =>
  judgeStatusValues(await followTwoTransactions(parts, 'orders', () => postOrder(parts)))
