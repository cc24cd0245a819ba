import type { LiveSettings } from '../sandboxSettings.ts'
import { componentHeaders, type SchemaName } from './openapiSchemas.ts'

/** The answers of the OpenAPI document, with the statuses that are set. */

/** Statuses that the interface does not show. */
export type SettableStatuses = Pick<LiveSettings, 'addressStatus' | 'unknownIdStatus' | 'e002Status' | 'e003Status'>

/** An answer of the document, with its status. */
export type StatedAnswer = [status: number, answer: DescribedAnswer]

interface DescribedAnswer {
  description: string
  headers?: Record<string, Header>
  content?: Record<string, unknown>
}

type Header = { $ref: string } | { schema: unknown; required?: boolean }

export type Refusal = keyof typeof refusals

const refusals = {
  invalid: [
    400,
    'what was sent is not valid: `errors` names the fields, `code` is E001 for a customer that is not known',
  ],
  unauthorized: [401, 'the token is missing or not valid', { 'WWW-Authenticate': headerRef('Challenge') }],
  tooLarge: [413, 'the body is too large'],
  mediaType: [415, 'the body is not of the media type that is taken here'],
  tooMany: [429, 'more requests than the limit allows', { 'Retry-After': headerRef('RetryAfter') }],
  mistake: [500, 'the service made a mistake'],
  address: ['addressStatus', 'the address is not allow-listed'],
  unknownId: ['unknownIdStatus', 'there is none with this id'],
  duplicate: ['e002Status', 'E002: the idempotency key or the id was used before'],
  down: ['e003Status', 'E003: the service is down', { 'Retry-After': headerRef('RetryLater') }],
} as const satisfies Record<string, readonly [number | keyof SettableStatuses, string, Record<string, Header>?]>

/** Problem documents (RFC 9457) for what may be refused. */
export function problems(statuses: SettableStatuses, ...kinds: Refusal[]): StatedAnswer[] {
  const content = { 'application/problem+json': { schema: schemaRef('Problem') } }
  return kinds.map((kind) => {
    const [status, description, headers = {}] = refusals[kind]
    const answer = { description, headers: { ...remaining(), ...headers }, content }
    return [typeof status === 'number' ? status : statuses[status], answer]
  })
}

export function json(status: number, name: SchemaName, description: string): StatedAnswer {
  return [status, { description, headers: remaining(), content: { 'application/json': { schema: schemaRef(name) } } }]
}

/** What the token endpoint says in its own form: RFC 6749, 5. */
export function tokenAnswer(status: number, name: SchemaName, description: string): StatedAnswer {
  const challenge = status === 401 ? { 'WWW-Authenticate': headerRef('Challenge') } : {}
  const headers = { ...remaining(), 'Cache-Control': headerRef('NotStored'), ...challenge }
  return [status, { description, headers, content: { 'application/json': { schema: schemaRef(name) } } }]
}

/** Written by the server itself, before anything else knows of the request. */
export const tooSlow: StatedAnswer = [
  408,
  { description: 'the request took too long to arrive; its connection is closed' },
]

/** Answers by status: where two share one, it may be either. */
export function responses(...answers: StatedAnswer[]): Record<string, DescribedAnswer> {
  const byStatus: Record<string, DescribedAnswer> = {}
  for (const [status, answer] of answers) {
    const other = byStatus[status]
    byStatus[status] = other === undefined ? answer : either(other, answer)
  }
  return byStatus
}

function either(one: DescribedAnswer, other: DescribedAnswer): DescribedAnswer {
  return {
    description: `${one.description}; or ${other.description}`,
    headers: Object.fromEntries(
      Object.entries({ ...one.headers, ...other.headers }).map(([name, header]) => {
        const inBoth = JSON.stringify(one.headers?.[name]) === JSON.stringify(other.headers?.[name])
        return [name, inBoth ? header : optional(header)]
      }),
    ),
    content: { ...one.content, ...other.content },
  }
}

function optional(header: Header): Header {
  if (!('$ref' in header)) return header
  const name = header.$ref.split('/').at(-1) as keyof typeof componentHeaders
  return { ...componentHeaders[name], required: false }
}

function remaining(): Record<string, Header> {
  return { 'X-RateLimit-Remaining': headerRef('RateLimitRemaining') }
}

export function schemaRef(name: SchemaName) {
  return { $ref: `#/components/schemas/${name}` }
}

function headerRef(name: keyof typeof componentHeaders) {
  return { $ref: `#/components/headers/${name}` }
}
