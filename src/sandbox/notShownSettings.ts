import { z } from 'zod'

/** Settings for what the interface does not show. docs/why/contract.md says what the daemon does about each. */

/** The first word is the default. */
export const oneOf = <const T extends readonly [string, ...string[]]>(words: T, description: string) =>
  z
    .enum(words)
    .default(words[0] as T[number] & string)
    .describe(description)
export const flag = (byDefault: boolean, description: string) => z.boolean().default(byDefault).describe(description)
export const whole = ({ min, max, byDefault }: { min: number; max: number; byDefault: number }, description: string) =>
  z.int().min(min).max(max).default(byDefault).describe(description)
const errorStatus = z.int().min(400).max(599)
const status = (byDefault: number, description: string) => errorStatus.default(byDefault).describe(description)
const optional = <T extends z.ZodType>(schema: T, description: string) =>
  schema.nullable().default(null).describe(description)
const word = (byDefault: string, description: string) =>
  z
    .string()
    .regex(/^\w{1,20}$/, 'must be a word')
    .default(byDefault)
    .describe(description)

export function isRegularExpression(text: string): boolean {
  try {
    return new RegExp(text, 'u') instanceof RegExp
  } catch {
    return false
  }
}

export const errorShapeNames = [
  'problem',
  'code',
  'errorCode',
  'error',
  'errors',
  'type',
  'text',
  'html',
  'empty',
] as const
export type ErrorShape = (typeof errorShapeNames)[number]

const ofTokens = {
  expiresInUnit: oneOf(['seconds', 'milliseconds', 'minutes'], 'unit of expires_in'),
  expiresInForm: oneOf(['number', 'text', 'absent'], 'expires_in is a number, a number as text, or missing'),
  tokenForm: oneOf(['jwt', 'opaque'], 'access_token is a JWT, or an opaque word'),
  tokenType: oneOf(['Bearer', 'bearer'], 'how token_type is written'),
  tokenMoreFields: flag(false, 'the answer with a token has fields that the interface does not name'),
  tokenHeldSeconds: optional(
    z.int().min(1).max(31_536_000),
    'how long a token is really valid; without it, as long as expires_in says',
  ),
  wrongSecretStatus: status(401, 'HTTP status for a wrong client id or secret'),
  newTokenEndsOld: flag(false, 'a new token of a client ends its earlier ones'),
  tokenErrorShape: oneOf(
    ['oauth', 'api'],
    'the token endpoint refuses like RFC 6749, 5.2, or like the API (errorShape)',
  ),
}

const ofRefusals = {
  errorShape: oneOf(errorShapeNames, 'the body of a refusal'),
  unauthorizedShape: oneOf(
    ['same', ...errorShapeNames],
    'the body of a 401, if it differs from errorShape, as that of a gateway',
  ),
  wwwAuthenticate: oneOf(
    ['error', 'scheme', 'none'],
    'the header of a 401: with the error, only the scheme, or missing',
  ),
  addressStatus: status(401, 'HTTP status for an address that is not allow-listed'),
  addressNamed: flag(true, 'the answer says that the address is the reason'),
  wrongMethodStatus: status(405, 'HTTP status for another method on a known path; 405 comes with Allow'),
  tooLargeStatus: status(413, 'HTTP status for a body larger than bodyLimitBytes'),
  unknownIdStatus: z
    .union([z.literal(200), errorStatus], 'must be 200, or from 400 to 599')
    .default(404)
    .describe('HTTP status for an unknown transactionId or orderId; if 200, the body is the refusal'),
  oddIdStatus: optional(
    errorStatus,
    'the same if the id has a character other than A-Z a-z 0-9 . _ -; without it, unknownIdStatus',
  ),
  e001Status: status(400, 'HTTP status that goes with E001'),
  invalidCustomerCode: oneOf(
    ['none', 'E001'],
    'code of the 400 for a customerId that is missing, empty, too long or not a uuid',
  ),
  e002Status: status(409, 'HTTP status that goes with E002'),
  e003Status: status(503, 'HTTP status that goes with E003'),
  e003RetryAfterSeconds: whole({ min: 0, max: 86_400, byDefault: 300 }, 'Retry-After with E003; 0 for none'),
  retryAfterForm: oneOf(['seconds', 'date', 'none'], 'Retry-After is a number of seconds, an HTTP date, or missing'),
}

