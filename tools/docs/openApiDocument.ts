import { idempotencyKeyLengthMax } from '../../src/sandbox/endpoints/endpoints.ts'
import { numberDigitsMax } from '../../src/sandbox/endpoints/parseExactJson.ts'
import { ProblemDetails } from '../../src/sandbox/endpoints/problemAnswer.ts'
import {
  componentHeaders,
  componentSchemas,
  type ExampleName,
  exampleBodies,
  type HeaderName,
} from './openApiSchemas.ts'

/** Describes the sandbox with the default settings. The sandbox serves this document as assets/openapi.json. */
export function buildOpenApiDocument(): Record<string, unknown> {
  return {
    openapi: '3.1.0',
    info,
    servers: [{ url: '/', description: 'where this document was read' }],
    tags: [
      { name: 'data', description: 'Submitting records and reading their status' },
      { name: 'orders', description: 'Creating orders and reading them' },
      { name: 'tokens', description: 'OAuth 2.0 client credentials (docs/reference/interface.md, 5)' },
    ],
    paths,
    webhooks: { OrderCreated: { post: orderCreated } },
    components: {
      schemas: componentSchemas(),
      headers: componentHeaders,
      securitySchemes: {
        oauth: {
          type: 'oauth2',
          description: 'A Bearer token for client id and secret',
          flows: { clientCredentials: { tokenUrl: '/oauth/token', scopes: {} } },
        },
      },
    },
  }
}

const info = {
  title: 'Data Submission and Order Service (sandbox)',
  version: '1.0.0',
  summary: 'The test environment of the service',
  description: `The service of docs/reference/interface.md, with the sandbox's default settings. Where that page says "not shown", see
docs/why/contract.md. Every number in a request has at most ${numberDigitsMax} digits, written out without an exponent. A known
path with another method is answered 405 with Allow.`,
  contact: { name: 'outboxd' },
  license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
}

const refusals = {
  400: ['the request is not valid: `errors` names the fields, `code` is E001 for an unknown customer'],
  401: ['the token is missing or not valid, or the address is not allow-listed', { 'WWW-Authenticate': 'Challenge' }],
  403: ['a page of another web site sent the request'],
  404: ['the id is unknown'],
  409: ['E002: the idempotency key or the id was used before'],
  413: ['the body is too large'],
  415: ['the media type of the body is not accepted'],
  429: ['more requests than the limit allows', { 'Retry-After': 'RetryAfter' }],
  500: ['the service failed'],
  503: ['E003: the service is down', { 'Retry-After': 'RetryLater' }],
} as const satisfies Record<number, readonly [string, Record<string, HeaderName>?]>

function refused(...statuses: (keyof typeof refusals)[]) {
  return Object.fromEntries(
    statuses.map((status) => {
      const [description, headers = {}] = refusals[status]
      const code = /E00\d/.exec(description)?.[0]
      const example = new ProblemDetails(status, description, code === undefined ? {} : { code })
      const content = { 'application/problem+json': { schema: schemaRef('Problem'), example } }
      return [status, { description, headers: headersOf(headers), content }]
    }),
  )
}

function answered(name: ExampleName, description: string, headers: Record<string, HeaderName> = {}) {
  return { description, headers: headersOf(headers), content: contentOf('application/json', name) }
}

/** Node itself sends this answer, before the sandbox sees a request. */
const tooSlow = { 408: { description: 'the request took too long to arrive; its connection is closed' } }

const notStored = { 'Cache-Control': 'NotStored' } as const
const security = [{ oauth: [] }]

const idempotencyKey = {
  name: 'Idempotency-Key',
  in: 'header',
  description:
    'Not in docs/reference/interface.md. A used key gets E002; the setting `idempotency` can change that. An empty key counts as missing.',
  schema: { type: 'string', maxLength: idempotencyKeyLengthMax },
}

