import { expect, test } from 'vitest'
import type { Answer } from '../../src/model/service.ts'
import type { LogFields } from '../../src/observe/log.ts'
import type { Span } from '../../src/observe/spanExporter.ts'
import { Tracing } from '../../src/observe/tracing.ts'
import { noAnswer, response } from '../support/answers.ts'
import { submission } from '../support/submission.ts'

const id = '01a228d6-f8a4-7749-a2a4-1ee5eca5148d'
const traceId = '01a228d6f8a47749a2a41ee5eca5148d'
const rootSpanId = 'a2a41ee5eca5148d'
const nowMs = Date.parse('2026-11-29T12:00:00.500Z')

function setup(baseUrl = 'https://service.example/erp') {
  const spans: Span[] = []
  const tracing = new Tracing({ exporter: { add: (span) => void spans.push(span) }, baseUrl, nowMs: () => nowMs })
  return { tracing, spans }
}

const valuesOf = ({ attributes }: Span) => Object.fromEntries(attributes.map(({ key, value }) => [key, value]))
const captured = { id, outboxId: '7', type: 'data', error: null, createdAt: '2026-11-29T12:00:00.123456Z' }

function answered(of: Parameters<typeof submission>[0], answer: Answer, fields: LogFields = {}, baseUrl?: string) {
  const { tracing, spans } = setup(baseUrl)
  const asked = submission({ id, ...of })
  tracing.answered(asked, asked.state === 'accepted' ? 'status' : 'submit', answer, fields)
  const [span] = spans
  if (span === undefined) throw new Error('no span was made')
  return { span, values: valuesOf(span), traceparent: tracing.traceparent(asked) }
}

test('the trace of a record has its id, and begins when its row was created', () => {
  const { tracing, spans } = setup()
  tracing.captured(captured)
  expect(spans).toMatchObject([
    {
      traceId,
      spanId: rootSpanId,
      name: 'captured',
      startTimeUnixNano: '1795953600123000000',
      endTimeUnixNano: '1795953600500000000',
      status: { code: 0 },
    },
  ])
  expect(spans[0]).not.toHaveProperty('parentSpanId')
})

test('a row that claims to be from before 1970 begins its trace then, because OTLP has no earlier time', () => {
  const { tracing, spans } = setup()
  tracing.captured({ ...captured, createdAt: '1900-01-01T00:00:00Z' })
  expect(spans[0]?.startTimeUnixNano).toBe('0')
})

test.each<[object, string, number]>([
  [{ error: 'amount has 3 decimals' }, 'rejected', 2],
  [{ discarded: 'deleted' }, 'discarded', 0],
])('a record that was captured with %o is %s in its trace', (given, state, code) => {
  const { tracing, spans } = setup()
  tracing.captured({ ...captured, createdAt: null, ...given })
  expect(spans[0]).toMatchObject({ status: { code }, startTimeUnixNano: '1795953600500000000' })
  expect(spans.map(valuesOf)).toMatchObject([{ 'outboxd.state': { stringValue: state } }])
})

test('a request is a client span below `captured`, and the service is told its id', () => {
  const { span, values, traceparent } = answered({}, response(201), { state: 'accepted', durationMs: 12 })
  expect(span).toMatchObject({ traceId, parentSpanId: rootSpanId, name: 'POST /api/v1/data', kind: 3 })
  expect(Number(span.endTimeUnixNano.slice(0, -6)) - Number(span.startTimeUnixNano.slice(0, -6))).toBe(12)
  expect(traceparent).toBe(`00-${traceId}-${span.spanId}-01`)
  expect(values).toMatchObject({
    'http.request.method': { stringValue: 'POST' },
    'http.response.status_code': { intValue: '201' },
    'server.address': { stringValue: 'service.example' },
    'server.port': { intValue: '443' },
    'url.full': { stringValue: 'https://service.example/erp/api/v1/data' },
    'outboxd.state': { stringValue: 'accepted' },
  })
})

test.each([
  ['tx/1', 'tx%2F1'],
  ['Jane, of Ghent', '%5Bwithheld%5D'],
])('a poll for %s names the transaction only in its address, and as the log does', (transactionId, inAddress) => {
  const polled = { state: 'accepted', transactionId } as const
  const { span, values } = answered(polled, response(200), {}, 'http://localhost:8080')
  expect(span.name).toBe('GET /api/v1/data/{id}')
  expect(values).toMatchObject({
    'url.full': { stringValue: `http://localhost:8080/api/v1/data/${inAddress}` },
    'server.port': { intValue: '8080' },
  })
})

test('each request of a record has a span id of its own', () => {
  const { tracing } = setup()
  const ids = [1, 2, 3].map((revision) => tracing.traceparent({ id, revision }))
  expect(new Set(ids).size).toBe(3)
})

test.each<[Answer, string]>([
  [response(404), '404'],
  [noAnswer({ sent: true, cause: 'timeout' }), 'timeout'],
])('%#: a request without a good answer is an error', (answer, type) => {
  const { span, values } = answered({}, answer)
  expect(span.status.code).toBe(2)
  expect(values['error.type']).toEqual({ stringValue: type })
})

test('a span says no more of a record than the log does', () => {
  const { values } = answered({ body: '{"customerId":"C1"}', key: 'C1' }, response(400), { code: 'Jane, of Ghent' })
  expect(values['outboxd.code']).toEqual({ stringValue: '[withheld]' })
  expect(JSON.stringify(values)).not.toMatch(/C1|Jane/)
})
