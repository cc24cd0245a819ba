import { numberDigitsMax } from '../endpoints/parseExactly.ts'
import { idempotencyKeyMax } from '../endpoints/requestSchemas.ts'
import type { LiveSettings } from '../sandboxSettings.ts'
import { json, problems, responses, schemaRef, tokenAnswers, tooSlow } from './openapiAnswers.ts'
import { componentHeaders, componentSchemas, type SchemaName } from './openapiSchemas.ts'

/**
 * The OpenAPI 3.1 document at /openapi.json: docs/interface.md, and what the sandbox answers besides.
 *
 * @param live as it is set: what the document says is what is answered
 */
export function openApiDocument(live: LiveSettings): Record<string, unknown> {
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
      '/oauth/token': { post: grantToken(live) },
      '/api/v1/data': { post: submitData(live) },
      '/api/v1/data/{transactionId}': { get: readTransaction(live) },
      '/api/v1/orders': { post: createOrder(live) },
      '/api/v1/orders/{orderId}': { get: readOrder(live) },
    },
    webhooks: { OrderCreated: { post: orderCreated() } },
    components: {
      schemas: componentSchemas(live),
      headers: componentHeaders(live),
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
  description: `The service of docs/interface.md. Where it says "not shown", see docs/contract.md: several statuses can be
set, and this document has them as they are. Every number in a request has at most
${numberDigitsMax} digits, written out without an exponent. A known path with another method is answered 405 with Allow.`,
  contact: { name: 'outboxd' },
  license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
}

/** Of every call of the API, and of those with a body. */
const refusedAnyway = ['invalid', 'unauthorized', 'page', 'address', 'tooMany', 'mistake', 'down'] as const
const refusedBodies = ['duplicate', 'unknownCustomer', 'tooLarge', 'mediaType'] as const

const oauth = [{ oauth: [] }]

function grantToken(live: LiveSettings) {
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
    responses: responses(
      live,
      ...tokenAnswers(live),
      tooSlow,
      ...problems(live, 'page', 'tooLarge', 'mediaType', 'tooMany', 'mistake', 'down'),
    ),
  }
}

function submitData(live: LiveSettings) {
  return {
    operationId: 'submitData',
    tags: ['data'],
    summary: 'Submit a record',
    description: 'Accepted first and completed later (docs/interface.md, 4.2).',
    security: oauth,
    parameters: [idempotencyKey()],
    requestBody: jsonBody('DataSubmission'),
    responses: responses(
      live,
      json(200, 'DataAccepted', 'accepted'),
      tooSlow,
      ...problems(live, ...refusedAnyway, ...refusedBodies),
    ),
  }
}

function readTransaction(live: LiveSettings) {
  return {
    operationId: 'readTransaction',
    tags: ['data'],
    summary: 'The status of a transaction',
    description: 'pending, and then completed or failed for good (docs/interface.md, 4.3).',
    security: oauth,
    parameters: [pathParameter('transactionId', 'as it was answered to the submission', { type: 'string' })],
    responses: responses(
      live,
      json(200, 'TransactionStatus', 'its status'),
      ...problems(live, ...refusedAnyway, 'unknownId', 'oddId'),
    ),
  }
}

function createOrder(live: LiveSettings) {
  return {
    operationId: 'createOrder',
    tags: ['orders'],
    summary: 'Create an order',
    description: 'OrderCreated is on the queue before the 201 (docs/interface.md, 4.4 and 6).',
    security: oauth,
    parameters: [idempotencyKey()],
    requestBody: jsonBody('OrderRequest'),
    responses: responses(
      live,
      json(201, 'OrderAccepted', 'created'),
      tooSlow,
      ...problems(live, ...refusedAnyway, ...refusedBodies),
    ),
  }
}

function readOrder(live: LiveSettings) {
  return {
    operationId: 'readOrder',
    tags: ['orders'],
    summary: 'An order and its status',
    description: 'With its items as they came (docs/interface.md, 4.5).',
    security: oauth,
    parameters: [pathParameter('orderId', 'as it was answered to the order', { type: 'string', format: 'uuid' })],
    responses: responses(live, json(200, 'Order', 'the order'), ...problems(live, ...refusedAnyway, 'unknownId')),
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
