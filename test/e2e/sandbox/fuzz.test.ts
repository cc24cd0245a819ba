import { request } from 'node:http'
import Ajv2020, { type ValidateFunction } from 'ajv/dist/2020.js'
import fc from 'fast-check'
import { beforeAll, expect, test, vi } from 'vitest'
import { randomService } from '../../discover/randomService.ts'
import { type Json, setup } from '../../sandbox/setup.ts'
import { openForFile } from '../../support/openForFile.ts'
import { type FuzzedRequest, fuzzedRequest, resolve } from './fuzzedRequests.ts'

/**
 * To any request made from the OpenAPI document, the sandbox never answers 500, or an answer that the document lacks.
 *
 * `LONG=1 npm test -- test/e2e/sandbox/fuzz` runs for some minutes; FUZZ_SEED=N repeats the same requests.
 */
const batches = process.env.LONG ? 3000 : 40
const batchRequests = 20
if (process.env.LONG) vi.setConfig({ testTimeout: 1_200_000 })
const seed = Number(process.env.FUZZ_SEED ?? Math.floor(Math.random() * 2 ** 31))

interface Answered {
  status: number
  headers: Record<string, string | string[] | undefined>
  text: string
}

const s = openForFile(() => setup({ processingTime: 'constant:0', rateLimitRequests: 1_000_000 }))
let document: Json
let isOtherwise = false
const validators = new Map<string, ValidateFunction>()
const ajv = new Ajv2020.default({ strict: false, validateFormats: false })
beforeAll(async () => {
  document = (await s.call('GET', '/openapi.json')).json
  ajv.addSchema(document, 'document')
})

function send({ method, path, headers, body }: FuzzedRequest): Promise<Answered> {
  return new Promise((answered, failed) => {
    const sent = request(s.sandbox.url, { method, path, headers: { ...headers, ...lengthOf(body) } }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk) => chunks.push(chunk))
      response.on('error', failed)
      response.on('end', () =>
        answered({
          status: response.statusCode ?? 0,
          headers: response.headers,
          text: Buffer.concat(chunks).toString(),
        }),
      )
    })
    sent.on('error', failed)
    sent.end(body)
  })
}

function inWords({ method, path, headers, body }: FuzzedRequest): string {
  return `${method} ${path} ${JSON.stringify(headers)} ${body?.toString('latin1').slice(0, 200) ?? ''}`
}

function lengthOf(body: Buffer | undefined): Record<string, string> {
  return body === undefined ? {} : { 'content-length': String(body.length) }
}

/** Lists what in an answer the document lacks. */
function undocumented({ operation, path, method }: FuzzedRequest, { status, headers, text }: Answered): string[] {
  if (status === 500) return [`500: ${text}`]
  if (isOtherwise) return [] // the document has the default settings
  if (operation === undefined) return undocumentedProblem(path, method, status, headers, text)
  const [template, verb] = operation
  const response = document.paths[template][verb].responses[status]
  if (response === undefined) return [`${status} is not in the document: ${text}`]
  const mediaType = String(headers['content-type']).split(';')[0] ?? ''
  const schema = response.content[mediaType]?.schema
  if (schema === undefined) return [`${status} as ${mediaType} is not in the document: ${text}`]
  return [
    ...wrong(schema, bodyOf(mediaType, text), 'body'),
    ...Object.entries<Json>(response.headers).flatMap(([name, header]) => wrongHeader(name, header, headers)),
  ]
}

function wrongHeader(name: string, reference: Json, headers: Answered['headers']): string[] {
  const { required, schema } = resolve(document, reference)
  const value = headers[name.toLowerCase()]
  if (value === undefined) return required ? [`${name} is missing`] : []
  return wrong(schema, schema.type === 'integer' ? Number(value) : value, name)
}

