import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { begin, createPool } from '../../src/store/database.ts'

/** A message of the Postgres protocol: its letter, its length, its bytes. */
function message(letter: string, bytes: string): Buffer {
  const length = Buffer.alloc(4)
  length.writeInt32BE(bytes.length + 4)
  return Buffer.concat([Buffer.from(letter), length, Buffer.from(bytes, 'latin1')])
}

const authenticated = message('R', '\0\0\0\0')
const ready = message('Z', 'I')
const terminated = message('E', 'SFATAL\0C57P01\0Mterminating connection due to administrator command\0\0')

/** A server that ends each session in the same packet in which it says that it is ready. */
async function startEndingServer(): Promise<string> {
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', () => socket.end(Buffer.concat([authenticated, ready, terminated])))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  return `postgres://nobody@127.0.0.1:${(server.address() as AddressInfo).port}/none`
}

test('a session that is ended as it begins fails its work, and not the process', async () => {
  const pool = createPool({ url: await startEndingServer(), name: 'test', connections: 1, onIdleError: () => {} })
  onTestFinished(() => pool.end())
  await expect(pool.query('select 1')).rejects.toThrow()
  await expect(begin(pool)).rejects.toThrow()
})
