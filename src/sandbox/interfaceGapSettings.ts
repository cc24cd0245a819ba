import { z } from 'zod'

/** Settings for what the interface does not show. docs/why/contract.md says what the daemon does about each. */

/** The first word is the default. */
export const choiceSetting = <const T extends readonly [string, ...string[]]>(words: T, description: string) =>
  z
    .enum(words)
    .default(words[0] as T[number] & string)
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
    .regex(/^\w{1,20}$/, 'must be a word')
    .default(byDefault)
    .describe(description)

/** Returns the words that a setting may have, the default first; empty if it is not a choice among words. */
export function settingChoices(setting: z.ZodType): readonly string[] {
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
  tokenMoreFields: flagSetting(false, 'the token answer has more fields'),
  tokenHeldSeconds: optional(z.int().min(1).max(31_536_000), 'real validity of a token, if not expires_in'),
  wrongSecretStatus: status(401, 'status for wrong credentials'),
  newTokenEndsOld: flagSetting(false, 'a new token ends the client’s earlier ones'),
  tokenErrorShape: choiceSetting(['oauth', 'api'], 'token refusals follow RFC 6749 or errorShape'),
}

const ofRefusals = {
  errorShape: choiceSetting(errorShapeNames, 'body of a refusal'),
  unauthorizedShape: choiceSetting(['same', ...errorShapeNames], 'body of a 401'),
  wwwAuthenticate: choiceSetting(['error', 'scheme', 'none'], 'WWW-Authenticate of a 401'),
  addressStatus: status(401, 'status for an address that is not allow-listed'),
  addressNamed: flagSetting(true, 'that answer names the address'),
  wrongMethodStatus: status(405, 'status for a wrong method'),
  tooLargeStatus: status(413, 'status for a body over bodyLimitBytes'),
  unknownIdStatus: z
    .union([z.literal(200), errorStatus], 'must be 200, or from 400 to 599')
    .default(404)
    .describe('status for an unknown id; if 200, the body is the refusal'),
  oddIdStatus: optional(errorStatus, 'as unknownIdStatus, for ids beyond [A-Za-z0-9._-]'),
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
    'place of customer_id, order_date, total_amount; top: beside data',
  ),
  mappedFieldsRequired: flagSetting(false, 'these fields are required, if read'),
  amountForm: choiceSetting(['either', 'number', 'text'], 'form of total_amount'),
  dateFractions: flagSetting(true, 'order_date may have fractions of a second'),
  dateOffsets: choiceSetting(['utc', 'z', 'any'], 'offset of order_date; utc: Z or +00:00'),
  orderItems: choiceSetting(
    ['any', 'filled', 'objects', 'sku'],
    'what items must be; sku: objects with sku and quantity',
  ),
}

const ofRepetition = {
  idempotency: choiceSetting(['e002', 'replay', 'ignore'], 'answer to a used key; replay: the first answer'),
  idempotencyHeaders: z
    .array(z.string().regex(/^[A-Za-z0-9-]{1,64}$/, 'must be names of headers'))
    .min(1, 'must have at least one name')
    .default(['Idempotency-Key'])
    .describe('headers for the key; the first present counts'),
  idempotencyDemanded: choiceSetting(
    ['none', 'any', 'bare', 'quoted', 'uuid'],
    'key that a POST must have; uuid: without quotes',
  ),
  ownIds: choiceSetting(['taken', 'required', 'ignored', 'refused'], 'the client’s own transactionId or orderId'),
}

const ofTransactions = {
  transactionIdForm: choiceSetting(['uuid', 'digits', 'odd'], 'form of ids; odd: a path must encode them'),
  firstStatus: word('pending', 'status in the first half of processing'),
  resultShape: choiceSetting(['object', 'absent', 'text', 'list'], 'result of an ended transaction'),
  errorCodeShown: flagSetting(true, 'a failed transaction has an errorCode'),
  orderFirstStatus: word('pending', 'status of an order in processing'),
  orderLastStatus: word('completed', 'status of a processed order'),
  visibleAfterSeconds: z.number().min(0).max(86_400).default(0).describe('how long a new id looks unknown'),
  createdAtOnRead: flagSetting(true, 'GET of an order has createdAt'),
}

const ofTheLimit = {
  rateLimitScope: choiceSetting(
    ['client', 'token', 'address'],
    'whose requests share the limit; a restart resets token and address',
  ),
  rateLimitKind: choiceSetting(['sliding', 'fixed'], 'kind of window'),
  rateLimitPolls: flagSetting(true, 'GET counts'),
  rateLimitTokens: flagSetting(false, 'token requests count'),
  rateLimitOrders: choiceSetting(['shared', 'apart'], 'limit of orders'),
  rateLimitPerSecond: optional(z.int().min(1).max(1_000_000), 'a second limit, per second'),
  rateLimitFailures: flagSetting(true, 'errors count, except 429'),
  rateLimitRefused: flagSetting(false, '429 counts'),
  remainingHeader: choiceSetting(['all', 'api', 'none'], 'answers with X-RateLimit-Remaining'),
  remainingValue: choiceSetting(
    ['true', 'double', 'full', 'zero'],
    'value of X-RateLimit-Remaining; full: rateLimitRequests',
  ),
}

const ofAnswers = {
  compression: choiceSetting(['never', 'asked', 'always'], 'gzip; asked: if Accept-Encoding asks'),
}

/** These cannot be set for one client. */
export const serverWideSettings = {
  clockSkewSeconds: z
    .number()
    .min(-86_400)
    .max(86_400)
    .default(0)
    .describe('how fast Date and times in answers are, not in tokens'),
  keepAliveSeconds: wholeNumberSetting({ min: 0, max: 3600, byDefault: 72 }, 'idle connections are closed after this'),
}

export const interfaceGapTopics = {
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
