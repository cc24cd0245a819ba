import { createServer, request as httpRequest } from 'node:http'
import { expect, onTestFinished, test } from 'vitest'
import { command as show } from '../../src/commands/show.ts'
import { startCollector } from '../support/collector.ts'
import { testContext } from '../support/context.ts'
import { startDaemonProcess } from '../support/daemon.ts'
import { freePort } from '../support/freePort.ts'
import { listenOnLoopback } from '../support/listenOnLoopback.ts'
import { until } from '../support/until.ts'
import { setup as setupHarness } from './faults/harness.ts'

interface Heard {
  method: string
  path: string
  traceparent: string | undefined
}

/** A service whose requests are noted on their way. */
async function setup() {
  const harness = await setupHarness()
  onTestFinished(() => harness[Symbol.asyncDispose]())
  const heard: Heard[] = []
  const server = createServer((request, response) => {
    const { method = '', url = '', headers } = request
    heard.push({ method, path: url, traceparent: headers.traceparent as string | undefined })
    const onward = httpRequest(new URL(url, harness.service.url), { method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(response)
    })
    onward.on('error', () => response.destroy())
    request.pipe(onward)
  })
  const service = await listenOnLoopback(server)
  onTestFinished(() => service[Symbol.asyncDispose]())
  return { harness, heard, env: { ...harness.env, SERVICE_BASE_URL: service.url, SERVICE_AUTH_URL: service.url } }
}

const startMs = (span: { startTimeUnixNano: string }) => Number(span.startTimeUnixNano.slice(0, -6))
const endMs = (span: { endTimeUnixNano: string }) => Number(span.endTimeUnixNano.slice(0, -6))

test('a collector gets one trace of a record, from its row to the last write-back, and so do service, log and `show`', async () => {
  const { harness, heard, env } = await setup()
  await using collector = await startCollector()
  const tracing = {
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    OTEL_EXPORTER_OTLP_HEADERS: 'x-key=s3cret%20key',
    OTEL_SERVICE_NAME: 'erp-test',
  }
  const daemon = await startDaemonProcess({ ...env, ...tracing })
  onTestFinished(() => daemon[Symbol.asyncDispose]())
  await harness.insert('traced-', { key: 'C4711' })
  await harness.becomes('traced-', 'completed')
  const { stdout, code } = await daemon.stop()
  expect(code).toBe(0)

  const { rows } = await harness.pool.query<{ id: string; createdMs: number }>(
    `select s.id, extract(epoch from o.created_at)::float8 * 1000 as "createdMs"
     from outboxd.submission s join outbox o on o.id::text = s.outbox_id`,
  )
  const [{ id, createdMs } = { id: '', createdMs: 0 }] = rows
  const traceId = id.replaceAll('-', '')
  const spans = collector.spans().toSorted((one, other) => endMs(one) - endMs(other))
  expect(new Set(spans.map((span) => span.traceId))).toEqual(new Set([traceId]))
  const named = (name: string) => spans.filter((span) => span.name.startsWith(name))
  const [captured, queued, post] = [named('captured'), named('queued'), named('POST')].map(([first]) => first)
  if (!captured || !queued || !post) throw new Error(`spans are missing: ${spans.map(({ name }) => name)}`)
  const polls = named('GET')
  expect(polls.length).toBeGreaterThan(0)
  expect(named('written back').at(-1)?.attributes['outboxd.state']).toBe('completed')
  for (const span of spans.filter((each) => each !== captured)) expect(span.parentSpanId).toBe(captured.spanId)
  expect(captured.parentSpanId).toBeUndefined()
  expect(new Set(spans.map(({ spanId }) => spanId)).size).toBe(spans.length)

  const clockSlackMs = 50
  expect(Math.abs(startMs(captured) - createdMs)).toBeLessThan(clockSlackMs)
  expect(endMs(queued) - clockSlackMs).toBeLessThan(startMs(post))
  for (const poll of polls) expect(startMs(poll)).toBeGreaterThanOrEqual(endMs(post) - clockSlackMs)
  for (const span of spans) expect(endMs(span)).toBeGreaterThanOrEqual(startMs(span))
  expect(post.attributes).toMatchObject({
    'http.request.method': 'POST',
    'http.response.status_code': 200,
    'url.full': `${env.SERVICE_BASE_URL}/api/v1/data`,
    'outboxd.state': 'accepted',
  })

  const api = heard.filter(({ path }) => path.startsWith('/api/'))
  expect(api.map(({ traceparent }) => traceparent)).toEqual(
    [post, ...polls].map(({ spanId }) => `00-${traceId}-${spanId}-01`),
  )
  expect(heard.find(({ path }) => path === '/oauth/token')?.traceparent).toBeUndefined()

  const lines = stdout.split('\n').filter((line) => line.includes(id))
  expect(lines.length).toBeGreaterThan(1)
  for (const line of lines) expect(JSON.parse(line).trace_id).toBe(traceId)
  const shown = testContext({ ...env, ...tracing })
  await show.action(shown, id, {})
  expect(shown.printed()).toMatch(new RegExp(`^trace +${traceId}$`, 'm'))

  expect(collector.resource()).toMatchObject({ 'service.name': 'erp-test', 'service.version': expect.any(String) })
  expect(collector.requests()[0]?.headers['x-key']).toBe('s3cret key')
  expect(stdout).not.toContain('s3cret')
  expect(JSON.stringify(collector.spans())).not.toMatch(/traced-|C4711/)
})

test.each([
  ['is away'],
  ['answers 500'],
  ['does not answer'],
])('a collector that %s holds up no record and no stop', async (how) => {
  const { harness, env } = await setup()
  await using collector = await startCollector(how === 'answers 500' ? 500 : null)
  const endpoint = how === 'is away' ? `http://127.0.0.1:${await freePort()}` : collector.url
  await using daemon = await startDaemonProcess({ ...env, OTEL_EXPORTER_OTLP_ENDPOINT: endpoint })
  for (const nth of [1, 2, 3]) await harness.insert(`record-${nth}-`)
  for (const nth of [1, 2, 3]) expect((await harness.becomes(`record-${nth}-`, 'completed')).posts).toHaveLength(1)
  if (how !== 'is away')
    await until(
      () => collector.requests().length,
      (count) => count > 0,
    )
  const { code, stdout } = await daemon.stop()
  expect(code).toBe(0)
  expect(stdout.match(/trace collector took no spans/g)).toHaveLength(1)
})

test('without a collector the service gets no traceparent, and the log and `show` have no trace', async () => {
  const { harness, heard, env } = await setup()
  await using daemon = await startDaemonProcess(env)
  const outboxId = await harness.insert('plain-')
  await harness.becomes('plain-', 'completed')
  expect(heard.length).toBeGreaterThan(2)
  expect(heard.filter(({ traceparent }) => traceparent !== undefined)).toEqual([])
  const shown = testContext(env)
  await show.action(shown, `outbox:${outboxId}`, {})
  expect(shown.printed()).not.toMatch(/^trace/m)
  expect((await daemon.stop()).stdout).not.toContain('trace_id')
})
