import { z } from 'zod'

/** Settings for what docs/reference/interface.md leaves open. docs/why/contract.md says how the daemon copes. */

/** The first word is the default. */
export const choiceSetting = <const T extends readonly [string, ...string[]]>(allowedWords: T, description: string) =>
  z
    .enum(allowedWords)
    .default(allowedWords[0] as T[number] & string)
    .describe(description)
export const flagSetting = (byDefault: boolean, description: string) =>
  z.boolean().default(byDefault).describe(description)
export const wholeNumberSetting = (
  { min, max, byDefault }: { min: number; max: number; byDefault: number },
  description: string,
) => z.int().min(min).max(max).default(byDefault).describe(description)
const errorStatus = z.int().min(400).max(599)
const status = (byDefault: number, description: string) => errorStatus.default(byDefault).describe(description)
const optional = <T extends z.ZodType>(schema: T, description: string) =>
  schema.nullable().default(null).describe(description)
const word = (byDefault: string, description: string) =>
  z
    .string()
    .regex(/^\w{1,20}$/, 'must be a word of at most 20 letters, digits or _')
    .default(byDefault)
    .describe(description)

/** The default first. Empty if the setting is not a choice among words. */
export function allowedWordsOfSetting(setting: z.ZodType): readonly string[] {
  const inner = setting instanceof z.ZodDefault ? setting.unwrap() : setting
  return inner instanceof z.ZodEnum ? (inner.options as string[]) : []
}

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
  expiresInUnit: choiceSetting(['seconds', 'milliseconds', 'minutes'], 'unit of expires_in'),
  expiresInForm: choiceSetting(['number', 'text', 'absent'], 'form of expires_in'),
  tokenForm: choiceSetting(['jwt', 'opaque'], 'form of access_token'),
  tokenType: choiceSetting(['Bearer', 'bearer'], 'spelling of token_type'),
  tokenMoreFields: flagSetting(false, 'the token answer has extra fields, such as scope'),
  tokenHeldSeconds: optional(
    z.int().min(1).max(31_536_000),
    'after how many seconds a token really expires, if not after expires_in',
  ),
  wrongSecretStatus: status(401, 'status for wrong credentials'),
  newTokenEndsOld: flagSetting(false, 'a new token ends the earlier tokens of its client'),
  tokenErrorShape: choiceSetting(['oauth', 'api'], 'body of a token refusal; oauth: as in RFC 6749; api: errorShape'),
}

const ofRefusals = {
  errorShape: choiceSetting(errorShapeNames, 'body of a refusal'),
  unauthorizedShape: choiceSetting(['same', ...errorShapeNames], 'body of a 401'),
  wwwAuthenticate: choiceSetting(['error', 'scheme', 'none'], 'WWW-Authenticate of a 401'),
  addressStatus: status(401, 'status for an address that is not allow-listed'),
  addressNamed: flagSetting(true, 'if an IP address is refused, the answer names it'),
  wrongMethodStatus: status(405, 'status for a wrong method'),
  tooLargeStatus: status(413, 'status for a body over bodyLimitBytes'),
  unknownIdStatus: z
    .union([z.literal(200), errorStatus], 'must be 200, or from 400 to 599')
    .default(404)
    .describe('status for an unknown id; if 200, the body is the refusal'),
  oddIdStatus: optional(
    errorStatus,
    'status for an unknown id with other characters than [A-Za-z0-9._-], if not unknownIdStatus',
  ),
  e001Status: status(400, 'status with E001'),
  invalidCustomerCode: choiceSetting(['none', 'E001'], 'code if customerId is missing or malformed'),
  e002Status: status(409, 'status with E002'),
  e003Status: status(503, 'status with E003'),
  e003RetryAfterSeconds: wholeNumberSetting({ min: 0, max: 86_400, byDefault: 300 }, 'Retry-After with E003; 0: none'),
  retryAfterForm: choiceSetting(['seconds', 'date', 'none'], 'form of Retry-After'),
}

const ofRecords = {
  customerIdUnit: choiceSetting(['characters', 'utf16', 'bytes'], 'unit of customerId’s limit of 10'),
  field2Empty: flagSetting(true, 'field2 may be empty'),
  field2LengthMax: optional(z.int().min(1).max(1_000_000), 'longest field2, in characters'),
  field2Pattern: optional(
    z.string().refine(isRegularExpression, 'must be a regular expression'),
    'regular expression for field2',
  ),
  mappedFields: choiceSetting(
    ['data', 'top', 'refused', 'ignored'],
    'where customer_id, order_date and total_amount are read; top: beside data',
  ),
  mappedFieldsRequired: flagSetting(
    false,
    'customer_id, order_date and total_amount are required, if mappedFields reads them',
  ),
  amountForm: choiceSetting(['either', 'number', 'text'], 'form of total_amount'),
  dateFractions: flagSetting(true, 'order_date may have fractions of a second'),
  dateOffsets: choiceSetting(['utc', 'z', 'any'], 'offset of order_date; utc: Z or +00:00'),
  orderItems: choiceSetting(
    ['any', 'filled', 'objects', 'sku'],
    'what items must be; sku: objects with sku and quantity',
  ),
}

