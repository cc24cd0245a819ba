import { type NotShown, showsCode } from '../support/serviceAlternatives.ts'

/** What is to be found out by a question. */
export interface Truth {
  /** What `found` has to be, whole. */
  found: RegExp
  /** Whether it can be known by asking: else to say that it cannot be known is right, too. */
  surely: boolean
}

/**
 * What `outboxd discover` has to find of a sandbox that is set so, by the name of the question. Written from the settings, not from
 * the questions: of one that is not here nothing is held to be true.
 *
 * It is asked as `ask(url, customers)` of ask.ts has it, with processing that takes two seconds.
 */
export function truthOf(service: NotShown): Record<string, Truth> {
  return {
    ...ofTokens(service),
    ...ofRefusals(service),
    ...ofRecords(service),
    ...ofRepetition(service),
    ...ofTransactions(service),
    ...ofTheLimit(service),
    ...ofAnswers(service),
  }
}

const literal = (text: string | number) => String(text).replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&')
const oneOf = (...texts: (string | number)[]) => new RegExp(`^(${texts.map(literal).join('|')})$`)
/** It can be seen. */
const sure = (...texts: (string | number)[]): Truth => ({ found: oneOf(...texts), surely: true })
/** It may be seen. */
const likely = (...texts: (string | number)[]): Truth => ({ found: oneOf(...texts), surely: false })
const matching = (found: RegExp, surely = true): Truth => ({ found, surely })

/** As an answer is called: its status, and a code of the interface where one can be read. */
function named(status: number, code: string | null, { errorShape }: NotShown): string {
  const isRead = code !== null && (showsCode(errorShape) || (status >= 500 && errorShape !== 'empty'))
  return isRead ? `${status} ${code}` : String(status)
}

function ofTokens(service: NotShown): Record<string, Truth> {
  const { expiresInUnit, expiresInForm, tokenForm, tokenMoreFields, wrongSecretStatus } = service
  return {
    'token-unit': expiresInForm === 'absent' ? sure('none') : { ...sure(expiresInUnit), surely: tokenForm === 'jwt' },
    'token-fields': tokenMoreFields ? sure('scope, ext_expires_in, not-before-policy') : sure('none'),
    'wrong-secret': sure(wrongSecretStatus),
    'second-token': likely('both valid'),
  }
}

function ofRefusals(service: NotShown): Record<string, Truth> {
  const { unknownIdStatus, oddIdStatus, wrongMethodStatus, e001Status } = service
  return {
    address: sure('let in'),
    'bad-token': sure(401),
    'error-body': matching(errorBody(service)),
    'other-method': sure(wrongMethodStatus),
    'unknown-id': sure(unknownIdStatus),
    'unknown-order': sure(unknownIdStatus),
    'odd-id': sure(oddIdStatus ?? unknownIdStatus),
    'unknown-path': sure(404),
    'unknown-customer': sure(named(e001Status, 'E001', service)),
    'order-unknown-customer': sure(named(e001Status, 'E001', service)),
  }
}

/** Where nothing with a code was refused, a shape shows no more than its other fields. */
function errorBody({ errorShape, unauthorizedShape, unknownIdStatus }: NotShown): RegExp {
  const shapes = {
    problem: oneOf('problem document'),
    type: oneOf('problem type', 'problem document'),
    code: oneOf('code', 'message'),
    errorCode: oneOf('errorCode', 'object: errorMessage'),
    error: oneOf('error.code'),
    errors: oneOf('errors[]'),
    text: oneOf('text'),
    html: oneOf('page'),
    empty: oneOf('empty'),
  }
  const isFirstRefusal = unknownIdStatus === 200 && unauthorizedShape !== 'same'
  return isFirstRefusal ? /./ : shapes[errorShape]
}

function ofRecords(service: NotShown): Record<string, Truth> {
  const { customerIdUnit, field2Empty, field2LengthMax, invalidCustomerCode } = service
  const limits = [field2Empty ? [] : 'not empty', field2LengthMax === null ? [] : 'below 1,000 characters'].flat()
  const longCode = invalidCustomerCode === 'E001' ? 'E001' : null
  return {
    submission: sure(200),
    'customer-length': sure({ characters: 'characters', bytes: 'bytes', utf16: 'UTF-16 units' }[customerIdUnit]),
    'long-customer': sure(named(400, longCode, service)),
    field1: sure(400),
    field2: sure(limits.join(', ') || 'any text'),
    ...ofMappedFields(service),
  }
}

