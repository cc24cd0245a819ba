import type { Exchange } from './exchange.ts'
import type { Finding } from './finding.ts'
import { askFirstCall, authorizedFirstCallSample, firstCallSample, tokenSample } from './firstCall.ts'
import * as answers from './judges/answers.ts'
import * as limit from './judges/limit.ts'
import * as limitHeader from './judges/limitHeader.ts'
import * as orders from './judges/orders.ts'
import * as records from './judges/records.ts'
import * as refusals from './judges/refusals.ts'
import * as repetition from './judges/repetition.ts'
import * as token from './judges/token.ts'
import { observeRequestsMax } from './observe.ts'
import type { Question, Sample } from './question.ts'
import { testRecordSample } from './testRecord.ts'

/**
 * The texts that people read of each question: the section of docs/reference/interface.md, what is asked, and what the
 * answer decides. In the order of asking: first questions that change nothing, then records and orders, and last what
 * judges all answers or uses the limit up. If the budget ends early, the last ones are not asked.
 */
const texts = {
  'token-unit': ['2.1', 'Which unit has expires_in?', 'TOKEN_EXPIRES_IN_UNIT'],
  address: ['5.6', 'May this machine’s address call the API?', 'SERVICE_BASE_URL'],
  submission: ['2.3', 'How is a record accepted?', 'whether --record is needed; DISCOVERED_CONTRACT'],
  'status-values': [
    '3.1',
    'Which statuses has a transaction? Is accepted one?',
    'whether records end or need attention',
  ],
  'rate-polls': ['8', 'Do polls count against the limit?', 'what the limit counts'],
  'rate-failures': ['8', 'Does a refused request (400) count?', 'what the limit counts'],
  'rate-orders': ['8', 'Do data and orders share the limit?', 'what the limit counts'],
  'rate-scope': ['8', 'Does each token have its own limit?', 'whether instances could share more'],
  'rate-tokens': ['8', 'Do token requests count?', 'what the limit counts'],
  'rate-second': ['8', 'Is there also a limit per second?', 'RATE_LIMIT_REQUESTS, RATE_LIMIT_WINDOW_SECONDS'],
  'second-token': ['4.1', 'Does a new token end the one before?', 'how many instances may run'],
  'bad-token': ['5.4', 'Which answer does a false token get?', 'TOKEN_REFRESH_SECONDS'],
  'unknown-id': ['4.3', 'Which answer does an unknown transaction get?', 'how a lost transaction is noticed'],
  'unknown-path': ['4', 'Which answer does an unknown path get?', 'whether a moved API is noticed'],
  'own-id': [
    '4.2',
    'May a record bring its transactionId? Must it?',
    'transactionId in the mapping; UNCERTAIN_POLICY=probe',
  ],
  'mapped-fields': ['2.5', 'Where are customer_id, order_date and total_amount read? Required?', 'body in the mapping'],
  amount: ['2.5', 'Is total_amount a number or text?', '`as` in the mapping'],
  'order-date': ['2.5', 'May order_date have milliseconds? Which offsets?', 'what the ERP writes'],
  field2: [
    '2.2',
    'May field2 be empty, have 1,000 characters, have any character?',
    'required and maxLength in the mapping',
  ],
  'customer-length': ['2.2', 'Does customerId count characters, bytes or UTF-16 units?', 'maxLength in the mapping'],
  'unknown-customer': [
    '7.2',
    'Which answer does an unknown customer get (E001)?',
    'how such records are found; DISCOVERED_CONTRACT',
  ],
  idempotency: ['4.2', 'Is a repeated idempotency key recognised?', 'UNCERTAIN_POLICY'],
  'idempotency-header': ['4.2', 'In which header is a key recognised?', 'IDEMPOTENCY_HEADER'],
  'idempotency-form': ['4.2', 'May a key be quoted, bare, or both?', 'IDEMPOTENCY_KEY_FORM'],
  order: ['2.6', 'How is an order accepted?', 'whether --record is needed; DISCOVERED_CONTRACT'],
  'order-items': ['2.6', 'Do an order’s items come back as sent?', '`as` in the mapping'],
  'order-status': ['3.2', 'Which statuses has an order?', 'whether orders end or need attention'],
  'order-item-shape': ['2.6', 'May items be empty? Must they be objects, with which fields?', 'items in the mapping'],
  'order-unknown-customer': ['7.2', 'Which answer does an unknown customer’s order get?', 'how such orders are found'],
  'unknown-order': ['4.5', 'Which answer does an unknown order get?', 'how a lost order is noticed'],
  'wrong-secret': ['4.1', 'Which answer does a wrong secret get (one try)?', 'how status shows it'],
  'body-size': ['8', 'How large may a body be (with --size)?', 'PAYLOAD_MAX_BYTES'],
  'token-lifetime': [
    '5.3',
    'How long does a token last (with --slow)?',
    'TOKEN_REFRESH_SECONDS, TOKEN_EXPIRES_IN_UNIT',
  ],
  'rate-window': ['8', 'Are all requests free after a window (with --rate)?', 'RATE_LIMIT_WINDOW_SECONDS'],
  'rate-limit': [
    '8',
    'How many requests fit into a window? (with --rate counted)',
    'RATE_LIMIT_REQUESTS, RATE_LIMIT_WINDOW_SECONDS',
  ],
  'rate-throttled': ['8', 'Does a 429 count (with --rate)?', 'how other clients should back off'],
  'rate-refusal': ['8', 'How is a request beyond the limit refused?', 'how long the daemon waits'],
  'rate-header': [
    '8',
    'Which answers have X-RateLimit-Remaining?',
    'whether others spend from the limit; DISCOVERED_CONTRACT',
  ],
  'error-body': ['7', 'Which shape has an error, and where is its code?', 'whether codes are found'],
  compression: ['1', 'Are answers compressed unasked?', 'whether a proxy is needed'],
  redirects: ['4', 'Is any answer a redirect?', 'SERVICE_BASE_URL'],
  clock: ['2.3', 'How far is the service’s clock off?', 'which clock to set'],
  'response-time': ['8', 'How long do answers take?', 'REQUEST_TIMEOUT_SECONDS'],
} as const satisfies Record<string, readonly [section: string, asks: string, decides: string]>

