import { z } from 'zod'
import * as wire from './requestSchemas.ts'

/** The OpenAPI 3.1 document at /openapi.json, made from the very schemas that check requests. */
export function openApiDocument(): Record<string, unknown> {
  return {
    openapi: '3.1.0',
    info: {
      title: 'Data Submission and Order Service (sandbox)',
      version: '1.0.0',
      description:
        'The test environment of the service (docs/interface.md). Where it says "not shown", see docs/contract.md.',
    },
    servers: [{ url: '/' }],
    paths: {
      '/oauth/token': { post: tokenOperation() },
      '/api/v1/data': {
        post: {
          operationId: 'submitData',
          summary: 'Submit a record (docs/interface.md, 4.2)',
          security: [{ oauth: [] }],
          parameters: [idempotencyKey],
          requestBody: jsonBody('DataSubmission'),
          responses: { '200': json('DataAccepted', 'accepted'), ...problems(400, 401, 409, 413, 415, 429, 500, 503) },
        },
      },
      '/api/v1/data/{transactionId}': {
        get: {
          operationId: 'readTransaction',
          summary: 'The status of a transaction (docs/interface.md, 4.3)',
          security: [{ oauth: [] }],
          parameters: [pathParameter('transactionId', { type: 'string' })],
          responses: { '200': json('TransactionStatus', 'its status'), ...problems(401, 404, 429, 500, 503) },
        },
      },
      '/api/v1/orders': {
        post: {
          operationId: 'createOrder',
          summary: 'Create an order; publishes OrderCreated (docs/interface.md, 4.4)',
          security: [{ oauth: [] }],
          parameters: [idempotencyKey],
          requestBody: jsonBody('OrderRequest'),
          responses: { '201': json('OrderAccepted', 'created'), ...problems(400, 401, 409, 413, 415, 429, 500, 503) },
        },
      },
      '/api/v1/orders/{orderId}': {
        get: {
          operationId: 'readOrder',
          summary: 'An order and its status (docs/interface.md, 4.5)',
          security: [{ oauth: [] }],
          parameters: [pathParameter('orderId', { type: 'string', format: 'uuid' })],
          responses: { '200': json('Order', 'the order'), ...problems(400, 401, 404, 429, 500, 503) },
        },
      },
    },
    components: {
      schemas: schemas(),
      securitySchemes: {
        oauth: {
          type: 'oauth2',
          flows: { clientCredentials: { tokenUrl: '/oauth/token', scopes: {} } },
        },
      },
    },
  }
}

const idempotencyKey = {
  name: 'Idempotency-Key',
  in: 'header',
  required: false,
  description: 'Not in the interface; a key used before is answered E002 (settable).',
  schema: { type: 'string' },
}

const rateHeader = { 'X-RateLimit-Remaining': { schema: { type: 'integer', minimum: 0 } } }

const requests = {
  TokenRequest: wire.tokenRequestSchema,
  DataSubmission: wire.submissionSchema,
  OrderRequest: wire.orderRequestSchema,
}

const answers = {
  Token: wire.tokenSchema,
  TokenError: wire.tokenErrorSchema,
  DataAccepted: wire.acceptedSchema,
  TransactionStatus: wire.transactionSchema,
  OrderAccepted: wire.orderCreatedSchema,
  Order: wire.orderSchema,
  Problem: wire.problemSchema,
  OrderCreatedEvent: wire.orderCreatedEventSchema,
}

/** Component schemas by name; requests as they are sent, all others as they are answered. */
function schemas(): Record<string, unknown> {
  return { ...components(requests, 'input'), ...components(answers, 'output') }
}

function components(named: Record<string, z.ZodType>, io: 'input' | 'output'): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(named).map(([name, schema]) => {
      const { $schema: _dialect, ...rest } = z.toJSONSchema(schema, { target: 'draft-2020-12', io })
      return [name, rest]
    }),
  )
}

function tokenOperation() {
  return {
    operationId: 'grantToken',
    summary: 'OAuth 2.0 client credentials (docs/interface.md, 4.1)',
    security: [],
    requestBody: { required: true, content: { 'application/x-www-form-urlencoded': { schema: ref('TokenRequest') } } },
    responses: {
      '200': { description: 'a token', content: { 'application/json': { schema: ref('Token') } } },
      '400': { description: 'RFC 6749, 5.2', content: { 'application/json': { schema: ref('TokenError') } } },
      '401': { description: 'invalid_client', content: { 'application/json': { schema: ref('TokenError') } } },
    },
  }
}

function ref(name: string) {
  return { $ref: `#/components/schemas/${name}` }
}

function json(name: string, description: string) {
  return { description, headers: rateHeader, content: { 'application/json': { schema: ref(name) } } }
}

function jsonBody(name: string) {
  return { required: true, content: { 'application/json': { schema: ref(name) } } }
}

function problems(...statuses: number[]) {
  const content = { 'application/problem+json': { schema: ref('Problem') } }
  return Object.fromEntries(
    statuses.map((status) => [status, { description: `problem ${status}`, headers: rateHeader, content }]),
  )
}

function pathParameter(name: string, schema: Record<string, unknown>) {
  return { name, in: 'path', required: true, schema }
}
