import { z } from 'zod'
import { boundText, textCharsMax } from '../boundText.ts'
import type { AcceptanceReading, TransactionStatus } from '../model/service.ts'
import { makePerResource, type Resource, serviceResources } from '../resources.ts'
import { textOrDigitsOf } from './readJson.ts'
import { redactedMark } from './redactSecrets.ts'

/**
 * An id that can be stored and polled. It has no control characters and no redacted secret. It is not a text such as
 * `null`, and not `.` or `..`, which vanish from a path even if percent-encoded (RFC 3986, 5.2.4 and 6.2.2).
 */
const id = z.preprocess(
  textOrDigitsOf,
  z
    .string()
    .max(textCharsMax.id)
    .regex(/^(?!\.\.?$)[^\p{Cc}\p{Cs}\uFFFD]+$/u)
    .refine((text) => !noId.test(text) && !text.includes(redactedMark)),
)

/** In a transaction's status the id may be missing. */
const idOrNone = id.nullish().catch(null)

const noId = /^\s*(null|undefined)?\s*$/i

/** The answer to a token request (docs/reference/interface.md, 2.1). `expires_in` has no unit, and may be text. */
export const tokenResponseSchema = z.object(
  {
    access_token: z
      .string({ error: ({ input }) => `access_token is ${input === undefined ? 'missing' : 'not a text'}` })
      .max(16_384, 'access_token is longer than 16384 characters')
      .regex(/^[\w.~+/=-]+$/, 'access_token is empty, or has characters that a token must not have'),
    expires_in: z
      .preprocess((value) => Number(textOrDigitsOf(value) || Number.NaN), z.number().positive())
      .catch(Number.NaN),
  },
  'the answer is not a JSON object',
)

/** The answer to a POST (docs/reference/interface.md, 2.3 and 2.6). */
const submitResponse = makePerResource((resource) => z.object({ [serviceResources[resource].idField]: id }))

const status = z.string().transform((text) => text.trim().toLowerCase())

const code = z.string().transform((text) => boundText(text.trim(), textCharsMax.code))

/** The answer to a GET (docs/reference/interface.md, 2.4 and 2.6). */
const statusResponse = makePerResource((resource) => {
  const { idField, resultField } = serviceResources[resource]
  return z
    .looseObject({ status, errorCode: code.nullish().catch(null) })
    .transform(({ [idField]: named, status, errorCode, ...rest }) => ({
      transactionId: idOrNone.parse(named) ?? null,
      status,
      errorCode: errorCode || null,
      result: resultField === null ? rest : rest[resultField],
    }))
})

export const parseUsableId = (text: string): string | null => idOrNone.parse(text) ?? null

export function readIdInSubmitAnswer(resource: Resource, json: unknown): string | null {
  const read = submitResponse[resource].safeParse(json)
  return read.success ? (read.data[serviceResources[resource].idField] ?? null) : null
}

const refusals = /^(failed|failure|rejected|refused|declined|denied|error|invalid|cancell?ed|aborted)$/

export function readAcceptance(json: unknown, code: string | null): AcceptanceReading {
  const said = z.object({ status }).safeParse(json)
  if (said.success && refusals.test(said.data.status)) return 'no'
  return isServiceErrorCode(code) ? 'unclear' : 'yes'
}

export function readTransactionStatus(resource: Resource, json: unknown): TransactionStatus | null {
  const read = statusResponse[resource].safeParse(json)
  if (!read.success) return null
  const { result } = read.data
  return { ...read.data, result: result == null ? null : (JSON.stringify(result) ?? null) }
}

const text = z.string().trim().min(1)
const problem = z.object({
  detail: text.optional().catch(undefined),
  message: text.optional().catch(undefined),
  error_description: text.optional().catch(undefined),
  title: text.optional().catch(undefined),
  error: z
    .union([text, z.object({ message: text }).transform((error) => error.message)])
    .optional()
    .catch(undefined),
  errors: z.array(z.unknown()).catch([]),
})
const detailOfOne = z.union([
  text,
  z.object({ message: text }).transform((error) => error.message),
  z.object({ detail: text }).transform((error) => error.detail),
])

/**
 * Looks in the usual fields, because the interface does not show the shape of errors (docs/reference/interface.md,
 * 7.2).
 */
export function findErrorMessage(json: unknown): string | null {
  const read = problem.safeParse(json)
  if (!read.success) return null
  const { detail, message, error_description, title, error, errors } = read.data
  const each = errors.flatMap((one) => detailOfOne.safeParse(one).data ?? [])
  const summary = [detail ?? message ?? error_description ?? error ?? title ?? [], each].flat()
  return summary.length === 0 ? null : boundText(summary.join('; '), textCharsMax.message)
}

const shape = /^E\d{3}$/
const atStart = /^(?:\s|<[^>]*>|["'(])*(E\d{3})\b/

/**
 * Finds the error code: `code`, `errorCode`, `error_code`, `error.code`, `errors[].code`, or the end of a problem's
 * `type` (RFC 9457). A code in the interface's own form, such as E001, wins over a framework's code.
 *
 * In a body that is not JSON, a code counts only at the start, after tags, and with a 5xx. A gateway's page may have E003
 * in a number, and a refusal that mentions "article E003-17" is about the record.
 *
 * @see docs/reference/interface.md, 7.2
 */
export function findAnyErrorCode(status: number, json: unknown, text: string): string | null {
  const codes = codesIn(json, 0)
  const quoted = json === undefined && status >= 500 ? atStart.exec(text)?.[1] : undefined
  return codes.find((code) => shape.test(code)) ?? quoted ?? codes[0] ?? null
}

/** True for the service's own codes such as E001. */
export const isServiceErrorCode = (code: string | null): boolean => code !== null && shape.test(code)

const holders = ['code', 'errorCode', 'error_code', 'error', 'errors']

function codesIn(json: unknown, depth: number): string[] {
  // A text in a list may be any word, so only a text in the form of the interface's codes counts.
  if (typeof json === 'string') return shape.test(json) ? [json] : []
  if (depth > 2 || typeof json !== 'object' || json === null) return []
  if (Array.isArray(json)) return json.slice(0, 100).flatMap((one) => codesIn(one, depth + 1))
  const fields = json as Record<string, unknown>
  const held = holders.flatMap((holder) => {
    const value = fields[holder]
    return typeof value === 'string' ? plausible(value) : codesIn(value, depth + 1)
  })
  return [...held, ...typeCode(fields.type)]
}

/** Ignores sentences, such as `"error": "something went wrong"`. */
function plausible(value: string): string[] {
  const code = value.trim()
  return /^[\w.:/-]{1,64}$/.test(code) ? [code] : []
}

function typeCode(type: unknown): string[] {
  const last = typeof type === 'string' ? (type.split(/[/#:]/).at(-1) ?? '') : ''
  return shape.test(last) ? [last] : []
}