const paths = {
  '/oauth/token': {
    post: {
      operationId: 'grantToken',
      tags: ['tokens'],
      summary: 'A token for client id and secret',
      description:
        'OAuth 2.0 client credentials, sent only in the form (docs/reference/interface.md, 4.1). The request does not count against the limit.',
      security: [],
      requestBody: { required: true, content: contentOf('application/x-www-form-urlencoded', 'TokenRequest') },
      responses: {
        200: answered('Token', 'a token', notStored),
        400: answered('TokenError', 'invalid_request or unsupported_grant_type (RFC 6749, 5.2)', notStored),
        401: answered('TokenError', 'invalid_client: the id or the secret is wrong (RFC 6749, 5.2)', {
          ...notStored,
          'WWW-Authenticate': 'Challenge',
        }),
        ...refused(403, 413, 415, 429, 500, 503),
        ...tooSlow,
      },
    },
  },
  '/api/v1/data': {
    post: {
      operationId: 'submitData',
      tags: ['data'],
      summary: 'Submit a record',
      description: 'A record is accepted first and completed later (docs/reference/interface.md, 4.2).',
      ...sent('DataSubmission'),
      responses: { 200: answered('DataAccepted', 'accepted'), ...refusedSent(), ...tooSlow },
    },
  },
  '/api/v1/data/{transactionId}': {
    get: {
      operationId: 'readTransaction',
      tags: ['data'],
      summary: 'The status of a transaction',
      description: 'First pending, then completed or failed for good (docs/reference/interface.md, 4.3).',
      security,
      parameters: [pathParameter('transactionId', 'from the answer to the submission', { type: 'string' })],
      responses: { 200: answered('TransactionStatus', 'its status'), ...refused(400, 401, 403, 404, 429, 500, 503) },
    },
  },
  '/api/v1/orders': {
    post: {
      operationId: 'createOrder',
      tags: ['orders'],
      summary: 'Create an order',
      description:
        'The event OrderCreated is on the queue before the 201 is sent (docs/reference/interface.md, 4.4 and 6).',
      ...sent('OrderRequest'),
      responses: { 201: answered('OrderAccepted', 'created'), ...refusedSent(), ...tooSlow },
    },
  },
  '/api/v1/orders/{orderId}': {
    get: {
      operationId: 'readOrder',
      tags: ['orders'],
      summary: 'An order and its status',
      description: 'The items have the digits that were sent (docs/reference/interface.md, 4.5).',
      security,
      parameters: [pathParameter('orderId', 'from the answer to the order', { type: 'string', format: 'uuid' })],
      responses: { 200: answered('Order', 'the order'), ...refused(400, 401, 403, 404, 429, 500, 503) },
    },
  },
}

const orderCreated = {
  operationId: 'orderCreated',
  tags: ['orders'],
  summary: 'An order was created',
  description: 'A CloudEvents 1.0 envelope on a message queue, not an HTTP request (docs/reference/interface.md, 6).',
  security: [],
  requestBody: { required: true, content: contentOf('application/cloudevents+json', 'OrderCreatedEvent') },
  responses: { 200: { description: 'taken from the queue' }, '4XX': { description: 'left on the queue' } },
}

function sent(name: ExampleName) {
  const requestBody = { required: true, content: contentOf('application/json', name) }
  return { security, parameters: [idempotencyKey], requestBody }
}

function refusedSent() {
  return refused(400, 401, 403, 409, 413, 415, 429, 500, 503)
}

function pathParameter(name: string, description: string, schema: Record<string, unknown>) {
  return { name, in: 'path', required: true, description, schema }
}

function contentOf(mediaType: string, name: ExampleName) {
  return { [mediaType]: { schema: schemaRef(name), example: exampleBodies[name] } }
}

function headersOf(named: Record<string, HeaderName>) {
  const all = Object.entries({ 'X-RateLimit-Remaining': 'RateLimitRemaining', ...named })
  return Object.fromEntries(all.map(([name, header]) => [name, { $ref: `#/components/headers/${header}` }]))
}

function schemaRef(name: ExampleName | 'Problem') {
  return { $ref: `#/components/schemas/${name}` }
}