/** Missing numbers are 0. A function `judge…` is pure, a function `ask…` sends requests. */
type Asking = Pick<Question, 'run'> & Partial<Omit<Question, 'name' | 'section' | 'asks' | 'decides'>>

const harmless = { samples: [authorizedFirstCallSample], harmless: true } as const
const ofRecords = { samples: [testRecordSample], needs: ['customer'] } as const
const ofOrders = { samples: [orders.orderSample], needs: ['orderCustomer'] } as const
const ofHeader = { samples: [limitHeader.remainingHeaderSample], needs: ['customer'] } as const
const sending = (requestsMax: number, recordsMax = requestsMax) => ({ requestsMax, recordsMax })

const askings: Record<keyof typeof texts, Asking> = {
  'token-unit': { samples: [tokenSample], harmless: true, run: token.askExpiresInUnit },
  address: { samples: [firstCallSample], harmless: true, run: askFirstCall },
  submission: { ...ofRecords, requestsMax: 1, run: records.askSubmission },
  'status-values': {
    samples: [records.recordPollsSample],
    needs: ['customer'],
    run: async (parts) => records.judgeStatusValues((await parts.sample(records.recordPollsSample)).polls),
  },
  'rate-polls': { ...ofHeader, run: limitHeader.askIfRequestKindCounts('poll') },
  'rate-failures': { ...ofHeader, run: limitHeader.askIfRequestKindCounts('refused') },
  'rate-orders': {
    samples: [limitHeader.remainingHeaderSample],
    needs: ['customer', 'orderCustomer'],
    run: limitHeader.askIfRequestKindCounts('order'),
  },
  'rate-scope': { ...ofHeader, run: judging(limitHeader.remainingHeaderSample, limitHeader.judgeRateScope) },
  'rate-tokens': { ...ofHeader, run: judging(limitHeader.remainingHeaderSample, limitHeader.judgeIfTokenCallsCount) },
  'rate-second': { samples: [limit.unthrottledPerBurstSample], needs: ['customer'], run: limit.askPerSecondLimit },
  'second-token': { samples: [token.tokenPairsSample], run: judging(token.tokenPairsSample, token.judgeSecondToken) },
  'bad-token': { ...harmless, requestsMax: 2, run: token.askBadToken },
  'unknown-id': { ...harmless, requestsMax: 4, run: refusals.askUnknownId },
  'unknown-path': { ...harmless, requestsMax: 2, run: refusals.askUnknownPath },
  'own-id': { ...ofRecords, ...sending(2 * observeRequestsMax), run: repetition.askOwnTransactionId },
  'mapped-fields': {
    samples: [records.fieldPlacesSample],
    needs: ['customer'],
    run: judging(records.fieldPlacesSample, records.judgeMappedFields),
  },
  amount: {
    samples: [records.amountTypesSample],
    needs: ['customer'],
    run: judging(records.amountTypesSample, records.judgeAmountType),
  },
  'order-date': {
    samples: [records.amountTypesSample],
    needs: ['customer'],
    ...sending(records.orderDateRequestsMax),
    run: records.askOrderDate,
  },
  field2: { ...ofRecords, ...sending(3 * observeRequestsMax), run: records.askField2 },
  'customer-length': { ...ofRecords, ...sending(records.customerLengthRequestsMax), run: records.askCustomerLength },
  'unknown-customer': {
    samples: [testRecordSample],
    needs: ['customer', 'unknownCustomer'],
    ...sending(observeRequestsMax + 3, observeRequestsMax),
    run: refusals.askUnknownCustomer,
  },
  idempotency: {
    samples: [repetition.repeatedRecordSample],
    needs: ['customer'],
    run: async (parts) =>
      repetition.judgeIdempotency(await parts.sample(repetition.repeatedRecordSample), parts.config.uncertainPolicy),
  },
  'idempotency-header': {
    samples: [repetition.repeatedRecordSample],
    needs: ['customer'],
    run: async (parts) =>
      repetition.judgeIdempotencyHeader(
        await parts.sample(repetition.repeatedRecordSample),
        parts.config.service.idempotencyHeader,
      ),
  },
  'idempotency-form': {
    samples: [repetition.repeatedRecordSample],
    needs: ['customer'],
    ...sending(repetition.keyFormRequestsMax),
    run: repetition.askIdempotencyForm,
  },
  order: { ...ofOrders, ...sending(1), run: orders.askOrder },
  'order-items': {
    samples: [orders.orderPollsSample],
    needs: ['orderCustomer'],
    run: async (parts) => orders.judgeOrderItems(await parts.sample(orders.orderPollsSample), orders.itemsJson(parts)),
  },
  'order-status': {
    samples: [orders.orderPollsSample],
    needs: ['orderCustomer'],
    run: judging(orders.orderPollsSample, records.judgeStatusValues),
  },
  'order-item-shape': { ...ofOrders, ...sending(3 * observeRequestsMax), run: orders.askOrderItemShape },
  'order-unknown-customer': { ...ofOrders, ...sending(observeRequestsMax), run: orders.askOrderUnknownCustomer },
  'unknown-order': { ...harmless, requestsMax: 2, run: orders.askUnknownOrder },
  // Needs a good token, because a wrong secret shows nothing if the right one gets no token either.
  'wrong-secret': {
    samples: [tokenSample],
    requestsMax: 1,
    run: async (parts) => token.judgeWrongSecret((await parts.askToken(`wrong-${parts.run}`)).answer),
  },
  'body-size': {
    samples: [testRecordSample],
    needs: ['customer', 'size'],
    ...sending(records.bodySizeRequestsMax),
    run: records.askBodySize,
  },
  'token-lifetime': {
    samples: [tokenSample, token.tokenHeldUntilRefusedSample],
    run: async (parts) => token.judgeTokenLifetime(parts.exchanges(), parts.config.service),
  },
  'rate-window': { samples: [limit.limitCountsSample], needs: ['customer'], run: limit.askRateWindow },
  'rate-limit': {
    samples: [limit.unthrottledPerBurstSample, limit.limitCountsSample],
    needs: ['customer'],
    run: limit.askRateLimit,
  },
  'rate-throttled': { samples: [limit.limitCountsSample], needs: ['customer'], run: limit.askIfThrottledRequestsCount },
  'rate-refusal': {
    samples: [limit.limitCountsSample],
    needs: ['customer'],
    run: async (parts) => limit.judgeThrottleAnswer(parts.exchanges(), parts.throttles()),
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

function judging<T>(sample: Sample<T>, judge: (taken: T) => Finding): Question['run'] {
  return async (parts) => judge(await parts.sample(sample))
}

/** Judges all answers so far. */
function judgingAll(judge: (exchanges: readonly Exchange[]) => Finding): Question['run'] {
  return async (parts) => judge(parts.exchanges())
}
