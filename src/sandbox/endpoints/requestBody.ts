import type { z } from 'zod'
import type { Exchange, Parts } from '../exchange.ts'
import { beyondBounds, depthMax, parseExactly } from './parseExactly.ts'
import { type Answer, type FieldError, problem } from './problemAnswer.ts'

export type BodyRead<T> = { kind: 'value'; value: T } | { kind: 'invalid'; answer: Answer }

/** Reads a JSON body and checks it against its schema; what is wrong becomes a 415 or a 400 that names the fields. */
export function readBody<T>(parts: Parts, exchange: Exchange, client: string, schema: z.ZodType<T>): BodyRead<T> {
  if (!/^application\/json\s*(;|$)/i.test(exchange.contentType)) {
    return wrong(problem(415, 'The Content-Type must be application/json.'))
  }
  if (!saysUtf8(exchange)) return wrong(problem(400, 'The body must be UTF-8.'))
  const json = parsed(exchange.body)
  if (json.kind === 'invalid') return json
  const beyond = beyondBounds(json.value)
  if (beyond !== undefined) return wrong(notValid([beyond]))
  const checked = schema.safeParse(json.value)
  if (checked.success) return { kind: 'value', value: checked.data }
  const errors = checked.error.issues.map(({ path, message }) => ({
    field: path.join('.') || '(body)',
    detail: message,
  }))
  return wrong(notValid(errors, parts.live(client).invalidCustomerCode))
}

/** Whether a body's bytes are UTF-8 and its Content-Type calls them nothing else. */
export function saysUtf8({ contentType, isUtf8 }: Pick<Exchange, 'contentType' | 'isUtf8'>): boolean {
  const charset = /;\s*charset\s*=\s*"?([^\s;"]*)/i.exec(contentType)?.[1]
  return isUtf8 && (charset === undefined || /^utf-?8$/i.test(charset))
}

function parsed(body: string): BodyRead<unknown> {
  try {
    return { kind: 'value', value: parseExactly(body) }
  } catch (error) {
    const tooDeep = error instanceof RangeError
    return wrong(problem(400, tooDeep ? `The body is nested deeper than ${depthMax}.` : 'The body is not JSON.'))
  }
}

/** @param customerCode the code where the customerId is what is wrong: docs/interface.md, 7.2, can be read so */
function notValid(errors: FieldError[], customerCode: 'none' | 'E001' = 'none'): Answer {
  const named = errors.map(({ field, detail }) => `${field}: ${detail}`).join('; ')
  const code =
    errors.some(({ field }) => field === 'customerId') && customerCode !== 'none' ? { code: customerCode } : {}
  return problem(400, `The request is not valid: ${named}`, { ...code, errors })
}

function wrong(answer: Answer): { kind: 'invalid'; answer: Answer } {
  return { kind: 'invalid', answer }
}
