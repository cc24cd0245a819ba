import { specialCharacters } from '../../src/discover/judges/records.ts'
import { type NotShown, showsCode } from '../support/serviceAlternatives.ts'
import { ownField2 } from './ask.ts'

/** A service as it is set, with what of its limit is not among what the interface does not show. */
export type ServiceSettings = NotShown & { rateLimitRequests: number; rateLimitWindowSeconds: number }

/** Whether an answer is right. */
export type Truth = (found: string) => boolean

/**
 * What is true of a sandbox that is set so, by the name of the question. Written from the settings only, for every question: an
 * answer that is not right by this is wrong.
 */
export function truthOf(service: ServiceSettings): Record<string, Truth> {
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

const is =
  (...texts: (string | number)[]): Truth =>
  (found) =>
    texts.map(String).includes(found)
const matching =
  (pattern: RegExp): Truth =>
  (found) =>
    pattern.test(found)

/** As an answer is called: its status, and a code of the interface if one can be read. */
function named(status: number, code: string, { errorShape }: NotShown): string {
  return showsCode(errorShape) ? `${status} ${code}` : String(status)
}

function ofTokens(service: ServiceSettings): Record<string, Truth> {
  const { expiresInUnit, expiresInForm, wrongSecretStatus, newTokenEndsOld, tokenHeldSeconds } = service
  return {
    'token-unit': is(expiresInForm === 'absent' ? 'none' : expiresInUnit),
    'wrong-secret': is(wrongSecretStatus),
    'second-token': is(newTokenEndsOld ? 'ends the first' : 'both valid'),
    'token-lifetime': (found) => {
      const [from = 0, to = 0] = found.split(' to ').map(secondsIn)
      return tokenHeldSeconds !== null && from <= tokenHeldSeconds && tokenHeldSeconds <= to + 1
    },
    'bad-token': is(401),
  }
}

const secondsIn = (text: string) => Number.parseFloat(text) * (text.endsWith('ms') ? 0.001 : 1)

function ofRefusals(service: ServiceSettings): Record<string, Truth> {
  const { unknownIdStatus, oddIdStatus, e001Status, transactionIdForm } = service
  // A lost transaction has an id of the service's own form.
  const unknownId =
    transactionIdForm === 'odd' && service.ownIds !== 'required' ? (oddIdStatus ?? unknownIdStatus) : unknownIdStatus
  return {
    address: is('let in'),
    'error-body': matching(errorBody(service)),
    'unknown-id': is(unknownId),
    'unknown-order': is(unknownIdStatus),
    'unknown-path': is(404),
    'unknown-customer': is(named(e001Status, 'E001', service)),
    'order-unknown-customer': is(named(e001Status, 'E001', service)),
  }
}

/** If nothing with a code was refused, a shape shows no more than its other fields. */
function errorBody({ errorShape }: NotShown): RegExp {
  return {
    problem: /^problem document$/,
    type: /^problem (type|document)$/,
    code: /^(code|message)$/,
    errorCode: /^(errorCode|object: errorMessage)$/,
    error: /^error.code$/,
    errors: /^errors\[\]$/,
    text: /^text$/,
    html: /^page$/,
    empty: /^empty$/,
  }[errorShape]
}

function ofRecords(service: ServiceSettings): Record<string, Truth> {
  const { customerIdUnit, field2Empty, field2LengthMax, field2Pattern, orderItems } = service
  const own = field2Of(service) ?? 'outboxd123456780000'
  const takes = (text: string) =>
    (field2Empty || text !== '') &&
    (field2LengthMax === null || [...text].length <= field2LengthMax) &&
    (field2Pattern === null || new RegExp(field2Pattern, 'u').test(text))
  const limits = [
    takes('') ? [] : 'not empty',
    takes(own.repeat(1_000).slice(0, 1_000)) ? [] : 'below 1,000 characters',
    takes(specialCharacters(own.length)) ? [] : 'not every character',
  ].flat()
  return {
    submission: is(200),
    order: is(201),
    'order-items': is('as sent'),
    'order-item-shape': is(
      { any: 'any', filled: 'not empty', objects: 'objects', sku: 'objects with certain fields' }[orderItems],
    ),
    'customer-length': is({ characters: 'characters', bytes: 'bytes', utf16: 'UTF-16 units' }[customerIdUnit]),
    field2: is(limits.join(', ') || 'any text'),
    ...ofMappedFields(service),
  }
}

/** The field2 that the service's own partner would send, if a plain one is refused. */
export function field2Of({ field2Pattern }: Pick<NotShown, 'field2Pattern'>): string | null {
  return field2Pattern === null || new RegExp(field2Pattern, 'u').test('outboxd123456780000') ? null : ownField2
}

function ofMappedFields(service: NotShown): Record<string, Truth> {
  const { mappedFields, mappedFieldsRequired, amountForm, dateFractions, dateOffsets } = service
  if (mappedFields === 'refused' || mappedFields === 'ignored')
    return { 'mapped-fields': is(mappedFields), amount: is('not read'), 'order-date': is('not read') }
  const place = { data: 'in data', top: 'beside data' }[mappedFields]
  const offsets = { z: 'Z alone', utc: 'UTC', any: 'any offset' }[dateOffsets]
  return {
    'mapped-fields': is(`${place}, ${mappedFieldsRequired ? 'required' : 'optional'}`),
    amount: is({ either: 'number or text', number: 'number', text: 'text' }[amountForm]),
    'order-date': is(`${dateFractions ? 'milliseconds' : 'whole seconds'}, ${offsets}`),
  }
}

function ofRepetition(service: NotShown): Record<string, Truth> {
  const { idempotency, idempotencyHeaders, idempotencyDemanded, ownIds, e002Status, errorShape } = service
  const header = idempotencyHeaders.find((name) => name === 'Idempotency-Key') ?? idempotencyHeaders[0] ?? ''
  const e002 = showsCode(errorShape) ? 'e002' : `refused with ${e002Status}`
  // A record that must bring its id is known by that, whatever becomes of the key.
  const unhonoured = ownIds === 'required' ? e002 : 'ignored'
  const headers =
    idempotency === 'ignore' && idempotencyDemanded === 'none'
      ? ['none']
      : [header, ...(idempotency === 'ignore' ? ['none'] : [])]
  const form = { none: 'either', any: 'either', bare: 'bare', uuid: 'bare', quoted: 'quoted' }[idempotencyDemanded]
  return {
    idempotency: is({ e002, replay: 'replay', ignore: unhonoured }[idempotency]),
    'idempotency-header': (found) => headers.map((each) => each.toLowerCase()).includes(found.toLowerCase()),
    'idempotency-form': is(form),
    'own-id': is(ownIds),
  }
}

function ofTransactions(service: NotShown): Record<string, Truth> {
  const { firstStatus, orderFirstStatus, orderLastStatus } = service
  const first = [...new Set([firstStatus, 'pending'])].map((word) => `(${word}, )?`).join('')
  return {
    'status-values': matching(new RegExp(`^${first}completed$`)),
    'order-status': matching(new RegExp(`^(${orderFirstStatus}, )?${orderLastStatus}$`)),
  }
}

function ofTheLimit(service: ServiceSettings): Record<string, Truth> {
  const { rateLimitScope, rateLimitPolls, rateLimitTokens, rateLimitOrders, rateLimitFailures, rateLimitRefused } =
    service
  const {
    rateLimitPerSecond,
    rateLimitKind,
    rateLimitRequests,
    rateLimitWindowSeconds,
    remainingHeader,
    retryAfterForm,
  } = service
  const headers = { all: /^all$/, api: /^(?!.*tokens)./, none: /^none$/ }
  return {
    'rate-header': matching(headers[remainingHeader]),
    'rate-scope': is(rateLimitScope === 'token' ? 'token' : 'client'),
    'rate-orders': is(rateLimitOrders),
    'rate-polls': is(rateLimitPolls ? 'yes' : 'no'),
    'rate-failures': is(rateLimitFailures ? 'yes' : 'no'),
    'rate-tokens': is(rateLimitTokens ? 'yes' : 'no'),
    'rate-second': is(rateLimitPerSecond === null ? 'none' : `${rateLimitPerSecond} a second`),
    'rate-limit': is(rateLimitRequests),
    // In a fixed window, a 429 that counts changes nothing that a client could see.
    'rate-throttled': is(rateLimitRefused ? 'yes' : 'no', ...(rateLimitKind === 'fixed' ? ['no'] : [])),
    'rate-window': is(`up to ${rateLimitWindowSeconds} s`),
    'rate-refusal': is(`429, Retry-After: ${retryAfterForm}`),
  }
}

function ofAnswers({ clockSkewSeconds, compression }: NotShown): Record<string, Truth> {
  return {
    clock: is(...clockWords(clockSkewSeconds)),
    compression: is(compression === 'always' ? 'gzip' : 'none'),
    redirects: is('none'),
    'response-time': () => true,
  }
}

/** To the second, as Date has no more; the true one may be a second off. */
function clockWords(skewSeconds: number): string[] {
  if (Math.abs(skewSeconds) < 2) return ['within 2 s']
  return [-1, 0, 1].map((more) => `${Math.abs(skewSeconds) + more} s ${skewSeconds > 0 ? 'ahead' : 'behind'}`)
}