/** Checks the answer to an unknown path or method: a problem document with X-RateLimit-Remaining. */
function undocumentedProblem(path: string, method: string, status: number, headers: Answered['headers'], text: string) {
  const remaining = headers['x-ratelimit-remaining']
  const { RateLimitRemaining } = document.components.headers
  const isToldAlways = path.startsWith('/api/') && RateLimitRemaining.required
  if (isToldAlways && !/^\d+$/.test(String(remaining))) return ['X-RateLimit-Remaining is missing']
  if (status < 400 || method === 'HEAD') return []
  const { Unauthorized } = document.components.schemas
  const name = status === 401 && Unauthorized !== undefined ? 'Unauthorized' : 'Problem'
  const mediaType = String(headers['content-type']).split(';')[0] ?? ''
  return wrong({ $ref: `#/components/schemas/${name}` }, bodyOf(mediaType, text), 'body')
}

function bodyOf(mediaType: string, text: string): unknown {
  return /json/.test(mediaType) ? JSON.parse(text) : text
}

function wrong(schema: Json, value: unknown, what: string): string[] {
  const key = JSON.stringify(schema)
  const validate = validators.get(key) ?? ajv.compile(JSON.parse(key.replaceAll('"#/', '"document#/')))
  validators.set(key, validate)
  return validate(value) ? [] : [`${what}: ${ajv.errorsText(validate.errors)}`]
}

/** Sends requests in batches, and counts the answers by status. */
async function ask(runs: number): Promise<Map<number, number>> {
  const requests = fc.array(fuzzedRequest(document, await s.token()), {
    minLength: batchRequests,
    maxLength: batchRequests,
  })
  const statuses = new Map<number, number>()
  await fc.assert(
    fc.asyncProperty(requests, async (batch) => {
      const answers = await Promise.all(batch.map(send))
      for (const { status } of answers) statuses.set(status, (statuses.get(status) ?? 0) + 1)
      const wrongs = batch.flatMap((sent, index) =>
        undocumented(sent, answers[index] as Answered).map((words) => `${inWords(sent)}: ${words}`),
      )
      expect(wrongs).toEqual([])
    }),
    { seed, numRuns: runs },
  )
  return statuses
}

test(`no request gets a 500 or an undocumented answer (FUZZ_SEED=${seed})`, async () => {
  const statuses = await ask(batches)
  const seen = [...statuses].toSorted(([one], [other]) => one - other)
  console.log(`FUZZ_SEED=${seed}: ${seen.map(([status, count]) => `${count} x ${status}`).join(', ')}`)
  for (const status of [200, 201, 400, 401, 404]) expect(statuses.get(status), `${status}`).toBeDefined()
})

test.each<[string, number, Json]>([
  ['while it is down', 503, { down: true }],
  ['from an address that is not allow-listed', 403, { allowedAddresses: ['192.0.2.1'], addressStatus: 403 }],
  ['beyond the limit', 429, { rateLimitRequests: 10 }],
  ['with other statuses', 410, { unknownIdStatus: 410, e002Status: 400, invalidCustomerCode: 'E001' }],
])(`no request gets a 500 %s, and some get %i (FUZZ_SEED=${seed})`, async (_when, status, settings) => {
  await s.control('PATCH', '/settings', settings)
  isOtherwise = true
  const statuses = await ask(batches / 10)
  await s.control('DELETE', '/settings')
  expect(statuses.get(status)).toBeGreaterThan(0)
})

test('the queue has an event for each order that got 201', async () => {
  const { rows: counts } = await s.control('GET', '/counts')
  const created = counts.find((row: Json) => row.endpoint === 'order' && row.status === 201)
  const { rows: events } = await s.control('GET', '/events?limit=1000000')
  expect(events).toHaveLength(created.requests)
  expect(events.filter((row: Json) => row.event === null)).toEqual([])
})

// Runs last, because a service that answers a repeated order again writes no second event.
const others = Array.from({ length: process.env.LONG ? 50 : 3 }, (_, n) => seed + n)

test.each(others)('no request gets a 500 from a service with random settings (seed %i)', async (other) => {
  // Without the limit per second, because this test's request for a token would get 429.
  const { compression: _gzip, rateLimitPerSecond: _few, ...settings } = randomService(other).notShown
  await s.control('PATCH', '/settings', settings)
  isOtherwise = true
  await ask(batches / 10)
  await s.control('DELETE', '/settings')
})