const ofRecords = {
  customerIdUnit: oneOf(
    ['characters', 'utf16', 'bytes'],
    'unit in which a customerId may have 10: characters, UTF-16 units, or bytes of UTF-8',
  ),
  field2Empty: flag(true, 'field2 may be empty'),
  field2LengthMax: optional(
    z.int().min(1).max(1_000_000),
    'characters that field2 may have; without it, only the body limits it',
  ),
  field2Pattern: optional(
    z.string().refine(isRegularExpression, 'must be a regular expression'),
    'regular expression that field2 must match, such as ^[A-Z]{3}; without it, any text',
  ),
  mappedFields: oneOf(
    ['data', 'top', 'refused', 'ignored'],
    'customer_id, order_date, total_amount are read in data, read beside data, refused, or ignored',
  ),
  mappedFieldsRequired: flag(false, 'these three fields are required, if they are read'),
  amountForm: oneOf(['either', 'number', 'text'], 'total_amount may be either, only a number, or only text'),
  dateFractions: flag(true, 'order_date may have a fraction of a second'),
  dateOffsets: oneOf(['utc', 'z', 'any'], 'order_date ends in Z or +00:00, only in Z, or in any offset'),
  orderItems: oneOf(
    ['any', 'filled', 'objects', 'sku'],
    'items may be any list, must not be empty, must be objects, or must be objects with sku and quantity',
  ),
}

const ofRepetition = {
  idempotency: oneOf(
    ['e002', 'replay', 'ignore'],
    'for an idempotency key used before: answer E002, repeat the first answer, or ignore the key',
  ),
  idempotencyHeaders: z
    .array(z.string().regex(/^[A-Za-z0-9-]{1,64}$/, 'must be names of headers'))
    .min(1, 'must have at least one name')
    .default(['Idempotency-Key'])
    .describe('headers that may carry the key; the first one present counts'),
  idempotencyDemanded: oneOf(
    ['none', 'any', 'bare', 'quoted', 'uuid'],
    'key that a POST must have: none, any, without quotes, in quotes ("k1"), or a uuid without quotes',
  ),
  ownIds: oneOf(
    ['taken', 'required', 'ignored', 'refused'],
    'a transactionId or orderId from the client is used, is required, is ignored, or is refused as an unknown field',
  ),
}

const ofTransactions = {
  transactionIdForm: oneOf(
    ['uuid', 'digits', 'odd'],
    'transaction ids are uuids, digits, or have characters that a path must encode',
  ),
  firstStatus: word('pending', 'status of a transaction in the first half of its processing'),
  resultShape: oneOf(['object', 'absent', 'text', 'list'], 'result of an ended transaction'),
  errorCodeShown: flag(true, 'a failed transaction has an errorCode'),
  orderFirstStatus: word('pending', 'status of an order while it is processed'),
  orderLastStatus: word('completed', 'status of an order after that'),
  visibleAfterSeconds: z
    .number()
    .min(0)
    .max(86_400)
    .default(0)
    .describe('how long a new transaction or order looks like an unknown id'),
  createdAtOnRead: flag(true, 'GET of an order has its createdAt'),
}

const ofTheLimit = {
  rateLimitScope: oneOf(
    ['client', 'token', 'address'],
    'whose requests count together; with token or address, a restart sets the count to 0',
  ),
  rateLimitKind: oneOf(['sliding', 'fixed'], 'the limit holds in any window, or in consecutive fixed windows'),
  rateLimitPolls: flag(true, 'GET counts'),
  rateLimitTokens: flag(false, 'a request for a token counts'),
  rateLimitOrders: oneOf(['shared', 'apart'], 'orders share the limit, or have their own'),
  rateLimitPerSecond: optional(
    z.int().min(1).max(1_000_000),
    'counted requests allowed per second, beside the limit of the window; without it, no such limit',
  ),
  rateLimitFailures: flag(true, 'a request that gets 400 or above counts; rateLimitRefused decides about 429'),
  rateLimitRefused: flag(false, 'a request that gets 429 counts, too'),
  remainingHeader: oneOf(
    ['all', 'api', 'none'],
    'X-RateLimit-Remaining is on all answers, on those of the API, or on none',
  ),
  remainingValue: oneOf(
    ['true', 'double', 'full', 'zero'],
    'its value: what remains, twice that, always rateLimitRequests, or always 0',
  ),
}

const ofAnswers = {
  compression: oneOf(
    ['never', 'asked', 'always'],
    'answers are compressed (gzip) never, if Accept-Encoding asks for it, or always',
  ),
}

/** These cannot be set for one client. */
export const serverWide = {
  clockSkewSeconds: z
    .number()
    .min(-86_400)
    .max(86_400)
    .default(0)
    .describe('seconds by which Date and the times in answers are fast; tokens use the true time'),
  keepAliveSeconds: whole(
    { min: 0, max: 3600, byDefault: 72 },
    'how long a connection stays open after an answer; 0 closes it',
  ),
}

export const notShownTopics = {
  '**Tokens** (2.1, 4.1)': ofTokens,
  '**Refusals** (5, 7)': ofRefusals,
  '**Records** (2.2, 2.5, 2.6)': ofRecords,
  '**What was sent before** (4.2, 7.2)': ofRepetition,
  '**Transactions and orders** (2.4, 2.6, 3)': ofTransactions,
  '**The limit** (8)': ofTheLimit,
  '**Answers and connections**': { ...ofAnswers, ...serverWide },
}

export const notShownSettings = {
  ...ofTokens,
  ...ofRefusals,
  ...ofRecords,
  ...ofRepetition,
  ...ofTransactions,
  ...ofTheLimit,
  ...ofAnswers,
  ...serverWide,
}
