import { z } from 'zod'
import { endpoints } from '../endpoints/endpoints.ts'
import { findNumberText, parseExactJson } from '../endpoints/parseExactJson.ts'
import { isRegularExpression } from '../interfaceGapSettings.ts'

const patternSchema = z
  .strictObject({
    pattern: z
      .string()
      .refine(isRegularExpression, 'must be a regular expression, as new RegExp(…, "u") takes it')
      .describe('a regular expression for the text or the digits of the number'),
  })
  .describe('text or number that matches a pattern')

const fieldWords = 'must be a text, a number, true, false, null, { pattern: … } or { exists: … }'

const scalar = z.union([z.string(), z.number(), z.boolean(), z.null()], { error: fieldWords })

const fieldMatch = z.union(
  [
    scalar,
    patternSchema,
    z.strictObject({ exists: z.boolean().describe('true: the field must be there; false: it must be missing') }),
  ],
  { error: fieldWords },
)
type FieldMatch = z.infer<typeof fieldMatch>

export const bodyMatchSchema = z
  .record(z.string().min(1), fieldMatch)
  .describe('expected values in the body by path, such as data.field1 or items.0.sku')

const status = z.union([z.int().min(100).max(599), z.literal('dropped')], {
  error: 'must be an HTTP status, or dropped for a connection that was closed without an answer',
})

const endpoint = z.enum([...endpoints, 'other'])

export const requestMatchSchema = z.strictObject({
  endpoint: z
    .union([endpoint, z.array(endpoint).min(1)])
    .optional()
    .describe('token, submit, status, order …'),
  method: z.string().optional(),
  path: z.union([z.string(), patternSchema]).optional().describe('path without the query'),
  client: z.string().optional().describe('the id of the client that sent the request'),
  status: z
    .union([status, z.array(status).min(1)])
    .optional()
    .describe('the status of the answer'),
  applied: z.boolean().optional().describe('true: the request created a transaction or an order'),
  idempotencyKey: fieldMatch.optional(),
  body: bodyMatchSchema.optional(),
})
type RequestMatch = z.infer<typeof requestMatchSchema>

export interface LoggedRequest {
  sequence: number
  endpoint: string
  method: string
  path: string
  client: string | null
  idempotencyKey: string | null
  body: string | null
  /** Null if the connection was dropped. */
  status: number | null
  applied: boolean
}

export interface Difference {
  field: string
  expected: unknown
  found: unknown
}

export function findDifferences(match: RequestMatch, request: LoggedRequest): Difference[] {
  const { body, idempotencyKey, path, ...plain } = match
  const found: Difference[] = []
  const note = (field: string, expected: unknown, value: unknown) => found.push({ field, expected, found: value })
  for (const [field, expected] of Object.entries(plain)) {
    if (expected === undefined) continue
    const value = field === 'status' ? (request.status ?? 'dropped') : request[field as keyof typeof plain]
    if (![expected].flat().includes(value as never)) note(field, expected, value)
  }
  if (path !== undefined && !isMatch(path, request.path)) note('path', path, request.path)
  if (idempotencyKey !== undefined && !isMatch(idempotencyKey, request.idempotencyKey ?? undefined))
    note('idempotencyKey', idempotencyKey, request.idempotencyKey)
  return body === undefined ? found : [...found, ...findBodyDifferences(body, parseJsonOrForm(request.body))]
}

export function findBodyDifferences(match: Record<string, FieldMatch>, body: unknown): Difference[] {
  return Object.entries(match).flatMap(([field, expected]) => {
    const value = valueAt(body, field)
    return isMatch(expected, value) ? [] : [{ field: `body.${field}`, expected, found: shorten(value) }]
  })
}

/** Returns undefined for a text that is neither JSON nor a form. */
export function parseJsonOrForm(text: string | null): unknown {
  if (text === null) return undefined
  try {
    return parseExactJson(text)
  } catch {
    return text.includes('=') ? Object.fromEntries(new URLSearchParams(text)) : undefined
  }
}

/** Compares numbers by value: 12.50 equals 12.5. */
function isMatch(match: FieldMatch, value: unknown): boolean {
  const digits = findNumberText(value)
  if (typeof match === 'number') return digits !== undefined && Number(digits) === match
  if (typeof match !== 'object' || match === null) return match === value
  if ('exists' in match) return match.exists === (value !== undefined)
  const text = typeof value === 'string' ? value : digits
  return text !== undefined && new RegExp(match.pattern, 'u').test(text)
}

const shownCharactersMax = 200

function shorten(value: unknown): unknown {
  if (value === undefined) return '(not there)'
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  return text.length <= shownCharactersMax ? value : `${text.slice(0, shownCharactersMax).toWellFormed()}…`
}

function valueAt(body: unknown, path: string): unknown {
  let at = body
  for (const step of path.split('.')) {
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, step)) return undefined
    if (Array.isArray(at) && !/^\d+$/.test(step)) return undefined // `length` of a list is not a field
    at = (at as Record<string, unknown>)[step]
  }
  return at
}
