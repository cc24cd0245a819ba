import { isDeepStrictEqual } from 'node:util'
import { errorShapes } from '../endpoints/applyAnswerSettings.ts'
import { Problem } from '../endpoints/problemAnswer.ts'
import type { LiveSettings } from '../sandboxSettings.ts'
import { componentHeaders, exampleOf, type HeaderName, type SchemaName } from './openapiSchemas.ts'

export type StatedAnswer = [status: number, answer: DescribedAnswer]

interface DescribedAnswer {
  description: string
  headers?: Record<string, Header>
  content?: Content
}

type Content = Record<string, { schema: unknown; example?: unknown }>

type Header = { $ref: string } | { required: false; [of: string]: unknown }

export type Refusal = keyof typeof refusals

type SettableStatus = {
  [K in keyof LiveSettings]: K extends `${string}Status` ? (LiveSettings[K] extends number | null ? K : never) : never
}[keyof LiveSettings]

const refusals = {
  invalid: [400, 'the request is not valid: `errors` names the fields, `code` is E001 for an unknown customer'],
  unauthorized: [401, 'the token is missing or not valid', { 'WWW-Authenticate': headerRef('Challenge') }],
  page: [403, 'sent by a page of another web site'],
  tooLarge: ['tooLargeStatus', 'the body is too large'],
  mediaType: [415, 'the media type of the body is not accepted'],
  tooMany: [429, 'more requests than the limit allows', { 'Retry-After': headerRef('RetryAfter') }],
  mistake: [500, 'the service failed'],
  address: ['addressStatus', 'the address is not allow-listed'],
  unknownId: ['unknownIdStatus', 'the id is unknown'],
  oddId: ['oddIdStatus', 'the id is unknown and has characters that no id has'],
  unknownCustomer: ['e001Status', 'E001: the customer is unknown'],
  duplicate: ['e002Status', 'E002: the idempotency key or the id was used before'],
  down: ['e003Status', 'E003: the service is down', { 'Retry-After': headerRef('RetryLater') }],
} as const satisfies Record<string, readonly [number | SettableStatus, string, Record<string, Header>?]>

export function problemAnswers(live: LiveSettings, ...kinds: Refusal[]): StatedAnswer[] {
  return kinds.flatMap((kind): StatedAnswer[] => {
    const [named, description, headers = {}] = refusals[kind]
    const status = typeof named === 'number' ? named : live[named]
    if (status === null) return []
    return [
      [status, { description, headers: { ...remaining(), ...headers }, content: contentOf(status, live, description) }],
    ]
  })
}

function contentOf(status: number, { errorShape, unauthorizedShape }: LiveSettings, description: string): Content {
  const isOther = status === 401 && unauthorizedShape !== 'same'
  const { contentType, body } = errorShapes[isOther ? unauthorizedShape : errorShape]
  const code = /E00\d/.exec(description)?.[0]
  const example = body(new Problem(status, description, code === undefined ? {} : { code }))
  return { [contentType.split(';')[0] ?? '']: { schema: schemaRef(isOther ? 'Unauthorized' : 'Problem'), example } }
}

export function jsonAnswer(live: LiveSettings, status: number, name: SchemaName, description: string): StatedAnswer {
  return [status, { description, headers: remaining(), content: jsonOf(live, name) }]
}

function jsonOf(live: LiveSettings, name: SchemaName): Content {
  return { 'application/json': { schema: schemaRef(name), ...exampleOf(live, name) } }
}

export function tokenAnswers(live: LiveSettings): StatedAnswer[] {
  const headers = { ...remaining(), 'Cache-Control': headerRef('NotStored') }
  const granted = { description: 'a token', headers, content: jsonOf(live, 'Token') }
  const refusal = (status: number, description: string): StatedAnswer => {
    const challenge = status === 401 ? { 'WWW-Authenticate': headerRef('Challenge') } : {}
    const content = live.tokenErrorShape === 'oauth' ? jsonOf(live, 'TokenError') : contentOf(status, live, description)
    return [status, { description, headers: { ...headers, ...challenge }, content }]
  }
  return [
    [200, granted],
    refusal(400, 'invalid_request or unsupported_grant_type (RFC 6749, 5.2)'),
    refusal(401, 'invalid_client (RFC 6749, 5.2)'),
    refusal(live.wrongSecretStatus, 'invalid_client: the id or the secret is wrong'),
  ]
}

/** Node answers this before there is a request. */
export const tooSlowAnswer: StatedAnswer = [
  408,
  { description: 'the request took too long to arrive; its connection is closed' },
]

export function joinAnswers(live: LiveSettings, ...answers: StatedAnswer[]): Record<string, DescribedAnswer> {
  const byStatus: Record<string, DescribedAnswer> = {}
  for (const [status, answer] of answers) {
    const other = byStatus[status]
    byStatus[status] = other === undefined ? answer : either(live, other, answer)
  }
  return byStatus
}

function either(live: LiveSettings, one: DescribedAnswer, other: DescribedAnswer): DescribedAnswer {
  return {
    description: [...new Set([one.description, other.description])].join('; or '),
    headers: Object.fromEntries(
      Object.entries({ ...one.headers, ...other.headers }).map(([name, header]) => {
        const inBoth = JSON.stringify(one.headers?.[name]) === JSON.stringify(other.headers?.[name])
        return [name, inBoth ? header : optional(live, header)]
      }),
    ),
    content: eitherContent(one.content ?? {}, other.content ?? {}),
  }
}

function eitherContent(one: Content, other: Content): Content {
  const different = Object.keys(one).filter(
    (type) => other[type] && !isDeepStrictEqual(one[type]?.schema, other[type].schema),
  )
  const anyOf = different.map((type) => [
    type,
    { ...one[type], schema: { anyOf: [one[type]?.schema, other[type]?.schema] } },
  ])
  return { ...one, ...other, ...Object.fromEntries(anyOf) }
}

function optional(live: LiveSettings, header: Header): Header {
  if (!('$ref' in header)) return header
  const name = String(header.$ref).split('/').at(-1) as HeaderName
  return { ...componentHeaders(live)[name], required: false }
}

function remaining(): Record<string, Header> {
  return { 'X-RateLimit-Remaining': headerRef('RateLimitRemaining') }
}

export function schemaRef(name: SchemaName) {
  return { $ref: `#/components/schemas/${name}` }
}

function headerRef(name: HeaderName) {
  return { $ref: `#/components/headers/${name}` }
}
