import { numberDigitsMax } from '../endpoints/parseExactly.ts'
import { idempotencyKeyMax } from '../endpoints/requestSchemas.ts'
import type { LiveSettings } from '../sandboxSettings.ts'
import {
  joinAnswers,
  jsonAnswer,
  problemAnswers,
  type Refusal,
  type StatedAnswer,
  schemaRef,
  tokenAnswers,
  tooSlowAnswer,
} from './openapiAnswers.ts'
import { componentHeaders, componentSchemas, exampleOf, type SchemaName } from './openapiSchemas.ts'

export function openApiDocument(live: LiveSettings): Record<string, unknown> {
  return {
    openapi: '3.1.0',
    info,
    servers: [{ url: '/', description: 'where this document was read' }],
    tags: [
      { name: 'data', description: 'Submitting records and reading their status' },
      { name: 'orders', description: 'Creating orders and reading them' },
      { name: 'tokens', description: 'OAuth 2.0 client credentials (docs/reference/interface.md, 5)' },
    ],
    paths: pathsOf(live),
    webhooks: { OrderCreated: { post: orderCreated(live) } },
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
  description: `The service of docs/reference/interface.md. Where it says "not shown", see docs/why/contract.md: several statuses can be
set, and this document has them as they are. Every number in a request has at most
${numberDigitsMax} digits, written out without an exponent. A known path with another method is answered 405 with Allow.`,
  contact: { name: 'outboxd' },
  license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
}

const anyRefusal = ['invalid', 'unauthorized', 'page', 'address', 'tooMany', 'mistake', 'down'] as const
const bodyRefusals = ['duplicate', 'unknownCustomer', 'tooLarge', 'mediaType'] as const

interface Operation {
  tags: [string]
  summary: string
  description: string
  security: object[]
  parameters?: object[]
  requestBody?: object
  responses: StatedAnswer[]
  refusals: readonly Refusal[]
}

const oauth = [{ oauth: [] }]

const idempotencyKey = ({ idempotencyHeaders, idempotencyDemanded }: LiveSettings) => ({
  name: idempotencyHeaders[0],
  in: 'header',
  required: idempotencyDemanded !== 'none',
  description: 'Not in the interface; a key used before gets E002 (settable). An empty one counts as missing.',
  schema: { type: 'string', maxLength: idempotencyKeyMax },
})

function pathsOf(live: LiveSettings) {
  const operations: Record<string, Operation> = {
    'post /oauth/token grantToken': {
      tags: ['tokens'],
      summary: 'A token for client id and secret',
      description:
        'OAuth 2.0 client credentials, only in the form (docs/reference/interface.md, 4.1). Does not count against the limit.',
      security: [],
      requestBody: body(live, 'application/x-www-form-urlencoded', 'TokenRequest'),
      responses: [...tokenAnswers(live), tooSlowAnswer],
      refusals: ['page', 'tooLarge', 'mediaType', 'tooMany', 'mistake', 'down'],
    },
    'post /api/v1/data submitData': {
      tags: ['data'],
      summary: 'Submit a record',
      description: 'Accepted first and completed later (docs/reference/interface.md, 4.2).',
      security: oauth,
      parameters: [idempotencyKey(live)],
      requestBody: body(live, 'application/json', 'DataSubmission'),
      responses: [jsonAnswer(live, 200, 'DataAccepted', 'accepted'), tooSlowAnswer],
      refusals: [...anyRefusal, ...bodyRefusals],
    },
    'get /api/v1/data/{transactionId} readTransaction': {
      tags: ['data'],
      summary: 'The status of a transaction',
      description: 'pending, and then completed or failed for good (docs/reference/interface.md, 4.3).',
      security: oauth,
      parameters: [pathParameter('transactionId', 'from the answer to the submission', { type: 'string' })],
      responses: [jsonAnswer(live, 200, 'TransactionStatus', 'its status')],
      refusals: [...anyRefusal, 'unknownId', 'oddId'],
    },
    'post /api/v1/orders createOrder': {
      tags: ['orders'],
      summary: 'Create an order',
      description: 'OrderCreated is on the queue before the 201 (docs/reference/interface.md, 4.4 and 6).',
      security: oauth,
      parameters: [idempotencyKey(live)],
      requestBody: body(live, 'application/json', 'OrderRequest'),
      responses: [jsonAnswer(live, 201, 'OrderAccepted', 'created'), tooSlowAnswer],
      refusals: [...anyRefusal, ...bodyRefusals],
    },
    'get /api/v1/orders/{orderId} readOrder': {
      tags: ['orders'],
      summary: 'An order and its status',
      description: 'With its items to the digit (docs/reference/interface.md, 4.5).',
      security: oauth,
      parameters: [pathParameter('orderId', 'from the answer to the order', { type: 'string', format: 'uuid' })],
      responses: [jsonAnswer(live, 200, 'Order', 'the order')],
      refusals: [...anyRefusal, 'unknownId'],
    },
  }
  return Object.fromEntries(
    Object.entries(operations).map(([name, { refusals, responses: stated, ...operation }]) => {
      const [method = '', path, operationId] = name.split(' ')
      const answers = joinAnswers(live, ...stated, ...problemAnswers(live, ...refusals))
      return [path, { [method]: { operationId, ...operation, responses: answers } }]
    }),
  )
}

const orderCreated = (live: LiveSettings) => ({
  operationId: 'orderCreated',
  tags: ['orders'],
  summary: 'An order was created',
  description: 'A CloudEvents 1.0 envelope on a message queue, not an HTTP request (docs/reference/interface.md, 6).',
  security: [],
  requestBody: body(live, 'application/cloudevents+json', 'OrderCreatedEvent'),
  responses: { 200: { description: 'taken from the queue' }, '4XX': { description: 'left on the queue' } },
})

function body(live: LiveSettings, mediaType: string, name: SchemaName) {
  return { required: true, content: { [mediaType]: { schema: schemaRef(name), ...exampleOf(live, name) } } }
}

function pathParameter(name: string, description: string, schema: Record<string, unknown>) {
  return { name, in: 'path', required: true, description, schema }
}
