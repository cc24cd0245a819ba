import * as limit from './judges/limit.ts'
import * as limitHeader from './judges/limitHeader.ts'
import * as orders from './judges/orders.ts'
import * as records from './judges/records.ts'
import * as refusals from './judges/refusals.ts'
import * as repetition from './judges/repetition.ts'
import * as token from './judges/token.ts'
import type { Question } from './question.ts'

const ourStatuses = 'accepted, pending, completed, failed'
const ourLimit = 'RATE_LIMIT_REQUESTS, RATE_LIMIT_WINDOW_SECONDS'

/**
 * Each question's section of docs/reference/interface.md, what is asked, what the answer decides, and what the daemon
 * assumes. Questions that judge all answers or use the limit up come last, because the budget may end early.
 */
const texts = {
  'token-unit': ['2.1', 'Which unit has expires_in?', 'TOKEN_EXPIRES_IN_UNIT', 'as TOKEN_EXPIRES_IN_UNIT says'],
  address: ['5.6', 'May this machine’s address call the API?', 'SERVICE_BASE_URL', 'yes; otherwise 401 or 403'],
  submission: ['2.3', 'How is a record accepted?', 'whether --record is needed', '200 with a transactionId'],
  'status-values': ['3.1', 'Which statuses has a transaction?', 'whether records end', ourStatuses],
  'rate-failures': ['8', 'Does a refused request (400) use the limit?', 'what the limit counts', 'yes'],
  'rate-second': ['8', 'Is there also a limit per second?', ourLimit, 'none'],
  'second-token': ['4.1', 'Does a new token end the one before?', 'one instance, or several', 'both are valid'],
  'bad-token': ['5.4', 'Which answer does a false token get?', 'TOKEN_REFRESH_SECONDS', '401'],
  'unknown-id': ['4.3', 'Which answer does an unknown transaction get?', 'how a lost one is noticed', '404'],
  'unknown-path': ['4', 'Which answer does an unknown path get?', 'whether a moved API is noticed', '404, 405 or 410'],
  'own-id': ['4.2', 'May a record bring its transactionId? Must it?', 'the mapping; UNCERTAIN_POLICY=probe', 'no'],
  'mapped-fields': ['2.5', 'Where are the mapped fields read? Must they be sent?', 'body in the mapping', 'in data'],
  amount: ['2.5', 'Is total_amount a number or text?', '`as` in the mapping', 'a number'],
  'order-date': [
    '2.5',
    'May order_date have milliseconds? Which offsets?',
    'what the ERP writes',
    'both, in UTC with Z',
  ],
  field2: ['2.2', 'May field2 be empty, long, have any character?', 'required, maxLength in the mapping', 'any text'],
  'unknown-customer': ['7.2', 'Which answer does an unknown customer get?', 'how such records are found', '400 E001'],
  idempotency: ['4.2', 'Is a repeated request recognised?', 'UNCERTAIN_POLICY', 'as UNCERTAIN_POLICY says'],
  'idempotency-header': ['4.2', 'In which header is a key recognised?', 'IDEMPOTENCY_HEADER', 'in IDEMPOTENCY_HEADER'],
  'idempotency-form': [
    '4.2',
    'May a key be quoted, bare, or both?',
    'IDEMPOTENCY_KEY_FORM',
    'as IDEMPOTENCY_KEY_FORM says',
  ],
  order: ['2.6', 'How is an order accepted?', 'whether --record is needed', '201 with an orderId'],
  'order-status': ['3.2', 'Which statuses has an order?', 'whether orders end', ourStatuses],
  'order-item-shape': ['2.6', 'May items be empty? Which fields must they have?', 'items in the mapping', 'any JSON'],
  'order-unknown-customer': [
    '7.2',
    'Which answer does an unknown customer’s order get?',
    'how to find them',
    '400 E001',
  ],
  'unknown-order': ['4.5', 'Which answer does an unknown order get?', 'how a lost order is noticed', '404'],
  'body-size': ['8', 'How large may a body be (--size)?', 'PAYLOAD_MAX_BYTES', 'up to PAYLOAD_MAX_BYTES'],
  'token-lifetime': ['5.3', 'How long does a token last (--slow)?', 'TOKEN_REFRESH_SECONDS', 'as expires_in says'],
  'rate-window': ['8', 'Are all requests free after a window (--rate)?', 'RATE_LIMIT_WINDOW_SECONDS', 'yes'],
  'rate-limit': ['8', 'How many requests fit into a window (--rate)?', ourLimit, 'RATE_LIMIT_REQUESTS'],
  'rate-throttled': [
    '8',
    'Does a request with a 429 use the limit (--rate)?',
    'how other clients should back off',
    'yes or no',
  ],
  'rate-header': [
    '8',
    'Which answers have X-RateLimit-Remaining?',
    'whether other clients are noticed',
    'all, some or none',
  ],
  'server-errors': ['7.1', 'Is a record stored although it got a 5xx?', 'SERVER_ERRORS', 'as SERVER_ERRORS says'],
  'error-body': [
    '7',
    'Does the daemon find error codes?',
    'whether codes or only statuses count',
    'in the usual places',
  ],
} as const satisfies Record<string, readonly [section: string, asks: string, decides: string, assumed: string]>

