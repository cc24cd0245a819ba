import type { z } from 'zod'
import type { Exchange, SandboxParts } from '../exchange.ts'
import { type AppliedRequest, findAppliedRequest } from '../storage/findStored.ts'
import { idempotencyKeyLengthMax } from './endpoints.ts'
import { findUnstorablePart, jsonDepthMax, parseExactJson } from './parseExactJson.ts'
import { type Answer, errorTitles, type FieldError, refusalAnswer } from './problemAnswer.ts'

export function refuseWhileDown(parts: SandboxParts, client: string): Answer | undefined {
  return parts.liveSettingsOf(client).down ? unavailableServiceAnswer(parts, client) : undefined
}

export function unavailableServiceAnswer(parts: SandboxParts, client: string | null): Answer {
  const { e003Status, e003RetryAfterSeconds } = parts.liveSettingsOf(client)
  const headers = e003RetryAfterSeconds === 0 ? {} : { 'retry-after': String(e003RetryAfterSeconds) }
  return refusalAnswer(e003Status, `${errorTitles.E003}: try again later.`, { code: 'E003' }, headers)
}

export function refuseUnknownCustomer(parts: SandboxParts, customerId: string, client: string): Answer | undefined {
  const { unknownCustomers, e001Status } = parts.liveSettingsOf(client)
  if (!unknownCustomers.some((prefix) => customerId.startsWith(prefix))) return undefined
  return refusalAnswer(e001Status, `${errorTitles.E001}: ${customerId} was not found.`, { code: 'E001' })
}

export function unknownIdAnswer(
  parts: SandboxParts,
  what: 'transaction' | 'order',
  id: string,
  client: string,
): Answer {
  const { unknownIdStatus, oddIdStatus } = parts.liveSettingsOf(client)
  const isOdd = !/^[A-Za-z0-9._-]*$/.test(id)
  return refusalAnswer((isOdd && oddIdStatus) || unknownIdStatus, `There is no ${what} ${id}.`)
}

export function refuseDuplicate(parts: SandboxParts, what: string, client: string): Answer {
  return refusalAnswer(parts.liveSettingsOf(client).e002Status, `${errorTitles.E002}: ${what} was used before.`, {
    code: 'E002',
  })
}

const keyForms = {
  any: { pattern: /./, says: 'must be there' },
  bare: { pattern: /^[^"]+$/, says: 'must be there, without quotes' },
  quoted: { pattern: /^"[^"]+"$/, says: 'must be there, in quotes' },
  uuid: {
    pattern: /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i,
    says: 'must be a uuid, without quotes',
  },
}

function refuseMalformedIdempotencyKey(parts: SandboxParts, { idempotencyKey, client }: Exchange): Answer | undefined {
  const { idempotencyDemanded, idempotencyHeaders } = parts.liveSettingsOf(client)
  if (idempotencyDemanded === 'none') return undefined
  const { pattern, says } = keyForms[idempotencyDemanded]
  return pattern.test(idempotencyKey ?? '') ? undefined : refusalAnswer(400, `${idempotencyHeaders[0]}: ${says}.`)
}

/**
 * Returns undefined if the request is to be applied. A key is used if its request was applied, even if the answer was
 * lost. Under `replay`, the key with another body gets E002.
 * @param replay makes the first answer again
 */
export async function answerUsedIdempotencyKey(
  parts: SandboxParts,
  exchange: Exchange,
  replay: (before: AppliedRequest) => Answer,
): Promise<Answer | undefined> {
  const { idempotencyKey, endpoint, client, maskedBody: body } = exchange
  const mode = parts.liveSettingsOf(client).idempotency
  if (idempotencyKey === null) return undefined
  if (idempotencyKey.length > idempotencyKeyLengthMax) {
    return refusalAnswer(400, `Idempotency-Key: must have at most ${idempotencyKeyLengthMax} characters.`)
  }
  if (mode === 'ignore') return undefined
  const before = await findAppliedRequest(parts.pool, { idempotencyKey, client, endpoint, body })
  if (before === undefined) return undefined
  return mode === 'replay' && before.sameRequest
    ? replay(before)
    : refuseDuplicate(parts, 'the idempotency key', client)
}

type BodyResult<T> = { kind: 'value'; value: T } | { kind: 'invalid'; answer: Answer }

export function checkAndParseRecordRequest<T>(
  parts: SandboxParts,
  exchange: Exchange,
  schema: z.ZodType<T>,
): BodyResult<T> {
  const refusal = refuseWhileDown(parts, exchange.client) ?? refuseMalformedIdempotencyKey(parts, exchange)
  if (refusal) return wrong(refusal)
  if (!/^application\/json\s*(;|$)/i.test(exchange.contentType)) {
    return wrong(refusalAnswer(415, 'The Content-Type must be application/json.'))
  }
  if (!isUtf8Request(exchange)) return wrong(refusalAnswer(400, 'The body must be UTF-8.'))
  const json = parsed(exchange.body)
  if (json.kind === 'invalid') return json
  const unstorable = findUnstorablePart(json.value)
  if (unstorable !== undefined) return wrong(notValid([unstorable]))
  const checked = schema.safeParse(json.value)
  if (checked.success) return { kind: 'value', value: checked.data }
  const errors = checked.error.issues.map(({ path, message }) => ({
    field: path.join('.') || '(body)',
    detail: message,
  }))
  return wrong(notValid(errors, parts.liveSettingsOf(exchange.client).invalidCustomerCode))
}

export function isUtf8Request({ contentType, isUtf8 }: Pick<Exchange, 'contentType' | 'isUtf8'>): boolean {
  const charset = /;\s*charset\s*=\s*"?([^\s;"]*)/i.exec(contentType)?.[1]
  return isUtf8 && (charset === undefined || /^utf-?8$/i.test(charset))
}

function parsed(body: string): BodyResult<unknown> {
  try {
    return { kind: 'value', value: parseExactJson(body) }
  } catch (error) {
    const tooDeep = error instanceof RangeError
    return wrong(
      refusalAnswer(400, tooDeep ? `The body is nested deeper than ${jsonDepthMax}.` : 'The body is not JSON.'),
    )
  }
}

/** @param customerCode the error code if customerId is wrong (docs/reference/interface.md, 7.2) */
function notValid(errors: FieldError[], customerCode: 'none' | 'E001' = 'none'): Answer {
  const named = errors.map(({ field, detail }) => `${field}: ${detail}`).join('; ')
  const code =
    errors.some(({ field }) => field === 'customerId') && customerCode !== 'none' ? { code: customerCode } : {}
  return refusalAnswer(400, `The request is not valid: ${named}`, { ...code, errors })
}

function wrong(answer: Answer): { kind: 'invalid'; answer: Answer } {
  return { kind: 'invalid', answer }
}
