import { z } from 'zod'

/**
 * What the interface does not show: each default is what the sandbox takes it for, and beside it stand the answers that a real
 * service may give. docs/contract.md says what the daemon makes of them.
 */

const errorStatus = z.int().min(400).max(599)
const isSet = (byDefault: boolean) => z.boolean().default(byDefault)
const word = (byDefault: string) =>
  z
    .string()
    .regex(/^\w{1,20}$/, 'must be a word')
    .default(byDefault)

/** Of refusals: docs/interface.md, 7.2. */
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

/** Tokens, and how the issuer refuses: docs/interface.md, 2.1 and 4.1. */
const ofTokens = {
  expiresInUnit: z.enum(['seconds', 'milliseconds', 'minutes']).default('seconds').describe('unit of expires_in'),
  expiresInForm: z
    .enum(['number', 'text', 'absent'])
    .default('number')
    .describe('expires_in is a number, the same as text, or not there'),
  tokenForm: z
    .enum(['jwt', 'opaque'])
    .default('jwt')
    .describe('access_token is a JWT, or a word that says nothing to a client'),
  tokenType: z.enum(['Bearer', 'bearer']).default('Bearer').describe('how token_type is written'),
  tokenMoreFields: isSet(false).describe('whether the answer with a token has fields that the interface does not name'),
  tokenHeldSeconds: z
    .int()
    .min(1)
    .max(31_536_000)
    .nullable()
    .default(null)
    .describe('how long a token is really good, whatever expires_in says; without it as long as that'),
  wrongSecretStatus: errorStatus.default(401).describe('HTTP status for a client id or secret that is wrong'),
  tokenErrorShape: z
    .enum(['oauth', 'api'])
    .default('oauth')
    .describe('the token endpoint refuses as RFC 6749, 5.2 has it, or as the API does (errorShape)'),
}

/** How the API refuses: docs/interface.md, 5 and 7. */
const ofRefusals = {
  errorShape: z.enum(errorShapeNames).default('problem').describe('the body of what is refused'),
  unauthorizedShape: z
    .enum(['same', ...errorShapeNames])
    .default('same')
    .describe('the body of a 401, where it is not errorShape, as that of a gateway'),
  wwwAuthenticate: z
    .enum(['error', 'scheme', 'none'])
    .default('error')
    .describe('the header of a 401: with what is wrong, the scheme alone, or not there'),
  addressStatus: errorStatus.default(401).describe('HTTP status for an address that is not allow-listed'),
  addressNamed: isSet(true).describe('whether the answer says that the address is the reason'),
  wrongMethodStatus: errorStatus
    .default(405)
    .describe('HTTP status for another method of a known path; 405 has Allow with it'),
  tooLargeStatus: errorStatus.default(413).describe('HTTP status for a body larger than bodyLimitBytes'),
  unknownIdStatus: z
    .union([z.literal(200), errorStatus], 'must be 200, or from 400 to 599')
    .default(404)
    .describe('HTTP status for a transactionId or orderId that is not known; under 200 the body is the refusal'),
  oddIdStatus: errorStatus
    .nullable()
    .default(null)
    .describe(
      'the same where the transactionId has other characters than A-Z a-z 0-9 . _ -; without it unknownIdStatus',
    ),
  e001Status: errorStatus.default(400).describe('HTTP status that goes with E001'),
  invalidCustomerCode: z
    .enum(['none', 'E001'])
    .default('none')
    .describe('code of the 400 for a customerId that is missing, empty, too long or no uuid'),
  e002Status: errorStatus.default(409).describe('HTTP status that goes with E002'),
  e003Status: errorStatus.default(503).describe('HTTP status that goes with E003'),
  e003RetryAfterSeconds: z.int().min(0).max(86_400).default(300).describe('Retry-After that goes with E003; 0: none'),
  retryAfterForm: z
    .enum(['seconds', 'date', 'none'])
    .default('seconds')
    .describe('Retry-After is a number of seconds, an HTTP date, or not there'),
}

