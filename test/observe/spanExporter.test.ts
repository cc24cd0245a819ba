import { expect, onTestFinished, test } from 'vitest'
import { type Span, SpanExporter } from '../../src/observe/spanExporter.ts'
import { type Collector, startCollector } from '../support/collector.ts'
import { freePort } from '../support/freePort.ts'
import { until } from '../support/until.ts'

const spanNamed = (name: string): Span => ({
  traceId: '4bf92f3577b34da6a3ce929d0e0e4736',
  spanId: '00f067aa0ba902b7',
  name,
  kind: 1,
  startTimeUnixNano: '1000',
  endTimeUnixNano: '2000',
  attributes: [],
  status: { code: 0 },
})

function setup(endpoint: string) {
  const lines: [level: string, event: string, fields: unknown][] = []
  let dropped = 0
  const exporter = new SpanExporter(
    { endpoint, headers: { 'x-key': 's3cret' } },
    [{ key: 'service.name', value: { stringValue: 'ours' } }],
    {
      log: {
        info: (event, fields) => void lines.push(['info', event, fields]),
        warn: (event, fields) => void lines.push(['warn', event, fields]),
      },
      dropped(count) {
        dropped += count
      },
    },
  )
  return { exporter, lines, dropped: () => dropped }
}

async function setupWithCollector(status: number | null = 200) {
  const collector = await startCollector(status)
  onTestFinished(() => collector[Symbol.asyncDispose]())
  return { collector, ...setup(collector.url) }
}

const asked = (collector: Collector, times: number) =>
  until(
    () => collector.requests().length,
    (count) => count >= times,
  )

test('spans are posted to /v1/traces with the headers and the name of this process', async () => {
  const { exporter, collector, lines } = await setupWithCollector()
  exporter.add(spanNamed('one'))
  exporter.add(spanNamed('two'))
  await asked(collector, 1)
  await exporter.close()
  expect(collector.requests()).toMatchObject([
    { path: '/v1/traces', headers: { 'content-type': 'application/json', 'x-key': 's3cret' } },
  ])
  expect(collector.resource()).toEqual({ 'service.name': 'ours' })
  expect(collector.spans().map(({ name }) => name)).toEqual(['one', 'two'])
  expect(lines).toEqual([])
})

test('close sends what is left, in batches of 500', async () => {
  const { exporter, collector, dropped } = await setupWithCollector()
  for (let nth = 0; nth < 1_200; nth++) exporter.add(spanNamed(`span ${nth}`))
  await exporter.close()
  expect(collector.requests()).toHaveLength(3)
  expect(new Set(collector.spans().map(({ name }) => name)).size).toBe(1_200)
  expect(dropped()).toBe(0)
})

test('spans wait for a collector that is away for a moment, and each change is logged once', async () => {
  const { exporter, collector, lines, dropped } = await setupWithCollector(503)
  exporter.add(spanNamed('one'))
  await asked(collector, 1)
  await until(
    () => lines.length,
    (count) => count > 0,
  )
  exporter.add(spanNamed('two'))
  collector.answer(200)
  await exporter.close()
  expect(collector.spans().map(({ name }) => name)).toEqual(['one', 'two'])
  expect(lines).toEqual([
    ['warn', expect.stringContaining('took no spans'), { status: 503 }],
    ['info', 'trace collector takes spans again', undefined],
  ])
  expect(dropped()).toBe(0)
})

test('spans that a collector refuses are dropped, because it would refuse them again', async () => {
  const { exporter, collector, dropped } = await setupWithCollector(400)
  exporter.add(spanNamed('one'))
  await asked(collector, 1)
  await exporter.close()
  expect([collector.requests().length, dropped()]).toEqual([1, 1])
})

test('at most 5,000 spans wait, and the rest are dropped', async () => {
  const { exporter, dropped, lines } = setup(`http://127.0.0.1:${await freePort()}`)
  for (let nth = 0; nth < 5_010; nth++) exporter.add(spanNamed(`span ${nth}`))
  expect(dropped()).toBe(10)
  await exporter.close()
  expect(dropped()).toBe(5_010)
  expect(lines).toMatchObject([['warn', expect.any(String), { error: { code: 'ECONNREFUSED' } }]])
})

test('close waits at most two seconds for a collector that does not answer', async () => {
  const { exporter, collector } = await setupWithCollector(null)
  exporter.add(spanNamed('one'))
  await asked(collector, 1)
  const beganMs = performance.now()
  await exporter.close()
  expect(performance.now() - beganMs).toBeLessThan(5_000)
})
