import { componentHeaders, componentSchemas, type SchemaName } from './openapiSchemas.ts'
import { numberDigitsMax } from './parseExactly.ts'
import { idempotencyKeyMax } from './requestSchemas.ts'

/** The OpenAPI 3.1 document at /openapi.json: docs/interface.md, and what the sandbox answers besides. */
export function openApiDocument(): Record<string, unknown> {
  return {
    openapi: '3.1.0',
    info,
    servers: [{ url: '/', description: 'where this document was read' }],
    tags: [
      { name: 'data', description: 'Submitting records and asking what became of them' },
      { name: 'orders', description: 'Creating orders and reading them' },
      { name: 'tokens', description: 'OAuth 2.0 client credentials (docs/interface.md, 5)' },
    ],
    paths: {
      '/oauth/token': { post: grantToken() },
      '/api/v1/data': { post: submitData() },
      '/api/v1/data/{transactionId}': { get: readTransaction() },
      '/api/v1/orders': { post: createOrder() },
      '/api/v1/orders/{orderId}': { get: readOrder() },
    },
    webhooks: { OrderCreated: { post: orderCreated() } },
    components: {
      schemas: componentSchemas(),
      headers: componentHeaders,
      securitySchemes: {
        oauth: {
          type: 'oauth2',
          description: 'A Bearer token (JWT) for client id and secret',
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
  description: `The service of docs/interface.md. Where it says "not shown", see docs/contract.md: several statuses can be set
there, and this document has those that they are unless they are set. Every number in a request has at most
${numberDigitsMax} digits, written out without an exponent. A known path with another method is answered 405 with Allow.`,
  contact: { name: 'outboxd', url: 'https://www.npmjs.com/package/outboxd' },
  license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
}

const oauth = [{ oauth: [] }]

function grantToken() {
  return {
    operationId: 'grantToken',
    tags: ['tokens'],
    summary: 'A token for client id and secret',
    description:
      'OAuth 2.0 client credentials, in the form alone (docs/interface.md, 4.1). Does not count against the limit.',
    security: [],
    requestBody: {
      required: true,
      content: { 'application/x-www-form-urlencoded': { schema: schemaRef('TokenRequest') } },
    },
    responses: {
      200: tokenAnswer('Token', 'a token'),
      400: tokenAnswer('TokenError', 'invalid_request or unsupported_grant_type (RFC 6749, 5.2)'),
      401: tokenAnswer('TokenError', 'invalid_client (RFC 6749, 5.2)', { 'WWW-Authenticate': headerRef('Challenge') }),
      408: tooSlow,
      ...problems(413, 415, 429, 500, 503),
    },
  }
}

function submitData() {
  return {
    operationId: 'submitData',
    tags: ['data'],
    summary: 'Submit a record',
    description: 'Accepted first and completed later (docs/interface.md, 4.2).',
    security: oauth,
    parameters: [idempotencyKey()],
    requestBody: jsonBody('DataSubmission'),
    responses: {
      200: json('DataAccepted', 'accepted'),
      408: tooSlow,
      ...problems(400, 401, 409, 413, 415, 429, 500, 503),
    },
  }
}

function readTransaction() {
  return {
    operationId: 'readTransaction',
    tags: ['data'],
    summary: 'The status of a transaction',
    description: 'pending, and then completed or failed for good (docs/interface.md, 4.3).',
    security: oauth,
    parameters: [pathParameter('transactionId', 'as it was answered to the submission', { type: 'string' })],
    responses: { 200: json('TransactionStatus', 'its status'), ...problems(400, 401, 404, 429, 500, 503) },
  }
}

function createOrder() {
  return {
    operationId: 'createOrder',
    tags: ['orders'],
    summary: 'Create an order',
    description: 'OrderCreated is on the queue before the 201 (docs/interface.md, 4.4 and 6).',
    security: oauth,
    parameters: [idempotencyKey()],
    requestBody: jsonBody('OrderRequest'),
    responses: {
      201: json('OrderAccepted', 'created'),
      408: tooSlow,
      ...problems(400, 401, 409, 413, 415, 429, 500, 503),
    },
  }
}

function readOrder() {
  return {
    operationId: 'readOrder',
    tags: ['orders'],
    summary: 'An order and its status',
    description: 'With its items as they came (docs/interface.md, 4.5).',
    security: oauth,
    parameters: [pathParameter('orderId', 'as it was answered to the order', { type: 'string', format: 'uuid' })],
    responses: { 200: json('Order', 'the order'), ...problems(400, 401, 404, 429, 500, 503) },
  }
}

function orderCreated() {
  return {
    operationId: 'orderCreated',
    tags: ['orders'],
    summary: 'An order was created',
    description:
      'A CloudEvents 1.0 envelope on a message queue, and no HTTP request: nobody is called (docs/interface.md, 6).',
    security: [],
    requestBody: {
      required: true,
      content: { 'application/cloudevents+json': { schema: schemaRef('OrderCreatedEvent') } },
    },
    responses: { 200: { description: 'taken from the queue' }, '4XX': { description: 'left on the queue' } },
  }
}

/** Written by the server itself, before anything else knows of the request. */
const tooSlow = { description: 'the request took too long to arrive; its connection is closed' }

const problemTexts: Record<number, string> = {
  400: 'what was sent is not valid; `errors` names the fields, `code` is E001 for a customer that is not known',
  401: 'the token is missing or not valid, or the address is not allow-listed',
  404: 'there is none with this id',
  409: 'E002: the idempotency key or the id was used before',
  413: 'the body is too large',
  415: 'the body is not of the media type that is taken here',
  429: 'more requests than the limit allows',
  500: 'the service made a mistake',
  503: 'E003: the service is down',
}

const problemHeaders: Record<number, Record<string, unknown>> = {
  401: { 'WWW-Authenticate': headerRef('Challenge') },
  429: { 'Retry-After': headerRef('RetryAfter') },
  503: { 'Retry-After': headerRef('RetryLater') },
}

function problems(...statuses: number[]) {
  const content = { 'application/problem+json': { schema: schemaRef('Problem') } }
  return Object.fromEntries(
    statuses.map((status) => {
      const headers = { ...remaining(), ...problemHeaders[status] }
      return [status, { description: problemTexts[status], headers, content }]
    }),
  )
}

function json(name: SchemaName, description: string) {
  return { description, headers: remaining(), content: { 'application/json': { schema: schemaRef(name) } } }
}

function tokenAnswer(name: SchemaName, description: string, more: Record<string, unknown> = {}) {
  const headers = { ...remaining(), 'Cache-Control': headerRef('NotStored'), ...more }
  return { description, headers, content: { 'application/json': { schema: schemaRef(name) } } }
}

function remaining() {
  return { 'X-RateLimit-Remaining': headerRef('RateLimitRemaining') }
}

function jsonBody(name: SchemaName) {
  return { required: true, content: { 'application/json': { schema: schemaRef(name) } } }
}

function idempotencyKey() {
  return {
    name: 'Idempotency-Key',
    in: 'header',
    required: false,
    description: 'Not in the interface; a key used before is answered E002 (settable). An empty one is none.',
    schema: { type: 'string', maxLength: idempotencyKeyMax },
  }
}

function pathParameter(name: string, description: string, schema: Record<string, unknown>) {
  return { name, in: 'path', required: true, description, schema }
}

function schemaRef(name: SchemaName) {
  return { $ref: `#/components/schemas/${name}` }
}

function headerRef(name: keyof typeof componentHeaders) {
  return { $ref: `#/components/headers/${name}` }
}
