import type { Exchange } from './exchange.ts'
import type { Finding } from './finding.ts'
import { addressSample, askAddress, firstCallSample, tokenSample } from './firstCall.ts'
import * as answers from './judges/answers.ts'
import * as orders from './judges/orders.ts'
import * as rate from './judges/rate.ts'
import * as records from './judges/records.ts'
import * as refusals from './judges/refusals.ts'
import * as token from './judges/token.ts'
import type { Parts, Question, Sample } from './question.ts'
import { acceptedShape, controlSample, observeMax } from './testRecord.ts'

/** Whether each record brings its id, which a service may know it by. */
const bringsId = async (parts: Parts) => (await acceptedShape(parts)).ownId

const ofRecords = { samples: [controlSample], needs: ['customer'] } as const
const ofOrders = { samples: [orders.orderSample], needs: ['orderCustomer'] } as const
const ofHeader = { samples: [rate.headerSample], needs: ['customer'] } as const
const harmless = { samples: [addressSample], harmless: true } as const
const observations = (count: number) => ({ requestsMax: count * observeMax, recordsMax: count * observeMax })

/**
 * Every question, in the order in which they are asked: first those that change nothing, then records and orders, and last those
 * that look at all answers so far, or use the limit up. If the budget ends early, the last ones are not asked.
 */