/** What a record may look like: docs/interface.md, 2.2, 2.5 and 2.6. */
const ofRecords = {
  customerIdUnit: z
    .enum(['characters', 'utf16', 'bytes'])
    .default('characters')
    .describe('what of a customerId is counted up to 10: characters, their UTF-16 halves, or bytes of UTF-8'),
  field2Empty: isSet(true).describe('whether field2 may be empty'),
  field2LengthMax: z
    .int()
    .min(1)
    .max(1_000_000)
    .nullable()
    .default(null)
    .describe('how many characters field2 may have; without it as many as the body'),
  mappedFields: z
    .enum(['data', 'top', 'refused', 'ignored'])
    .default('data')
    .describe('customer_id, order_date, total_amount are read in data, beside data, refused, or nobody looks at them'),
  mappedFieldsRequired: isSet(false).describe('whether they have to be there, where they are read'),
  amountForm: z
    .enum(['either', 'number', 'text'])
    .default('either')
    .describe('total_amount may be a number, text, or either'),
  dateFractions: isSet(true).describe('whether order_date may have a fraction of a second'),
  dateOffsets: z
    .enum(['z', 'utc', 'any'])
    .default('utc')
    .describe('order_date ends in Z alone, also in +00:00, or in any offset'),
  orderItems: z
    .enum(['any', 'filled', 'objects', 'sku'])
    .default('any')
    .describe('items may be any list, must not be empty, must be objects, or objects with sku and quantity'),
}

/** Recognising what was sent before: docs/interface.md, 4.2 and 7.2. */
const ofRepetition = {
  idempotency: z
    .enum(['e002', 'replay', 'ignore'])
    .default('e002')
    .describe('an idempotency key used before: answer E002, give the first answer again, or take no notice'),
  idempotencyHeaders: z
    .array(z.string().regex(/^[A-Za-z0-9-]{1,64}$/, 'must be names of headers'))
    .min(1, 'must have at least one name')
    .default(['Idempotency-Key'])
    .describe('headers that carry such a key; the first that is there counts'),
  ownIds: z
    .enum(['taken', 'ignored', 'refused'])
    .default('taken')
    .describe('a transactionId or orderId that the client sends is taken, ignored, or a field too many'),
}

/** What transactions and orders look like: docs/interface.md, 2.4, 2.6 and 3. */
const ofTransactions = {
  transactionIdForm: z
    .enum(['uuid', 'digits', 'odd'])
    .default('uuid')
    .describe('ids of transactions are uuids, digits, or have characters that a path must encode'),
  firstStatus: word('pending').describe('what a transaction is called in the first half of its processing'),
  resultShape: z
    .enum(['object', 'absent', 'text', 'list'])
    .default('object')
    .describe('result of a transaction that has ended'),
  errorCodeShown: isSet(true).describe('whether a transaction that failed says why in errorCode'),
  orderFirstStatus: word('pending').describe('what an order is called while it is processed'),
  orderLastStatus: word('completed').describe('what it is called after that'),
  createdAtOnRead: isSet(true).describe('whether an order that is read has its createdAt'),
}

/** What the limit counts, and says: docs/interface.md, 8. */
const ofTheLimit = {
  rateLimitScope: z
    .enum(['client', 'token', 'address'])
    .default('client')
    .describe('whose requests are counted together; by token or address a restart begins anew'),
  rateLimitKind: z
    .enum(['sliding', 'fixed'])
    .default('sliding')
    .describe('any window, or one after the other as the clock has them'),
  rateLimitPolls: isSet(true).describe('whether GET counts'),
  rateLimitTokens: isSet(false).describe('whether a request for a token counts'),
  rateLimitOrders: z.enum(['shared', 'apart']).default('shared').describe('whether orders have a limit of their own'),
  rateLimitRefused: isSet(false).describe('whether a request that was answered 429 counts, too'),
  remainingHeader: z
    .enum(['all', 'api', 'none'])
    .default('all')
    .describe('X-RateLimit-Remaining is on all answers, on those of the API, or on none'),
}

/** Of the server as a whole, and of no client alone. */
export const serverWide = {
  clockSkewSeconds: z
    .number()
    .min(-86_400)
    .max(86_400)
    .default(0)
    .describe('by how much Date and the times in answers are fast; tokens go by the true time'),
  keepAliveSeconds: z
    .int()
    .min(0)
    .max(3600)
    .default(72)
    .describe('how long a connection stays open after an answer; 0: it is closed'),
}

const ofAnswers = {
  compression: z
    .enum(['never', 'asked', 'always'])
    .default('never')
    .describe('answers are gzip never, where Accept-Encoding has it, or always'),
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