function ofMappedFields(service: NotShown): Record<string, Truth> {
  const { mappedFields, mappedFieldsRequired, amountForm, dateFractions, dateOffsets } = service
  if (mappedFields === 'refused' || mappedFields === 'ignored') return { 'mapped-fields': sure(mappedFields) }
  const place = { data: 'in data', top: 'beside data' }[mappedFields]
  return {
    'mapped-fields': sure(`${place}, ${mappedFieldsRequired ? 'required' : 'optional'}`),
    amount: sure({ either: 'number or text', number: 'number', text: 'text' }[amountForm]),
    'order-date': sure(
      `${dateFractions ? 'milliseconds' : 'whole seconds'}, ${{ z: 'Z alone', utc: 'UTC', any: 'any offset' }[dateOffsets]}`,
    ),
  }
}

/** In which a key is tried. */
const askedHeaders = ['idempotency-key', 'x-idempotency-key', 'x-request-id', 'request-id']

function ofRepetition(service: NotShown): Record<string, Truth> {
  const { idempotency, idempotencyHeaders, ownIds, e002Status, errorShape } = service
  const header = idempotencyHeaders.find((name) => name === 'Idempotency-Key') ?? idempotencyHeaders[0] ?? ''
  const isHonoured = idempotency !== 'ignore' && askedHeaders.includes(header.toLowerCase())
  const e002 = showsCode(errorShape) ? 'e002' : `refused with ${e002Status}`
  const isE002Seen = showsCode(errorShape) && ((isHonoured && idempotency === 'e002') || ownIds === 'taken')
  return {
    idempotency: sure(isHonoured ? { e002, replay: 'replay' }[idempotency] : 'ignored'),
    'idempotency-header': matching(new RegExp(`^${isHonoured ? header : 'none'}$`, 'i')),
    'own-id': sure(ownIds),
    e002: { ...sure(e002Status), surely: isE002Seen },
  }
}

function ofTransactions(service: NotShown): Record<string, Truth> {
  const { firstStatus, resultShape, orderFirstStatus, orderLastStatus, createdAtOnRead } = service
  const { transactionIdForm, orderItems } = service
  const results = { object: /^object: customerId, processedAt$/, absent: /^none$/, text: /^string$/, list: /^list$/ }
  const first = [...new Set([firstStatus, 'pending'])].map((word) => `(${word}, )?`).join('')
  return {
    'status-values': matching(new RegExp(`^${first}completed$`)),
    'transaction-id': sure(
      { uuid: 'uuid', digits: 'digits', odd: 'characters that a path must encode' }[transactionIdForm],
    ),
    result: matching(results[resultShape]),
    'order-item-shape': sure(
      { any: 'any', filled: 'not empty', objects: 'objects', sku: 'objects with certain fields' }[orderItems],
    ),
    order: sure(201),
    'order-status': matching(new RegExp(`^${orderFirstStatus}, ${orderLastStatus}$`)),
    'order-items': sure('as sent'),
    'order-created-at': sure(createdAtOnRead ? 'yes' : 'no'),
  }
}

/** It shows itself in X-RateLimit-Remaining, as far as that is there; one address alone asks. */
function ofTheLimit(service: NotShown): Record<string, Truth> {
  const { rateLimitScope, rateLimitPolls, rateLimitTokens, rateLimitOrders, remainingHeader } = service
  const isSeen = remainingHeader !== 'none'
  const headers = { all: /^all$/, api: /^(?!.*tokens)./, none: /^none$/ }
  return {
    'rate-header': matching(headers[remainingHeader]),
    'rate-scope': { ...sure(rateLimitScope === 'token' ? 'token' : 'client'), surely: isSeen },
    'rate-orders': likely(rateLimitOrders === 'apart' ? 'apart' : 'shared'),
    'rate-polls': likely(rateLimitPolls ? 'yes' : 'no'),
    // Before there is a token, no token's limit can count a request for one.
    ...(rateLimitScope === 'token' ? {} : { 'rate-tokens': likely(rateLimitTokens ? 'yes' : 'no') }),
  }
}

function ofAnswers({ clockSkewSeconds, keepAliveSeconds, compression }: NotShown): Record<string, Truth> {
  return {
    clock: matching(clockWords(clockSkewSeconds)),
    compression: sure(compression === 'always' ? 'gzip' : 'none'),
    'keep-alive': sure(keepAliveSeconds === 0 ? 'closed at once' : `${keepAliveSeconds} s`),
    redirects: sure('none'),
  }
}

/** To the second, as Date has no more; the true one may be a second off. */
function clockWords(skewSeconds: number): RegExp {
  if (Math.abs(skewSeconds) < 2) return /^within 2 s$/
  const near = [-1, 0, 1].map((more) => Math.abs(skewSeconds) + more)
  return oneOf(...near.map((seconds) => `${seconds} s ${skewSeconds > 0 ? 'ahead' : 'behind'}`))
}