export const questions: readonly Question[] = [
  row('token-unit', '2.1', 'what expires_in counts: seconds, milliseconds or minutes', {
    decides: 'TOKEN_EXPIRES_IN_UNIT',
    ...{ samples: [tokenSample], harmless: true },
    run: token.askTokenUnit,
  }),
  row('address', '5.6', 'whether this machine’s address may call the API, and what answers there', {
    decides: 'what to ask the operator of the service for; SERVICE_BASE_URL',
    ...{ samples: [firstCallSample], harmless: true },
    run: askAddress,
  }),
  row('submission', '2.3', 'how a record is taken: its status, and its id', {
    decides: 'whether --record is needed; DISCOVERED_CONTRACT',
    ...ofRecords,
    requestsMax: 1,
    run: records.askSubmission,
  }),
  row('status-values', '3.1', 'the statuses of a transaction from first to last, and whether accepted is one', {
    decides: 'whether records end, or a person has to resolve them',
    ...{ samples: [records.livesSample], needs: ['customer'] },
    run: async (parts) => records.judgeStatusValues((await parts.sample(records.livesSample)).polls),
  }),
  row('rate-polls', '8', 'whether a question for a transaction counts against the limit', {
    decides: 'how the limit is counted here',
    ...ofHeader,
    run: rate.askRatePolls,
  }),
  row('rate-failures', '8', 'whether a request that is refused (400) counts against the limit', {
    decides: 'how the limit is counted here',
    ...ofHeader,
    run: rate.askRateFailures,
  }),
  row('rate-orders', '8', 'whether data and orders share a limit', {
    decides: 'how the limit is counted here',
    samples: [rate.headerSample],
    needs: ['customer', 'orderCustomer'],
    run: rate.askRateOrders,
  }),
  row(
    'rate-scope',
    '8',
    'whether the limit is one for all tokens of a client (or for its address), or one for each token',
    {
      decides: 'whether instances could have more together',
      ...ofHeader,
      run: judging(rate.headerSample, rate.judgeRateScope),
    },
  ),
  row('rate-tokens', '8', 'whether a token request counts against the limit', {
    decides: 'how the limit is counted here',
    ...ofHeader,
    run: judging(rate.headerSample, rate.judgeRateTokens),
  }),
  row('rate-second', '8', 'whether there is a second limit, for a second', {
    decides: 'RATE_LIMIT_REQUESTS, RATE_LIMIT_WINDOW_SECONDS',
    ...{ samples: [rate.secondSample], needs: ['customer'] },
    run: rate.askRateSecond,
  }),
  row('second-token', '4.1', 'whether a token stays valid when the client is given another', {
    decides: 'how many instances may run',
    samples: [token.tokenPairsSample],
    run: judging(token.tokenPairsSample, token.judgeSecondToken),
  }),
  row('bad-token', '5.4', 'what a call with a token that nobody gave is answered', {
    decides: 'TOKEN_REFRESH_SECONDS',
    ...harmless,
    requestsMax: 2,
    run: token.askBadToken,
  }),
  row('unknown-id', '4.3', 'what a question for a transaction that does not exist is answered', {
    decides: 'how a lost transaction is noticed',
    ...harmless,
    requestsMax: 4,
    run: refusals.askUnknownId,
  }),
  row('unknown-path', '4', 'what a path at which nothing is served is answered', {
    decides: 'whether a moved API is noticed',
    ...harmless,
    requestsMax: 2,
    run: refusals.askUnknownPath,
  }),
  row('own-id', '4.2', 'whether a record may, or must, bring its own transactionId', {
    decides: 'transactionId in the mapping; UNCERTAIN_POLICY=probe',
    ...ofRecords,
    ...observations(2),
    run: records.askOwnId,
  }),
  row(
    'mapped-fields',
    '2.5',
    'where customer_id, order_date and total_amount are read, and whether they must be there',
    {
      decides: 'the body of the mapping',
      ...{ samples: [records.mappedSample], needs: ['customer'] },
      run: judging(records.mappedSample, records.judgeMappedFields),
    },
  ),
  row('amount', '2.5', 'whether total_amount is a number or its digits as text', {
    decides: '`as` in the mapping',
    ...{ samples: [records.amountsSample], needs: ['customer'] },
    run: judging(records.amountsSample, records.judgeAmount),
  }),
  row('order-date', '2.5', 'whether order_date may have milliseconds, and which offsets', {
    decides: 'what the ERP writes',
    ...{ samples: [records.amountsSample], needs: ['customer'] },
    ...observations(4),
    run: records.askOrderDate,
  }),
  row('field2', '2.2', 'whether field2 may be empty, have 1,000 characters, or any character', {
    decides: 'required and maxLength in the mapping',
    ...ofRecords,
    ...observations(3),
    run: records.askField2,
  }),
  row(
    'customer-length',
    '2.2',
    'how the ten characters of a customerId are counted: as characters, bytes or UTF-16 units',
    {
      decides: 'maxLength in the mapping',
      ...ofRecords,
      ...observations(5),
      run: records.askCustomerLength,
    },
  ),
  row('unknown-customer', '7.2', 'what a record for a customer that the service does not know is answered (E001)', {
    decides: 'how such records are found; DISCOVERED_CONTRACT',
    samples: [controlSample],
    needs: ['customer', 'unknownCustomer'],
    requestsMax: observeMax + 3,
    recordsMax: observeMax,
    run: refusals.askUnknownCustomer,
  }),
  row('idempotency', '4.2', 'whether a request that is sent again under its idempotency key is recognised', {
    decides: 'UNCERTAIN_POLICY',
    ...{ samples: [records.repeatsSample], needs: ['customer'] },
    run: async (parts) =>
      records.judgeIdempotency(
        await parts.sample(records.repeatsSample),
        parts.config.uncertainPolicy,
        await bringsId(parts),
      ),
  }),
  row('idempotency-header', '4.2', 'in which header a key is honoured', {
    decides: 'IDEMPOTENCY_HEADER',
    ...{ samples: [records.repeatsSample], needs: ['customer'] },
    run: async (parts) =>
      records.judgeIdempotencyHeader(
        await parts.sample(records.repeatsSample),
        parts.config.service.idempotencyHeader,
        await bringsId(parts),
      ),
  }),
  row('idempotency-form', '4.2', 'whether a key is taken in quotes, bare, or either', {
    decides: 'IDEMPOTENCY_KEY_FORM',
    ...{ samples: [records.repeatsSample], needs: ['customer'] },
    ...{ requestsMax: records.idempotencyFormMax, recordsMax: records.idempotencyFormMax },
    run: records.askIdempotencyForm,
  }),
  row('order', '2.6', 'how an order is taken: its status, and its id', {
    decides: 'whether --record is needed; DISCOVERED_CONTRACT',
    ...ofOrders,
    ...{ requestsMax: 1, recordsMax: 1 },
    run: orders.askOrder,
  }),
  row('order-items', '2.6', 'whether an order’s items come back as they were sent, to the digit', {
    decides: '`as` in the mapping',
    ...{ samples: [orders.orderLivesSample], needs: ['orderCustomer'] },
    run: async (parts) => orders.judgeOrderItems(await parts.sample(orders.orderLivesSample), orders.itemsText(parts)),
  }),
  row('order-status', '3.2', 'the statuses of an order from first to last', {
    decides: 'whether orders end, or a person has to resolve them',
    ...{ samples: [orders.orderLivesSample], needs: ['orderCustomer'] },
    run: judging(orders.orderLivesSample, records.judgeStatusValues),
  }),
  row('order-item-shape', '2.6', 'what an order’s items must be: none, texts, objects without fields', {
    decides: 'items in the mapping',
    ...ofOrders,
    ...observations(3),
    run: orders.askOrderItemShape,
  }),
  row('order-unknown-customer', '7.2', 'what an order for a customer that there is not is answered', {
    decides: 'how such orders are found',
    ...ofOrders,
    ...observations(1),
    run: orders.askOrderUnknownCustomer,
  }),
  row('unknown-order', '4.5', 'what a question for an order that does not exist is answered', {
    decides: 'how a lost order is noticed',
    ...harmless,
    requestsMax: 2,
    run: orders.askUnknownOrder,
  }),
  // Needs a good token, because a wrong secret tells nothing if the right one gets no token either.
  row('wrong-secret', '4.1', 'what the issuer answers to a wrong secret (one try)', {
    decides: 'what a wrong secret looks like in status',
    ...{ samples: [tokenSample], requestsMax: 1 },
    run: async (parts) => token.judgeWrongSecret((await parts.askToken(`wrong-${parts.run}`)).answer),
  }),
  row('body-size', '8', 'how large a body may be, by steps', {
    decides: 'PAYLOAD_MAX_BYTES',
    samples: [controlSample],
    needs: ['customer', 'size'],
    ...{ requestsMax: records.sizeStepsMax, recordsMax: records.sizeStepsMax },
    run: records.askBodySize,
  }),
  row('token-lifetime', '5.3', 'how long a token is really good (with --slow held to its end, 75 minutes at most)', {
    decides: 'TOKEN_REFRESH_SECONDS, TOKEN_EXPIRES_IN_UNIT',
    samples: [tokenSample, token.heldTokenSample],
    run: token.askTokenLifetime,
  }),
  row('rate-window', '8', 'whether the window slides or is fixed, and how long it is (with --slow watched over two)', {
    decides: 'RATE_LIMIT_WINDOW_SECONDS',
    ...{ samples: [rate.headerSample, rate.windowSample], needs: ['customer'] },
    run: rate.askRateWindow,
  }),
  row('rate-limit', '8', 'how many requests a window has: by X-RateLimit-Remaining, with --rate by counting', {
    decides: 'RATE_LIMIT_REQUESTS, RATE_LIMIT_WINDOW_SECONDS',
    ...{ samples: [rate.secondSample, rate.countsSample], needs: ['customer'] },
    run: rate.askRateLimit,
  }),
  row('rate-throttled', '8', 'whether a request that was answered 429 counts against the limit (with --rate)', {
    decides: 'how other clients of these credentials should back off',
    ...{ samples: [rate.countsSample], needs: ['customer'] },
    run: rate.askRateThrottled,
  }),
  row('rate-refusal', '8', 'how a request beyond the limit is refused, and the form of its Retry-After', {
    decides: 'whether the daemon knows how long to wait',
    ...{ samples: [rate.countsSample], needs: ['customer'] },
    run: async (parts) => rate.judgeRateRefusal(parts.exchanges(), parts.throttles()),
  }),
  row('rate-header', '8', 'which answers carry X-RateLimit-Remaining', {
    decides: 'whether others may spend from the limit; DISCOVERED_CONTRACT',
    ...harmless,
    run: judgingAll(rate.judgeRateHeader),
  }),
  row('error-body', '7', 'the shape of an error’s body, and where its code stands', {
    decides: 'whether codes are found',
    ...harmless,
    run: judgingAll(refusals.judgeErrorBody),
  }),
  row('compression', '1', 'whether answers are compressed though nobody asked for it', {
    decides: 'whether a proxy is needed',
    ...harmless,
    run: judgingAll(answers.judgeCompression),
  }),
  row('redirects', '4', 'whether any answer sends elsewhere', {
    decides: 'SERVICE_BASE_URL',
    ...{ samples: [firstCallSample], harmless: true },
    run: answers.askRedirects,
  }),
  row('clock', '2.3', 'how far the service’s clock is from ours, by the header Date', {
    decides: 'which clock to set',
    ...harmless,
    run: judgingAll(answers.judgeClock),
  }),
  row('response-time', '8', 'how long answers take', {
    decides: 'REQUEST_TIMEOUT_SECONDS',
    ...harmless,
    run: async (parts) => answers.judgeResponseTime(parts.exchanges(), parts.config.service.requestTimeoutMs),
  }),
]

type Rest = Pick<Question, 'decides' | 'run'> & Partial<Omit<Question, 'name' | 'section' | 'asks'>>

/** @param section where docs/reference/interface.md is silent */
function row(name: string, section: string, asks: string, rest: Rest): Question {
  return { requestsMax: 0, recordsMax: 0, samples: [], needs: [], harmless: false, ...rest, name, section, asks }
}

/** Judges one sample, and sends nothing else. */
function judging<T>(sample: Sample<T>, judge: (taken: T) => Finding): Question['run'] {
  return async (parts) => judge(await parts.sample(sample))
}

/** Judges everything that was asked so far. */
function judgingAll(judge: (exchanges: readonly Exchange[]) => Finding): Question['run'] {
  return async (parts) => judge(parts.exchanges())
}
