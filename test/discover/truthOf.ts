import { makeTextOfSpecialCharacters } from '../../src/discover/judges/records.ts'
import { type NotShown, showsCode } from '../support/serviceAlternatives.ts'
import { ownField2 } from './ask.ts'

/** The settings of a service: those that the interface leaves open, and its limit. */
export type ServiceSettings = NotShown & { rateLimitRequests: number; rateLimitWindowSeconds: number }

/** Whether an answer is right. */
export type Truth = (found: string) => boolean

/**
 * The right answers about a sandbox with these settings, by the name of the question. Derived from the settings only,
 * for every question: any other answer is wrong.
 */
export function truthOf(service: ServiceSettings): Record<string, Truth> {
  return {
    ...ofTokens(service),
    ...ofRefusals(service),
    ...ofRecords(service),
    ...ofRepetition(service),
    ...ofTransactions(service),
    ...ofTheLimit(service),
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

/** The name of an answer: its status, and a code of the interface if one can be read. */
function named(status: number, code: string, { errorShape }: NotShown): string {
  return showsCode(errorShape) ? `${status} ${code}` : String(status)
}

function ofTokens(service: ServiceSettings): Record<string, Truth> {
  const { expiresInUnit, expiresInForm, newTokenEndsOld, tokenHeldSeconds } = service
  return {
    'token-unit': is(expiresInForm === 'absent' ? 'none' : expiresInUnit),
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
    'server-errors': () => false, // the sandbox stores nothing that it answers 5xx
    'error-body': is(showsCode(service.errorShape) ? 'read' : 'not read'),
    'unknown-id': is(unknownId),
    'unknown-order': is(unknownIdStatus),
    'unknown-path': is(404),
    'unknown-customer': is(named(e001Status, 'E001', service)),
    'order-unknown-customer': is(named(e001Status, 'E001', service)),
  }
}

function ofRecords(service: ServiceSettings): Record<string, Truth> {
  const { field2Empty, field2LengthMax, field2Pattern, orderItems } = service
  const own = field2Of(service) ?? 'outboxd123456780000'
  const takes = (text: string) =>
    (field2Empty || text !== '') &&
    (field2LengthMax === null || [...text].length <= field2LengthMax) &&
    (field2Pattern === null || new RegExp(field2Pattern, 'u').test(text))
  const limits = [
    takes('') ? [] : 'not empty',
    takes(own.repeat(1_000).slice(0, 1_000)) ? [] : 'below 1,000 characters',
    takes(makeTextOfSpecialCharacters(own.length)) ? [] : 'not every character',
  ].flat()
  return {
    submission: is(200),
    order: is(201),
    'order-item-shape': is(
      { any: 'any', filled: 'not empty', objects: 'objects', sku: 'objects with certain fields' }[orderItems],
    ),
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
  const offsets = { z: 'only Z', utc: 'UTC', any: 'any offset' }[dateOffsets]
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
  // If a record must bring its own id, the service recognises it by that id, even if it ignores the key.
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
  const { rateLimitFailures, rateLimitRefused } = service
  const { rateLimitPerSecond, rateLimitKind, rateLimitRequests, rateLimitWindowSeconds, remainingHeader } = service
  return {
    // The answers of the issuer are not judged.
    'rate-header': is(remainingHeader === 'none' ? 'none' : 'all'),
    'rate-failures': is(rateLimitFailures ? 'yes' : 'no'),
    'rate-second': is(rateLimitPerSecond === null ? 'none' : `${rateLimitPerSecond} a second`),
    'rate-limit': is(rateLimitRequests),
    // In a fixed window, a 429 that counts changes nothing that a client could see.
    'rate-throttled': is(rateLimitRefused ? 'yes' : 'no', ...(rateLimitKind === 'fixed' ? ['no'] : [])),
    'rate-window': is(`up to ${rateLimitWindowSeconds} s`),
  }
}
