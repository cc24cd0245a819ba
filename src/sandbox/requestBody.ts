import type { z } from 'zod'
import type { Exchange } from './exchange.ts'
import { parseExactly } from './parseExactly.ts'
import { type Answer, problem } from './problemAnswer.ts'

export type BodyRead<T> = { kind: 'value'; value: T } | { kind: 'invalid'; answer: Answer }

/**
 * Reads a JSON body and checks it against its schema; what is wrong becomes a 415 or a 400 that names the fields.
 *
 * @param amountKey numbers under this key reach the schema as the text of their digits
 */
export function readBody<T>(exchange: Exchange, schema: z.ZodType<T>, amountKey?: string): BodyRead<T> {
  if (!/^application\/json\s*(;|$)/i.test(exchange.contentType)) {
    return wrong(problem(415, 'The Content-Type must be application/json.'))
  }
  const json = parsed(exchange.body, amountKey)
  if (json === undefined) return wrong(problem(400, 'The body is not JSON.'))
  const checked = schema.safeParse(json.value)
  if (checked.success) return { kind: 'value', value: checked.data }
  const errors = checked.error.issues.map(({ path, message }) => ({
    field: path.join('.') || '(body)',
    detail: message,
  }))
  const named = errors.map(({ field, detail }) => `${field}: ${detail}`).join('; ')
  return wrong(problem(400, `The request is not valid: ${named}`, { errors }))
}

function parsed(body: string, amountKey?: string): { value: unknown } | undefined {
  try {
    return { value: parseExactly(body, amountKey) }
  } catch {
    return undefined // not JSON, or nested beyond what the parser takes
  }
}

function wrong(answer: Answer): { kind: 'invalid'; answer: Answer } {
  return { kind: 'invalid', answer }
}
