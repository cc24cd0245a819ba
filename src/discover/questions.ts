import type { Exchange } from './exchange.ts'
import type { Finding } from './finding.ts'
import * as connection from './judges/connection.ts'
import * as orders from './judges/orders.ts'
import * as rate from './judges/rate.ts'
import * as records from './judges/records.ts'
import * as refusals from './judges/refusals.ts'
import * as token from './judges/token.ts'
import type { Question, Sample } from './question.ts'
import {
  connectionSample,
  firstCallSample,
  firstExchangeSample,
  heldTokenSample,
  limitSample,
  tokenSample,
  tokensSample,
  windowSample,
} from './samples/calls.ts'
import {
  amountsSample,
  lengthsSample,
  lifeSample,
  mappedSample,
  ownIdsSample,
  repeatsSample,
  submissionSample,
} from './samples/records.ts'

/**
 * Every question, in the order in which they are asked: first those that change nothing, then records, and last those that look
 * at all answers so far. If the budget ends early, the last ones are not asked.
 */
export const questions: readonly Question[] = [
  ...rows({ samples: [tokenSample], harmless: true }, [
    ['token-unit', '2.1', 'what expires_in counts: seconds, milliseconds or minutes', token.askTokenUnit],
    ['token-fields', '2.1', 'what else the answer to a token request has', token.askTokenFields],
  ]),
  ...rows({ samples: [firstExchangeSample], harmless: true }, [
    [
      'address',
      '5.6',
      'whether this machine’s address may call the API, and what answers there',
      connection.askAddress,
    ],
  ]),
  ...rows({ samples: [firstCallSample], harmless: true }, [
    [
      'unknown-id',
      '4.3',
      'what a question for a transaction that does not exist is answered',
      async (parts) => refusals.judgeUnknownId((await parts.sample(firstCallSample)).first.answer, 'status_unknown'),
    ],
  ]),
  ...rows({ requestsMax: 1, samples: [firstCallSample], harmless: true }, [
    [
      'bad-token',
      '5.4',
      'what a call with a token that nobody gave is answered, and what its WWW-Authenticate says',
      token.askBadToken,
    ],
  ]),
  ...rows({ samples: [tokensSample] }, [
    [
      'rate-scope',
      '8',
      'whether the limit is one for all tokens of a client (or for its address), or one for each token',
      judging(tokensSample, rate.judgeRateScope),
    ],
    [
      'rate-polls',
      '8',
      'whether a question for a transaction counts against the limit',
      judging(tokensSample, rate.judgeRatePolls),
    ],
    ['rate-orders', '8', 'whether data and orders share a limit', judging(tokensSample, rate.judgeRateOrders)],
    [
      'rate-tokens',
      '8',
      'whether a token request counts against the limit',
      judging(tokensSample, rate.judgeRateTokens),
    ],
    ['rate-limit', '8', 'how many requests a window has, by what remains after the first', rate.askRateLimit],
  ]),
  ...rows({ samples: [windowSample, tokensSample], needs: ['slow'] }, [
    [
      'rate-window',
      '8',
      'whether the window slides or is fixed, and how long it is (watched for nearly two of them)',
      rate.askRateWindow,
    ],
  ]),
  ...rows({ samples: [tokenSample, tokensSample] }, [
    ['second-token', '4.1', 'whether a token stays valid when the client is given another', token.askSecondToken],
  ]),
  ...rows({ samples: [submissionSample], needs: ['customer'] }, [
    ['submission', '2.3', 'how a record is taken: status, id, and what else its answer has', records.askSubmission],
    ['transaction-id', '2.3', 'what the service’s ids look like', records.askTransactionId],
  ]),
  ...rows({ samples: [lifeSample], needs: ['customer'] }, [
    [
      'status-values',
      '3.1',
      'the statuses of a transaction from first to last, and whether accepted is one',
      judging(lifeSample, records.judgeStatusValues),
    ],
    ['processing-time', '3.1', 'how long one transaction takes', judging(lifeSample, records.judgeProcessingTime)],
    ['result', '2.4', 'the shape of result, once a transaction is processed', records.askResult],
  ]),
  ...rows({ samples: [mappedSample], needs: ['customer'] }, [
    [
      'mapped-fields',
      '2.5',
      'where customer_id, order_date and total_amount are read, and whether they must be there',
      judging(mappedSample, records.judgeMappedFields),
    ],
  ]),
  ...rows({ samples: [repeatsSample], needs: ['customer'] }, [
    [
      'idempotency',
      '4.2',
      'whether a request that is sent again under its Idempotency-Key is recognised',
      async (parts) => records.judgeIdempotency(await parts.sample(repeatsSample), parts.config.uncertainPolicy),
    ],
    [
      'idempotency-header',
      '4.2',
      'in which header a key is honoured',
      async (parts) =>
        records.judgeIdempotencyHeader(await parts.sample(repeatsSample), parts.config.service.idempotencyHeader),
    ],
  ]),
  ...rows({ samples: [ownIdsSample], needs: ['customer'] }, [
    ['own-id', '4.2', 'whether a record may bring its own transactionId', judging(ownIdsSample, records.judgeOwnId)],
  ]),
  ...rows({ samples: [repeatsSample, ownIdsSample], needs: ['customer'] }, [
    [
      'e002',
      '7.2',
      'the HTTP status of E002, where a key or an id that is used twice brings it about',
      refusals.askE002,
    ],
  ]),
  ...rows({}, [['e003', '7.2', 'the HTTP status of E003', refusals.askE003]]),
  ...rows({ requestsMax: 4, recordsMax: 1, samples: [submissionSample], needs: ['customer', 'unknownCustomer'] }, [
    [
      'unknown-customer',
      '7.2',
      'what a record for a customer that the service does not know is answered (E001)',
      refusals.askUnknownCustomer,
    ],
  ]),
  ...rows({ requestsMax: 1, recordsMax: 1, samples: [amountsSample], needs: ['customer'] }, [
    [
      'amount',
      '2.5',
      'whether total_amount is a number or its digits as text, and whether a third decimal is refused',
      records.askAmount,
    ],
  ]),
  ...rows({ requestsMax: 3, recordsMax: 3, samples: [amountsSample], needs: ['customer'] }, [
    ['order-date', '2.5', 'whether order_date may have milliseconds, and which offsets', records.askOrderDate],
  ]),
  ...rows({ samples: [orders.orderSample], needs: ['orderCustomer'] }, [
    [
      'order',
      '2.6',
      'how an order is taken: status, id, and what else its answer has',
      async (parts) => orders.judgeOrder((await parts.sample(orders.orderSample)).answer),
    ],
  ]),
  ...rows({ samples: [orders.orderLifeSample], needs: ['orderCustomer'] }, [
    ['order-items', '2.6', 'whether an order’s items come back as they were sent, to the digit', orders.askOrderItems],
  ]),
  ...rows({ requestsMax: 3, recordsMax: 3, samples: [orders.orderSample], needs: ['orderCustomer'] }, [
    [
      'order-item-shape',
      '2.6',
      'what an order’s items must be: none, texts, objects without fields',
      orders.askOrderItemShape,
    ],
  ]),
  ...rows({ samples: [orders.orderLifeSample], needs: ['orderCustomer'] }, [
    ['order-status', '3.2', 'the statuses of an order from first to last', orders.askOrderStatus],
    ['order-created-at', '2.6', 'whether createdAt is in the answer to a read', orders.askOrderCreatedAt],
  ]),
  ...rows({ requestsMax: 1, recordsMax: 1, samples: [orders.orderSample], needs: ['orderCustomer'] }, [
    [
      'order-unknown-customer',
      '7.2',
      'what an order for a customer that there is not is answered',
      orders.askOrderUnknownCustomer,
    ],
  ]),
  ...rows({ requestsMax: 1, samples: [firstCallSample], harmless: true }, [
    ['unknown-order', '4.5', 'what a question for an order that does not exist is answered', orders.askUnknownOrder],
  ]),
  // Needs a good token, because a wrong secret tells nothing if the right one gets no token either.
  ...rows({ requestsMax: 1, samples: [tokenSample] }, [
    [
      'wrong-secret',
      '4.1',
      'what the issuer answers to a wrong secret (one try)',
      async (parts) => token.judgeWrongSecret((await parts.askToken(`wrong-${parts.run}`)).answer),
    ],
  ]),
  ...rows({ requestsMax: 1, samples: [firstCallSample], harmless: true }, [
    ['unknown-path', '4', 'what a path at which nothing is served is answered', refusals.askUnknownPath],
    ['other-method', '7.1', 'whether a method that a path does not take is 405 or 404', refusals.askOtherMethod],
    [
      'odd-id',
      '4.3',
      'what an id with a slash, a percent sign, a blank and a letter beyond ASCII is answered',
      refusals.askOddId,
    ],
  ]),
  ...rows({ samples: [lengthsSample], needs: ['customer'] }, [
    [
      'customer-length',
      '2.2',
      'how the ten characters of a customerId are counted: as characters, bytes or UTF-16 units',
      refusals.askCustomerLength,
    ],
    [
      'long-customer',
      '2.2',
      'whether a customerId that is too long is refused with E001, or without a code',
      refusals.askLongCustomer,
    ],
  ]),
  ...rows({ requestsMax: 1, recordsMax: 1, samples: [submissionSample], needs: ['customer'] }, [
    ['field1', '2.2', 'what a field1 beyond value1, value2 and value3 is answered', refusals.askField1],
  ]),
  ...rows({ requestsMax: 2, recordsMax: 2, samples: [submissionSample], needs: ['customer'] }, [
    ['field2', '2.2', 'whether field2 may be empty, or have 1,000 characters', refusals.askField2],
  ]),
  ...rows(
    {
      requestsMax: records.stepsMax,
      recordsMax: records.stepsMax,
      samples: [submissionSample],
      needs: ['customer', 'size'],
    },
    [['body-size', '8', 'how large a body may be, by steps', records.askBodySize]],
  ),
  ...rows({ samples: [connectionSample], harmless: true }, [
    ['http-version', '1', 'the version of HTTP in which it answers', connection.askHttpVersion],
    [
      'keep-alive',
      '1',
      'how long it keeps an idle connection open (seen with --slow, else as it says)',
      judging(connectionSample, connection.judgeKeepAlive),
    ],
    ['tls', '1', 'the version of TLS, and until when its certificate is valid', connection.askTls],
  ]),
  ...rows({ samples: [heldTokenSample], needs: ['slow'] }, [
    [
      'token-lifetime',
      '5.3',
      'how long a token is really good (held to its end, 75 minutes at most)',
      async (parts) => token.judgeTokenHeld(parts.exchanges(), parts.config.service),
    ],
  ]),
  ...rows({ samples: [tokenSample] }, [
    [
      'token-held',
      '2.1',
      'how long a token was really good, where one ended while this asked',
      async (parts) => token.judgeTokenHeld(parts.exchanges(), parts.config.service),
    ],
  ]),
  ...rows({ samples: [firstCallSample], harmless: true }, [
    ['error-body', '7', 'the shape of an error’s body, and where its code stands', judgingAll(refusals.judgeErrorBody)],
    ['rate-header', '8', 'which answers carry X-RateLimit-Remaining', judgingAll(rate.judgeRateHeader)],
    [
      'compression',
      '1',
      'whether answers are compressed though nobody asked for it',
      judgingAll(connection.judgeCompression),
    ],
  ]),
  ...rows({ samples: [firstExchangeSample], harmless: true }, [
    ['redirects', '4', 'whether any answer sends elsewhere', connection.askRedirects],
  ]),
  ...rows({ samples: [firstCallSample], harmless: true }, [
    ['clock', '2.3', 'how far the service’s clock is from ours, by the header Date', judgingAll(connection.judgeClock)],
    [
      'response-time',
      '8',
      'how long answers take',
      async (parts) => connection.judgeResponseTime(parts.exchanges(), parts.config.service.requestTimeoutMs),
    ],
  ]),
  ...rows({ samples: [limitSample], needs: ['rate'] }, [
    [
      'rate-refusal',
      '8',
      'how the first request beyond the limit is refused, and the form of its Retry-After',
      judging(limitSample, rate.judgeRateRefusal),
    ],
  ]),
]

type Row = [
  name: string,
  /** Where docs/interface.md is silent. */
  section: string,
  asks: string,
  run: Question['run'],
]

/** Questions that share what they need: requests and records of their own, samples, options, or leave to ask production. */
function rows(shared: Partial<Question>, table: readonly Row[]): Question[] {
  const usual = { requestsMax: 0, recordsMax: 0, samples: [], needs: [], harmless: false }
  return table.map(([name, section, asks, run]) => ({ ...usual, ...shared, name, section, asks, run }))
}

/** Judges one sample, and sends nothing else. */
function judging<T>(sample: Sample<T>, judge: (taken: T) => Finding): Question['run'] {
  return async (parts) => judge(await parts.sample(sample))
}

/** Judges everything that was asked so far. */
function judgingAll(judge: (exchanges: readonly Exchange[]) => Finding): Question['run'] {
  return async (parts) => judge(parts.exchanges())
}
