import { type ErrorShape, errorShapeNames, type interfaceGapSettings } from '../../src/sandbox/interfaceGapSettings.ts'
import type { LiveSettings } from '../../src/sandbox/sandboxSettings.ts'

/** The sandbox's settings for what the interface does not show. */
export type NotShown = Pick<LiveSettings, keyof typeof interfaceGapSettings>

const flag = [true, false]

/** For each setting, the values of possible services, including the sandbox's default. */
export const alternatives: { readonly [K in keyof NotShown]: readonly NotShown[K][] } = {
  expiresInUnit: ['seconds', 'milliseconds', 'minutes'],
  expiresInForm: ['number', 'text', 'absent'],
  tokenForm: ['jwt', 'opaque'],
  tokenType: ['Bearer', 'bearer'],
  tokenMoreFields: flag,
  tokenHeldSeconds: [null, 20],
  wrongSecretStatus: [401, 400, 403],
  tokenErrorShape: ['oauth', 'api'],
  errorShape: errorShapeNames,
  unauthorizedShape: ['same', ...errorShapeNames],
  wwwAuthenticate: ['error', 'scheme', 'none'],
  addressStatus: [401, 403],
  addressNamed: flag,
  wrongMethodStatus: [405, 404],
  tooLargeStatus: [413, 400],
  unknownIdStatus: [404, 400, 410, 200],
  oddIdStatus: [null, 400, 404],
  e001Status: [400, 404, 422],
  invalidCustomerCode: ['none', 'E001'],
  e002Status: [409, 400, 422],
  e003Status: [503, 500, 400],
  e003RetryAfterSeconds: [300, 0],
  retryAfterForm: ['seconds', 'date', 'none'],
  customerIdUnit: ['characters', 'utf16', 'bytes'],
  field2Empty: flag,
  field2LengthMax: [null, 50, 255],
  mappedFields: ['data', 'top', 'refused', 'ignored'],
  mappedFieldsRequired: flag,
  amountForm: ['either', 'number', 'text'],
  dateFractions: flag,
  dateOffsets: ['utc', 'z', 'any'],
  orderItems: ['any', 'filled', 'objects', 'sku'],
  idempotency: ['e002', 'replay', 'ignore'],
  idempotencyHeaders: [
    ['Idempotency-Key'],
    ['X-Idempotency-Key'],
    ['X-Request-Id'],
    ['X-Idempotency-Key', 'Idempotency-Key'],
  ],
  ownIds: ['taken', 'required', 'ignored', 'refused'],
  transactionIdForm: ['uuid', 'digits', 'odd'],
  firstStatus: ['pending', 'accepted', 'queued'],
  resultShape: ['object', 'absent', 'text', 'list'],
  errorCodeShown: flag,
  orderFirstStatus: ['pending', 'accepted', 'created'],
  orderLastStatus: ['completed', 'shipped'],
  createdAtOnRead: flag,
  rateLimitScope: ['client', 'token', 'address'],
  rateLimitKind: ['sliding', 'fixed'],
  rateLimitPolls: flag,
  rateLimitTokens: flag,
  rateLimitOrders: ['shared', 'apart'],
  rateLimitRefused: flag,
  remainingHeader: ['all', 'api', 'none'],
  compression: ['never', 'asked', 'always'],
  clockSkewSeconds: [0, 90, -3600],
  keepAliveSeconds: [72, 5, 0],
  newTokenEndsOld: flag,
  field2Pattern: [null, '^[A-Za-z0-9]*$', '^[A-Z]{3}-\\d{4}$'],
  idempotencyDemanded: ['none', 'any', 'bare', 'quoted', 'uuid'],
  visibleAfterSeconds: [0, 3],
  rateLimitPerSecond: [null, 5, 10],
  rateLimitFailures: flag,
  remainingValue: ['true', 'double', 'full', 'zero'],
}

/** True if the daemon finds a code in a refusal of this shape with a status below 500. */
export function showsCode(shape: ErrorShape): boolean {
  return shape !== 'text' && shape !== 'html' && shape !== 'empty'
}
