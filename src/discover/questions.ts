import type { Exchange } from './exchange.ts'
import type { Finding } from './finding.ts'
import { addressSample, askAddress, firstCallSample, tokenSample } from './firstCall.ts'
import * as answers from './judges/answers.ts'
import * as limit from './judges/limit.ts'
import * as limitHeader from './judges/limitHeader.ts'
import * as orders from './judges/orders.ts'
import * as records from './judges/records.ts'
import * as refusals from './judges/refusals.ts'
import * as repetition from './judges/repetition.ts'
import * as token from './judges/token.ts'
import { observeMax } from './observe.ts'
import type { Question, Sample } from './question.ts'
import { controlSample } from './testRecord.ts'

/**
 * What people read of each question: the section of docs/reference/interface.md that is silent, what is asked, and what the answer
 * decides. In the order in which they are asked: first what changes nothing, then records and orders, and last what judges all
 * answers, or uses the limit up. If the budget ends early, the last ones are not asked.
 */
const texts = {
  'token-unit': ['2.1', 'what expires_in counts: seconds, milliseconds or minutes', 'TOKEN_EXPIRES_IN_UNIT'],
  address: [
    '5.6',
    'whether this machine’s address may call the API, and what answers there',
    'what to ask the operator of the service for; SERVICE_BASE_URL',
  ],
  submission: [
    '2.3',
    'how a record is accepted: its status, and its id',
    'whether --record is needed; DISCOVERED_CONTRACT',
  ],
  'status-values': [
    '3.1',
    'the statuses of a transaction from first to last, and whether accepted is one',
    'whether records end, or need attention',
  ],
  'rate-polls': ['8', 'whether a question for a transaction counts against the limit', 'how the limit is counted here'],
  'rate-failures': [
    '8',
    'whether a request that is refused (400) counts against the limit',
    'how the limit is counted here',
  ],
  'rate-orders': ['8', 'whether data and orders share a limit', 'how the limit is counted here'],
  'rate-scope': [
    '8',
    'whether the limit is one for all tokens of a client (or for its address), or one for each token',
    'whether instances could have more together',
  ],
  'rate-tokens': ['8', 'whether a token request counts against the limit', 'how the limit is counted here'],
  'rate-second': [
    '8',
    'whether there is a second limit, for a second',
    'RATE_LIMIT_REQUESTS, RATE_LIMIT_WINDOW_SECONDS',
  ],
  'second-token': ['4.1', 'whether a token stays valid when the client is given another', 'how many instances may run'],
  'bad-token': ['5.4', 'the answer to a call with a token that the issuer did not give', 'TOKEN_REFRESH_SECONDS'],
  'unknown-id': [
    '4.3',
    'the answer to a question for a transaction that does not exist',
    'how a lost transaction is noticed',
  ],
  'unknown-path': ['4', 'the answer at a path that the service does not have', 'whether a moved API is noticed'],
  'own-id': [
    '4.2',
    'whether a record may, or must, bring its own transactionId',
    'transactionId in the mapping; UNCERTAIN_POLICY=probe',
  ],
  'mapped-fields': [
    '2.5',
    'where customer_id, order_date and total_amount are read, and whether they are required',
    'the body of the mapping',
  ],
  amount: ['2.5', 'whether total_amount is a number or its digits as text', '`as` in the mapping'],
  'order-date': ['2.5', 'whether order_date may have milliseconds, and which offsets', 'what the ERP writes'],
  field2: [
    '2.2',
    'whether field2 may be empty, have 1,000 characters, or any character',
    'required and maxLength in the mapping',
  ],
  'customer-length': [
    '2.2',
    'how the ten characters of a customerId are counted: as characters, bytes or UTF-16 units',
    'maxLength in the mapping',
  ],
  'unknown-customer': [
    '7.2',
    'the answer to a record for a customer that the service does not know (E001)',
    'how such records are found; DISCOVERED_CONTRACT',
  ],
  idempotency: [
    '4.2',
    'whether a request that is repeated under its idempotency key is recognised',
    'UNCERTAIN_POLICY',
  ],
  'idempotency-header': ['4.2', 'the header in which a key is recognised', 'IDEMPOTENCY_HEADER'],
  'idempotency-form': ['4.2', 'whether a key is accepted in quotes, bare, or either', 'IDEMPOTENCY_KEY_FORM'],
  order: ['2.6', 'how an order is accepted: its status, and its id', 'whether --record is needed; DISCOVERED_CONTRACT'],
  'order-items': ['2.6', 'whether an order’s items come back as they were sent, to the digit', '`as` in the mapping'],
  'order-status': ['3.2', 'the statuses of an order from first to last', 'whether orders end, or need attention'],
  'order-item-shape': [
    '2.6',
    'what an order’s items must be: at least one, objects, with certain fields',
    'items in the mapping',
  ],
  'order-unknown-customer': [
    '7.2',
    'the answer to an order for a customer that does not exist',
    'how such orders are found',
  ],
  'unknown-order': ['4.5', 'the answer to a question for an order that does not exist', 'how a lost order is noticed'],
  'wrong-secret': [
    '4.1',
    'the issuer’s answer to a wrong secret (one try)',
    'what a wrong secret looks like in status',
  ],
  'body-size': ['8', 'how large a body may be (with --size)', 'PAYLOAD_MAX_BYTES'],
  'token-lifetime': [
    '5.3',
    'how long a token is really good (with --slow held to its end, 75 minutes at most)',
    'TOKEN_REFRESH_SECONDS, TOKEN_EXPIRES_IN_UNIT',
  ],
  'rate-window': ['8', 'whether all requests are free again after a window (with --rate)', 'RATE_LIMIT_WINDOW_SECONDS'],
  'rate-limit': [
    '8',
    'how many requests a window has: by X-RateLimit-Remaining, with --rate by counting',
    'RATE_LIMIT_REQUESTS, RATE_LIMIT_WINDOW_SECONDS',
  ],
  'rate-throttled': [
    '8',
    'whether a request that was answered 429 counts against the limit (with --rate)',
    'how other clients of these credentials should back off',
  ],
  'rate-refusal': [
    '8',
    'how a request beyond the limit is refused, and the form of its Retry-After',
    'whether the daemon knows how long to wait',
  ],
  'rate-header': [
    '8',
    'which answers carry X-RateLimit-Remaining',
    'whether others may spend from the limit; DISCOVERED_CONTRACT',
  ],
  'error-body': ['7', 'the shape of an error’s body, and where its code stands', 'whether codes are found'],
  compression: ['1', 'whether answers are compressed though Accept-Encoding is identity', 'whether a proxy is needed'],
  redirects: ['4', 'whether any answer is a redirect', 'SERVICE_BASE_URL'],
  clock: ['2.3', 'how far the service’s clock is from ours, by the header Date', 'which clock to set'],
  'response-time': ['8', 'how long answers take', 'REQUEST_TIMEOUT_SECONDS'],
} as const satisfies Record<string, readonly [section: string, asks: string, decides: string]>

