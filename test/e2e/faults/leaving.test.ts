import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { type AddressInfo, connect, createServer } from 'node:net'
import { join } from 'node:path'
import { createServer as createTlsServer } from 'node:tls'
import { expect, onTestFinished, test } from 'vitest'
import { type Clock, systemClock } from '../../../src/clock.ts'
import { startFaultProxy } from '../../support/faultProxy.ts'
import { setup } from './harness.ts'

/** The moment at which a request is sent, and an unexpected 100 Continue before its answer. */

test('an unexpected 100 Continue is ignored, and the record completes once', async () => {
  await using harness = await setup()
  const unasked = createServer((client) => {
    const service = connect(harness.service.port, '127.0.0.1')
    service.once('data', (chunk) => {
      client.write('HTTP/1.1 100 Continue\r\n\r\n')
      client.write(chunk)
      service.pipe(client)
    })
    client.pipe(service)
    for (const socket of [client, service]) socket.on('error', () => {})
  }).listen(0, '127.0.0.1')
  await once(unasked, 'listening')
  onTestFinished(() => void unasked.close())
  await harness.start({ SERVICE_BASE_URL: `http://127.0.0.1:${(unasked.address() as AddressInfo).port}` })
  await harness.insert('continued-')
  expect(await harness.becomes('continued-', 'completed')).toMatchObject({ posts: [200], effects: 1 })
})

test('a TLS handshake outlasts the deadline: nothing leaves, queued again', async () => {
  await using harness = await setup()
  const tls = (name: string) => join(import.meta.dirname, '..', '..', 'service', 'tls', name)
  const secure = createTlsServer(
    { key: readFileSync(tls('key.pem')), cert: readFileSync(tls('cert.pem')) },
    (client) => {
      const service = connect(harness.service.port, '127.0.0.1')
      client.pipe(service).pipe(client)
      for (const socket of [client, service]) socket.on('error', () => {})
    },
  ).listen(0, '127.0.0.1')
  await once(secure, 'listening')
  onTestFinished(() => void secure.close())
  const proxy = await startFaultProxy({ target: { host: '127.0.0.1', port: (secure.address() as AddressInfo).port } })
  onTestFinished(() => proxy.close())
  const clock = suspendableClock()
  const base = { SERVICE_BASE_URL: `https://localhost:${proxy.port}`, SERVICE_CA_FILE: tls('cert.pem') }
  await harness.start(base, clock)
  await harness.insert('before-')
  await harness.becomes('before-', 'completed')

  await proxy.setFault({ kind: 'hold' })
  await harness.insert('held-')
  await proxy.struck()
  clock.suspend(5_000)
  await proxy.setFault(null)
  const outcome = await harness.becomes('held-', 'completed')
  expect(outcome).toMatchObject({ posts: [200], effects: 1 })
  expect(outcome.steps.slice(0, 4)).toEqual(['queued', 'queued sending', 'sending queued', 'queued sending'])
  expect(outcome.causes[2]).toContain('never sent')
})

/** A clock that the test can advance, as if the process had been suspended. */
function suspendableClock(): Clock & { suspend(ms: number): void } {
  let suspendedMs = 0
  return {
    nowMs: () => systemClock.nowMs() + suspendedMs,
    stopwatch() {
      const passedMs = systemClock.stopwatch()
      const beganMs = suspendedMs
      return () => passedMs() + suspendedMs - beganMs
    },
    suspend(ms) {
      suspendedMs += ms
    },
  }
}
