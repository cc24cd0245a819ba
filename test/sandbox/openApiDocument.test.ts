import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createConfig, lintFromString } from '@redocly/openapi-core'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { idempotencyKeyLengthMax } from '../../src/sandbox/endpoints/endpoints.ts'
import { numberDigitsMax } from '../../src/sandbox/endpoints/parseExactJson.ts'
import { orderRequestSchema, submissionSchema } from '../../src/sandbox/endpoints/recordSchemas.ts'
import { liveSettingsSchema } from '../../src/sandbox/sandboxSettings.ts'
import { checkout } from '../support/program.ts'
import { type Json, setup } from './setup.ts'

/** assets/openapi.json describes the sandbox with its default settings. */

const live = liveSettingsSchema.parse({})
const document: Json = JSON.parse(readFileSync(join(checkout, 'assets', 'openapi.json'), 'utf8'))

/** Every `$ref` in the document. */
function references(node: Json): string[] {
  if (typeof node !== 'object' || node === null) return []
  return Object.entries(node).flatMap(([key, value]) => (key === '$ref' ? [String(value)] : references(value)))
}

test('the document is served as OpenAPI 3.1, without a token', async () => {
  await using s = await setup()
  const response = await fetch(`${s.sandbox.url}/openapi.json`)
  expect(response.status).toBe(200)
  expect(await response.json()).toEqual(document)
  expect(document.openapi).toMatch(/^3\.1\.\d+$/)
})

test('the document has the five endpoints, each with answers and declared path parameters', () => {
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods as Json).map(([method, operation]) => ({ path, method, operation: operation as Json })),
  )
  expect(operations.map(({ method, path }) => `${method.toUpperCase()} ${path}`)).toEqual([
    'POST /oauth/token',
    'POST /api/v1/data',
    'GET /api/v1/data/{transactionId}',
    'POST /api/v1/orders',
    'GET /api/v1/orders/{orderId}',
  ])
  expect(new Set(operations.map(({ operation }) => operation.operationId)).size).toBe(5)
  for (const { path, operation } of operations) {
    const declared = (operation.parameters ?? [])
      .filter((each: Json) => each.in === 'path')
      .map((each: Json) => each.name)
    expect(declared).toEqual([...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name))
    expect(Object.keys(operation.responses).length).toBeGreaterThan(1)
    for (const [status, response] of Object.entries<Json>(operation.responses)) {
      expect(status).toMatch(/^[1-5]\d\d$/)
      expect(response.description).toEqual(expect.any(String))
    }
  }
})

test('every $ref of the document resolves', () => {
  for (const reference of references(document)) {
    const [, kind = '', name = ''] = /^#\/components\/(\w+)\/(\w+)$/.exec(reference) ?? []
    expect(document.components[kind]?.[name], reference).toBeDefined()
  }
})

test('the document’s schemas are those that check requests', () => {
  const fromCode = (schema: z.ZodType) => {
    const { $schema: _dialect, ...rest } = z.toJSONSchema(schema, {
      target: 'draft-2020-12',
      io: 'input',
      // A schema with `format` needs no pattern.
      override({ jsonSchema }) {
        if (jsonSchema.format !== undefined) delete jsonSchema.pattern
      },
    })
    return rest
  }
  const { DataSubmission, OrderRequest } = document.components.schemas
  expect(DataSubmission).toEqual(fromCode(submissionSchema(live)))
  expect(OrderRequest).toEqual(fromCode(orderRequestSchema(live)))
  const [{ schema: key }] = document.paths['/api/v1/data'].post.parameters
  expect(key.maxLength).toBe(idempotencyKeyLengthMax)
  expect(document.info.description).toContain(`at most ${numberDigitsMax} digits`)
  expect(DataSubmission.properties.customerId).toMatchObject({ type: 'string', minLength: 1, maxLength: 10 })
  expect(DataSubmission.properties.data.properties.field1.enum).toEqual(['value1', 'value2', 'value3'])
  expect(DataSubmission.properties.data.properties.total_amount.type).toEqual(['number', 'string'])
  expect(DataSubmission.required).toEqual(['customerId', 'data'])
})