/** What is missing is 0 or none. A function `judge…` is pure, a function `ask…` sends requests. */
type Asking = Pick<Question, 'run'> & Partial<Omit<Question, 'name' | 'section' | 'asks' | 'decides'>>

const harmless = { samples: [addressSample], harmless: true } as const
const ofRecords = { samples: [controlSample], needs: ['customer'] } as const
const ofOrders = { samples: [orders.orderSample], needs: ['orderCustomer'] } as const
const ofHeader = { samples: [limitHeader.headerSample], needs: ['customer'] } as const
const sending = (requestsMax: number, recordsMax = requestsMax) => ({ requestsMax, recordsMax })

const askings: Record<keyof typeof texts, Asking> = {
  'token-unit': { samples: [tokenSample], harmless: true, run: token.askTokenUnit },
  address: { samples: [firstCallSample], harmless: true, run: askAddress },
  submission: { ...ofRecords, requestsMax: 1, run: records.askSubmission },
  'status-values': {
    samples: [records.livesSample],
    needs: ['customer'],
    run: async (parts) => records.judgeStatusValues((await parts.sample(records.livesSample)).polls),
  },
  'rate-polls': { ...ofHeader, run: limitHeader.askCounted('poll') },
  'rate-failures': { ...ofHeader, run: limitHeader.askCounted('refused') },
  'rate-orders': {
    samples: [limitHeader.headerSample],
    needs: ['customer', 'orderCustomer'],
    run: limitHeader.askCounted('order'),
  },
  'rate-scope': { ...ofHeader, run: judging(limitHeader.headerSample, limitHeader.judgeRateScope) },
  'rate-tokens': { ...ofHeader, run: judging(limitHeader.headerSample, limitHeader.judgeRateTokens) },
  'rate-second': { samples: [limit.burstsSample], needs: ['customer'], run: limit.askRateSecond },
  'second-token': { samples: [token.tokenPairsSample], run: judging(token.tokenPairsSample, token.judgeSecondToken) },
  'bad-token': { ...harmless, requestsMax: 2, run: token.askBadToken },
  'unknown-id': { ...harmless, requestsMax: 4, run: refusals.askUnknownId },
  'unknown-path': { ...harmless, requestsMax: 2, run: refusals.askUnknownPath },
  'own-id': { ...ofRecords, ...sending(2 * observeMax), run: repetition.askOwnId },
  'mapped-fields': {
    samples: [records.mappedSample],
    needs: ['customer'],
    run: judging(records.mappedSample, records.judgeMappedFields),
  },
  amount: {
    samples: [records.amountsSample],
    needs: ['customer'],
    run: judging(records.amountsSample, records.judgeAmount),
  },
  'order-date': {
    samples: [records.amountsSample],
    needs: ['customer'],
    ...sending(records.orderDateMax),
    run: records.askOrderDate,
  },
  field2: { ...ofRecords, ...sending(3 * observeMax), run: records.askField2 },
  'customer-length': { ...ofRecords, ...sending(records.customerLengthMax), run: records.askCustomerLength },
  'unknown-customer': {
    samples: [controlSample],
    needs: ['customer', 'unknownCustomer'],
    ...sending(observeMax + 3, observeMax),
    run: refusals.askUnknownCustomer,
  },
  idempotency: {
    samples: [repetition.repeatsSample],
    needs: ['customer'],
    run: async (parts) =>
      repetition.judgeIdempotency(await parts.sample(repetition.repeatsSample), parts.config.uncertainPolicy),
  },
  'idempotency-header': {
    samples: [repetition.repeatsSample],
    needs: ['customer'],
    run: async (parts) =>
      repetition.judgeIdempotencyHeader(
        await parts.sample(repetition.repeatsSample),
        parts.config.service.idempotencyHeader,
      ),
  },
  'idempotency-form': {
    samples: [repetition.repeatsSample],
    needs: ['customer'],
    ...sending(repetition.keyFormMax),
    run: repetition.askIdempotencyForm,
  },
  order: { ...ofOrders, ...sending(1), run: orders.askOrder },
  'order-items': {
    samples: [orders.orderLivesSample],
    needs: ['orderCustomer'],
    run: async (parts) => orders.judgeOrderItems(await parts.sample(orders.orderLivesSample), orders.itemsText(parts)),
  },
  'order-status': {
    samples: [orders.orderLivesSample],
    needs: ['orderCustomer'],
    run: judging(orders.orderLivesSample, records.judgeStatusValues),
  },
  'order-item-shape': { ...ofOrders, ...sending(3 * observeMax), run: orders.askOrderItemShape },
  'order-unknown-customer': { ...ofOrders, ...sending(observeMax), run: orders.askOrderUnknownCustomer },
  'unknown-order': { ...harmless, requestsMax: 2, run: orders.askUnknownOrder },
  // Needs a good token, because a wrong secret shows nothing if the right one gets no token either.
  'wrong-secret': {
    samples: [tokenSample],
    requestsMax: 1,
    run: async (parts) => token.judgeWrongSecret((await parts.askToken(`wrong-${parts.run}`)).answer),
  },
  'body-size': {
    samples: [controlSample],
    needs: ['customer', 'size'],
    ...sending(records.sizeStepsMax),
    run: records.askBodySize,
  },
  'token-lifetime': {
    samples: [tokenSample, token.heldTokenSample],
    run: async (parts) => token.judgeTokenLifetime(parts.exchanges(), parts.config.service),
  },
  'rate-window': { samples: [limit.countsSample], needs: ['customer'], run: limit.askRateWindow },
  'rate-limit': { samples: [limit.burstsSample, limit.countsSample], needs: ['customer'], run: limit.askRateLimit },
  'rate-throttled': { samples: [limit.countsSample], needs: ['customer'], run: limit.askRateThrottled },
  'rate-refusal': {
    samples: [limit.countsSample],
    needs: ['customer'],
    run: async (parts) => limit.judgeRateRefusal(parts.exchanges(), parts.throttles()),
  },
  'rate-header': { ...harmless, run: judgingAll(limitHeader.judgeRateHeader) },
  'error-body': { ...harmless, run: judgingAll(refusals.judgeErrorBody) },
  compression: { ...harmless, run: judgingAll(answers.judgeCompression) },
  redirects: { samples: [firstCallSample], harmless: true, run: answers.askRedirects },
  clock: { ...harmless, run: judgingAll(answers.judgeClock) },
  'response-time': {
    ...harmless,
    run: async (parts) => answers.judgeResponseTime(parts.exchanges(), parts.config.service.requestTimeoutMs),
  },
}

export const questions: readonly Question[] = (Object.keys(texts) as (keyof typeof texts)[]).map((name) => {
  const [section, asks, decides] = texts[name]
  const nothing = { requestsMax: 0, recordsMax: 0, samples: [], needs: [], harmless: false }
  return { ...nothing, ...askings[name], name, section, asks, decides }
})

/** Judges one sample, and sends nothing else. */
function judging<T>(sample: Sample<T>, judge: (taken: T) => Finding): Question['run'] {
  return async (parts) => judge(await parts.sample(sample))
}

/** Judges all answers so far. */
function judgingAll(judge: (exchanges: readonly Exchange[]) => Finding): Question['run'] {
  return async (parts) => judge(parts.exchanges())
}
