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
export function truthOf(service: NotShown, bodyLimitBytes: number): Record<string, Truth> {
  const truth = {
    ...ofTokens(service),
    ...ofRefusals(service),
    ...ofRecords(service),
    ...ofRepetition(service),
    ...ofTransactions(service),
    ...ofTheLimit(service),
    ...ofAnswers(service),
    'body-size': likely(String(bodyLimitBytes)),
  }
  return service.errorShape === 'html' ? asPages(truth) : truth
}

/** Who answers an unknown id with a page looks as if it were no service at all: to stop there is right. */
function asPages(truth: Record<string, Truth>): Record<string, Truth> {
  const unsure = Object.entries(truth).map(([name, { found }]) => [name, { found, surely: false }])
  return { ...Object.fromEntries(unsure), address: sure('let in', 'something else') }
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
    type: oneOf('problem document'),
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
    'customer-length': sure({ characters: 'characters', bytes: 'bytes', utf16: 'halves' }[customerIdUnit]),
    'long-customer': sure(named(400, longCode, service)),
    field1: sure(400),
    field2: sure(limits.join(', ') || 'any text'),
    ...ofMappedFields(service),
  }
}

function ofMappedFields(service: NotShown): Record<string, Truth> {
  const { mappedFields, mappedFieldsRequired, amountForm, dateFractions, dateOffsets } = service
  switch (mappedFields) {
    case 'data':
      return {
        'mapped-fields': sure(mappedFieldsRequired ? 'required in data' : 'optional in data'),
        amount: sure({ either: 'number or text', number: 'number', text: 'text' }[amountForm]),
        'order-date': sure(
          `${dateFractions ? 'milliseconds' : 'whole seconds'}, ${dateOffsets === 'any' ? 'any offset' : 'UTC alone'}`,
        ),
      }
    case 'top':
      return { 'mapped-fields': { ...matching(/beside data/), surely: mappedFieldsRequired } }
    case 'refused':
      return { 'mapped-fields': sure('refused in data') }
    case 'ignored':
      return { 'mapped-fields': matching(/ignored|not (read|checked|looked at)/, false) }
    default:
      return mappedFields satisfies never
  }
}

function ofRepetition(service: NotShown): Record<string, Truth> {
  const { idempotency, idempotencyHeaders, ownIds, e002Status, errorShape } = service
  const isHonoured = idempotency !== 'ignore' && idempotencyHeaders.includes('Idempotency-Key')
  const e002 = showsCode(errorShape) ? 'e002' : `refused with ${e002Status}`
  const isE002Seen = showsCode(errorShape) && ((isHonoured && idempotency === 'e002') || ownIds === 'taken')
  return {
    idempotency: sure(isHonoured ? { e002, replay: 'replay' }[idempotency] : 'ignored'),
    'own-id': sure(ownIds),
    e002: { ...sure(e002Status), surely: isE002Seen },
  }
}

function ofTransactions(service: NotShown): Record<string, Truth> {
  const { firstStatus, resultShape, orderFirstStatus, orderLastStatus, createdAtOnRead } = service
  const results = { object: /^object: customerId, processedAt$/, absent: /^none$/, text: /^string$/, list: /^list$/ }
  const first = [...new Set([firstStatus, 'pending'])].map((word) => `(${word}, )?`).join('')
  return {
    'status-values': matching(new RegExp(`^${first}completed$`)),
    result: matching(results[resultShape]),
    order: sure(201),
    'order-status': matching(new RegExp(`^${orderFirstStatus}, ${orderLastStatus}$`)),
    'order-items': sure('as sent'),
    'order-created-at': sure(createdAtOnRead ? 'yes' : 'no'),
  }
}

/** It shows itself in X-RateLimit-Remaining, as far as that is there and questions count; one address alone asks. */
function ofTheLimit(service: NotShown): Record<string, Truth> {
  const { rateLimitScope, rateLimitPolls, rateLimitTokens, rateLimitOrders, remainingHeader } = service
  const isSeen = remainingHeader !== 'none' && rateLimitPolls && rateLimitOrders === 'shared'
  const headers = { all: /^all$/, api: /^(?!.*tokens)./, none: /^none$/ }
  return {
    'rate-header': matching(headers[remainingHeader]),
    'rate-scope': { ...sure(rateLimitScope === 'token' ? 'token' : 'client'), surely: isSeen },
    'rate-orders': likely(rateLimitOrders === 'apart' ? 'separate' : 'shared'),
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
