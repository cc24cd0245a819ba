/** The service's JSON. Unknown fields are allowed. */
import { z } from 'zod'
import { boundText, textMax } from '../boundText.ts'
import type { AcceptanceReading, TransactionStatus } from '../model.ts'
import { makePerResource, type Resource, serviceResources } from '../resources.ts'
import { isServiceCode } from './errorCode.ts'
import { redactedMark, textOf } from './readJson.ts'

/**
 * Refuses `.` and `..`, because they vanish from a path even if percent-encoded (RFC 3986, 5.2.4 and 6.2.2). Also
 * refuses control characters, redacted secrets, and texts such as `null`.
 */
const id = z.preprocess(
  textOf,
  z
    .string()
    .max(textMax.id)
    .regex(/^(?!\.\.?$)[^\p{Cc}\p{Cs}\uFFFD]+$/u)
    .refine((text) => !noId.test(text) && !text.includes(redactedMark)),
)

/** In a transaction's status the id may be missing. */
const idOrNone = id.nullish().catch(null)

const noId = /^\s*(null|undefined)?\s*$/i

/** docs/reference/interface.md, 2.1. `expires_in` has no unit, and may be text. */
export const tokenResponse = z.object({
  access_token: z
    .string()
    .max(16_384)
    .regex(/^[\w.~+/=-]+$/),
  expires_in: z.preprocess((value) => Number(textOf(value) || Number.NaN), z.number().positive()).catch(Number.NaN),
})

/** docs/reference/interface.md, 2.3 and 2.6. */
const submitResponse = makePerResource((resource) => z.object({ [serviceResources[resource].idField]: id }))

const status = z.string().transform((text) => text.trim().toLowerCase())

const code = z.string().transform((text) => boundText(text.trim(), textMax.code))

/** docs/reference/interface.md, 2.4 and 2.6. */
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

export function submittedId(resource: Resource, json: unknown): string | null {
  const read = submitResponse[resource].safeParse(json)
  return read.success ? (read.data[serviceResources[resource].idField] ?? null) : null
}

const refusals = /^(failed|failure|rejected|refused|declined|denied|error|invalid|cancell?ed|aborted)$/

export function readAcceptance(json: unknown, code: string | null): AcceptanceReading {
  const said = z.object({ status }).safeParse(json)
  if (said.success && refusals.test(said.data.status)) return 'no'
  return isServiceCode(code) ? 'unclear' : 'yes'
}

/** Null if it is not the answer to a GET. */
export function transactionStatus(resource: Resource, json: unknown): TransactionStatus | null {
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

/** Tries the usual places, because the shape of errors is not shown (docs/reference/interface.md, 7.2). */
export function errorMessageIn(json: unknown): string | null {
  const read = problem.safeParse(json)
  if (!read.success) return null
  const { detail, message, error_description, title, error, errors } = read.data
  const each = errors.flatMap((one) => detailOfOne.safeParse(one).data ?? [])
  const summary = [detail ?? message ?? error_description ?? error ?? title ?? [], each].flat()
  return summary.length === 0 ? null : boundText(summary.join('; '), textMax.message)
}