const ofRepetition = {
  idempotency: choiceSetting(
    ['e002', 'replay', 'ignore'],
    'answer to a used idempotency key; replay: the first answer again',
  ),
  idempotencyHeaders: z
    .array(z.string().regex(/^[A-Za-z0-9-]{1,64}$/, 'must be names of headers'))
    .min(1, 'must have at least one name')
    .default(['Idempotency-Key'])
    .describe('headers that may hold the idempotency key; the first one present counts'),
  idempotencyDemanded: choiceSetting(
    ['none', 'any', 'bare', 'quoted', 'uuid'],
    'idempotency key that a POST must have; uuid: without quotes',
  ),
  ownIds: choiceSetting(['taken', 'required', 'ignored', 'refused'], 'the client’s own transactionId or orderId'),
}

const ofTransactions = {
  transactionIdForm: choiceSetting(
    ['uuid', 'digits', 'odd'],
    'form of ids; odd: with characters that a path must encode',
  ),
  firstStatus: word('pending', 'status of a transaction in the first half of its processing'),
  resultShape: choiceSetting(['object', 'absent', 'text', 'list'], 'form of result in an ended transaction'),
  errorCodeShown: flagSetting(true, 'a failed transaction has an errorCode'),
  orderFirstStatus: word('pending', 'status of an order in processing'),
  orderLastStatus: word('completed', 'status of a processed order'),
  visibleAfterSeconds: z
    .number()
    .min(0)
    .max(86_400)
    .default(0)
    .describe('for how many seconds a new id is answered as unknown'),
  createdAtOnRead: flagSetting(true, 'the answer to GET of an order has createdAt'),
}

const ofTheLimit = {
  rateLimitScope: choiceSetting(
    ['client', 'token', 'address'],
    'which requests share a limit; a restart forgets counts by token or address',
  ),
  rateLimitKind: choiceSetting(['sliding', 'fixed'], 'kind of window'),
  rateLimitPolls: flagSetting(true, 'GET requests count against the limit'),
  rateLimitTokens: flagSetting(false, 'token requests count against the limit'),
  rateLimitOrders: choiceSetting(
    ['shared', 'apart'],
    'shared: orders and data share a limit; apart: orders have their own',
  ),
  rateLimitPerSecond: optional(z.int().min(1).max(1_000_000), 'a second limit, per second'),
  rateLimitFailures: flagSetting(true, 'requests with an error answer count, except 429'),
  rateLimitRefused: flagSetting(false, 'requests with a 429 count'),
  remainingHeader: choiceSetting(['all', 'api', 'none'], 'which answers have X-RateLimit-Remaining'),
  remainingValue: choiceSetting(
    ['true', 'double', 'full', 'zero'],
    'value of X-RateLimit-Remaining; full: rateLimitRequests',
  ),
}

const ofAnswers = {
  compression: choiceSetting(['never', 'asked', 'always'], 'gzip answers; asked: if Accept-Encoding asks for it'),
}

export const serverWideSettings = {
  clockSkewSeconds: z
    .number()
    .min(-86_400)
    .max(86_400)
    .default(0)
    .describe('by how many seconds Date and times in answers are ahead; token expiry stays right'),
  keepAliveSeconds: wholeNumberSetting(
    { min: 0, max: 3600, byDefault: 72 },
    'after how many seconds an idle connection is closed; 0: after each answer',
  ),
}

export const interfaceGapSettingsByTopic = {
  '**Tokens** (2.1, 4.1)': ofTokens,
  '**Refusals** (5, 7)': ofRefusals,
  '**Records** (2.2, 2.5, 2.6)': ofRecords,
  '**Repetition** (4.2, 7.2)': ofRepetition,
  '**Transactions and orders** (2.4, 2.6, 3)': ofTransactions,
  '**The limit** (8)': ofTheLimit,
  '**Answers and connections**': { ...ofAnswers, ...serverWideSettings },
}

export const interfaceGapSettings = {
  ...ofTokens,
  ...ofRefusals,
  ...ofRecords,
  ...ofRepetition,
  ...ofTransactions,
  ...ofTheLimit,
  ...ofAnswers,
  ...serverWideSettings,
}
