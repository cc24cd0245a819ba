import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { begin, createPool } from '../../src/postgres/database.ts'
import { createDatabase } from '../support/database.ts'

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

test('values are written as text by our settings, whatever those of the database are', async () => {
  const database = await createDatabase('template0')
  onTestFinished(() => database[Symbol.asyncDispose]())
  const name = new URL(database.url).pathname.slice(1)
  const set = ["timezone = 'Asia/Tokyo'", "datestyle = 'German'", "intervalstyle = 'iso_8601'"]
  set.push("bytea_output = 'escape'", 'extra_float_digits = -10')
  for (const each of set) await database.pool.query(`alter database ${name} set ${each}`)
  const pool = createPool({ url: database.url, name: 'x', connections: 1, onIdleError: () => {} })
  onTestFinished(() => pool.end())
  const { rows } =
    await pool.query(`select timestamptz '2026-11-21 12:00Z'::text as at, interval '1 day 2 hours'::text as for,
    '\\x00ff'::bytea::text as bytes, (0.1::float8 + 0.2)::text as number`)
  expect(rows).toEqual([
    { at: '2026-11-21 12:00:00+00', for: '1 day 02:00:00', bytes: '\\x00ff', number: '0.30000000000000004' },
  ])
})