test('a schema read back from the document accepts and refuses the same values', () => {
  const reread = z.fromJSONSchema(document.components.schemas.OrderRequest)
  expect(reread.safeParse({ customerId: 'a3bb189e-8bf9-4888-9912-ace4e6543002', items: [1] }).success).toBe(true)
  expect(reread.safeParse({ customerId: 'a3bb189e-8bf9-4888-9912-ace4e6543002', items: {} }).success).toBe(false)
})

test('the document has the headers X-RateLimit-Remaining, Retry-After and WWW-Authenticate of each answer', () => {
  for (const [path, method] of [
    ['/oauth/token', 'post'],
    ['/api/v1/data', 'post'],
    ['/api/v1/data/{transactionId}', 'get'],
    ['/api/v1/orders', 'post'],
    ['/api/v1/orders/{orderId}', 'get'],
  ] as const) {
    const { 408: _writtenByTheServer, ...responses } = document.paths[path][method].responses
    for (const { headers } of Object.values<Json>(responses)) expect(headers).toHaveProperty('X-RateLimit-Remaining')
    for (const status of [400, 401, 429, 500, 503]) expect(responses, `${path} ${status}`).toHaveProperty(`${status}`)
    expect(responses[401].headers).toHaveProperty('WWW-Authenticate')
    expect(responses[429].headers).toHaveProperty('Retry-After')
    expect(responses[503].headers).toHaveProperty('Retry-After')
    if (method === 'post') expect(Object.keys(responses)).toEqual(expect.arrayContaining(['413', '415']))
  }
})

test('the document has the range of amounts, open answer schemas, the event, contact and license', () => {
  const { schemas } = document.components
  const amount = schemas.DataSubmission.properties.data.properties.total_amount
  expect([amount.minimum, amount.maximum]).toEqual([-99_999_999.99, 99_999_999.99])
  for (const schema of Object.values<Json>(schemas)) expect(schema.additionalProperties).not.toBe(false)
  const event = document.webhooks.OrderCreated.post.requestBody.content['application/cloudevents+json'].schema
  expect(event).toEqual({ $ref: '#/components/schemas/OrderCreatedEvent' })
  expect(document.info).toMatchObject({ contact: { name: expect.any(String) }, license: { identifier: 'Apache-2.0' } })
})

test('every body has an example that fits its schema', () => {
  const contents = (node: Json): Json[] =>
    typeof node !== 'object' || node === null
      ? []
      : Object.entries<Json>(node).flatMap(([key, value]) =>
          key === 'content' ? Object.values<Json>(value) : contents(value),
        )
  const bodies = contents(document)
  expect(bodies.length).toBeGreaterThan(40)
  for (const { schema, example } of bodies) {
    const { $ref = schema.anyOf?.[0].$ref } = schema
    const read = z.fromJSONSchema(document.components.schemas[$ref.split('/').at(-1)])
    expect(read.safeParse(example).error, $ref).toBeUndefined()
  }
})

const copied = (): Record<string, unknown> => JSON.parse(JSON.stringify(document))
const withoutTags = () => ({ ...copied(), tags: [], info: { title: 'no license', version: '1' } })

async function redocly(described: unknown): Promise<string[]> {
  const config = await createConfig({ extends: ['recommended-strict'] })
  const found = await lintFromString({ source: JSON.stringify(described), absoluteRef: '/openapi.json', config })
  return found.map(({ ruleId, message, location }) => `${ruleId}: ${message} (${location[0]?.pointer})`)
}

test('redocly finds no problem in the OpenAPI document', async () => {
  expect(await redocly(copied())).toEqual([])
  expect((await redocly(withoutTags())).join()).toContain('info-license')
})
