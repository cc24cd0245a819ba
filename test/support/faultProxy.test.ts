import { connect, createServer } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { startFaultProxy } from './faultProxy.ts'
import { listenOnLoopback } from './listenOnLoopback.ts'

/** What test/service/client.test.ts, which meets each fault, would not notice. */
async function setup() {
  const pieces: number[] = []
  const server = createServer((socket) => socket.on('data', (chunk) => pieces.push(chunk.length)))
  const listening = await listenOnLoopback(server)
  const proxy = await startFaultProxy({ target: { host: '127.0.0.1', port: listening.port } })
  onTestFinished(async () => {
    await proxy.close()
    await listening[Symbol.asyncDispose]()
  })
  return { proxy, pieces, dial: () => connect(proxy.port, proxy.host).on('error', () => {}) }
}

test('a reset shows as ECONNRESET, a cut does not', async () => {
  const { proxy, dial } = await setup()
  const endOf = async (kind: 'reset' | 'cut-before-request') => {
    await proxy.setFault({ kind })
    const socket = dial()
    socket.resume().write('hello')
    return new Promise<string | undefined>((resolve) => {
      socket.on('error', ({ code }: NodeJS.ErrnoException) => resolve(code))
      socket.on('close', () => resolve('closed'))
    })
  }
  expect(await endOf('reset')).toBe('ECONNRESET')
  expect(await endOf('cut-before-request')).toBe('closed')
})

test('slice passes everything in small pieces', async () => {
  const { proxy, dial, pieces } = await setup()
  await proxy.setFault({ kind: 'slice', bytes: 100 })
  dial().write('x'.repeat(5_000))
  await expect.poll(() => pieces.reduce((sum, size) => sum + size, 0)).toBe(5_000)
  expect(pieces.length).toBeGreaterThan(1)
})