type Asking = Pick<Question, 'run'> & Partial<Pick<Question, 'needs' | 'harmless'>>

const harmless = (run: Question['run']): Asking => ({ run, harmless: true })
const ofRecords = (run: Question['run']): Asking => ({ run, needs: ['customer'] })
const ofCounts = (run: Question['run']): Asking => ({ run, needs: ['customer', 'rate'] })
const ofOrders = (run: Question['run']): Asking => ({ run, needs: ['orderCustomer'] })

const askings: Record<keyof typeof texts, Asking> = {
  'token-unit': harmless(token.askExpiresInUnit),
  address: harmless(refusals.askWhetherAddressIsLetIn),
  submission: ofRecords(records.askAnswerToSubmission),
  'status-values': ofRecords(records.askStatusValues),
  'rate-failures': ofRecords(limitHeader.askWhetherRefusedRequestsUseLimit),
  'rate-second': ofRecords(limit.askPerSecondLimit),
  'second-token': { run: token.askWhetherSecondTokenEndsFirst },
  'bad-token': harmless(refusals.askAnswerToBadToken),
  'unknown-id': harmless(refusals.askAnswerToUnknownId),
  'unknown-path': harmless(refusals.askAnswerToUnknownPath),
  'own-id': ofRecords(repetition.askHowSubmissionIdIsTreated),
  'mapped-fields': ofRecords(records.askPlaceOfMappedFields),
  amount: ofRecords(records.askAmountType),
  'order-date': ofRecords(records.askOrderDateFormat),
  field2: ofRecords(records.askField2Limits),
  'unknown-customer': { run: refusals.askAnswerToUnknownCustomer, needs: ['customer', 'unknownCustomer'] },
  idempotency: ofRecords(repetition.askWhetherRepetitionIsRecognised),
  'idempotency-header': ofRecords(repetition.askIdempotencyHeader),
  'idempotency-form': ofRecords(repetition.askIdempotencyKeyForm),
  order: ofOrders(orders.askAnswerToNewOrder),
  'order-status': ofOrders(orders.askOrderStatusValues),
  'order-item-shape': ofOrders(orders.askOrderItemShape),
  'order-unknown-customer': ofOrders(orders.askAnswerToOrderOfUnknownCustomer),
  'unknown-order': harmless(refusals.askAnswerToUnknownOrder),
  'body-size': { run: records.askLargestBody, needs: ['customer', 'size'] },
  'token-lifetime': { run: token.askTokenLifetime },
  'rate-window': ofCounts(limit.askRateWindow),
  'rate-limit': ofCounts(limit.askRateLimit),
  'rate-throttled': ofCounts(limit.askWhetherThrottledRequestsUseLimit),
  'rate-header': harmless(limitHeader.askWhichAnswersHaveRateHeader),
  'server-errors': ofRecords(refusals.askWhetherFailedRequestsAreStored),
  'error-body': harmless(refusals.askWhetherErrorCodesAreRead),
}

export const questions: readonly Question[] = (Object.keys(texts) as (keyof typeof texts)[]).map((name) => {
  const [section, asks, decides, assumed] = texts[name]
  return { needs: [], harmless: false, ...askings[name], name, section, asks, decides, assumed }
})
