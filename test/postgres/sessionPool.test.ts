import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import type pg from 'pg'
import { describe, expect, inject, onTestFinished, test } from 'vitest'
import { beginTransaction, createPool, inTransaction, withSearchPathOfRole } from '../../src/postgres/database.ts'
import { createDatabase } from '../support/database.ts'
import { openForFile } from '../support/openForFile.ts'
import { hasPgbouncer, startPgbouncer } from '../support/pgbouncer.ts'

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

test('a session that ends as it begins fails its work, but not the process', async () => {
  const pool = createPool({ url: await startEndingServer(), name: 'test', connections: 1, onIdleError: () => {} })
  onTestFinished(() => pool.end())
  await expect(pool.query('select 1')).rejects.toThrow()
  await expect(beginTransaction(pool)).rejects.toThrow()
})

describe('whatever the database’s are, the time zone and text formats are our own', () => {
  async function openForeign(through = (url: string) => url): Promise<pg.Pool> {
    const database = await createDatabase('template0')
    onTestFinished(() => database[Symbol.asyncDispose]())
    const name = new URL(database.url).pathname.slice(1)
    const set = ["timezone = 'Asia/Tokyo'", "datestyle = 'German'", "intervalstyle = 'iso_8601'"]
    set.push("bytea_output = 'escape'", 'extra_float_digits = -10')
    for (const each of set) await database.pool.query(`alter database ${name} set ${each}`)
    const pool = createPool({ url: through(database.url), name: 'x', connections: 1, onIdleError: () => {} })
    onTestFinished(() => pool.end())
    return pool
  }

  const textsSql = `select timestamptz '2026-11-21 12:00Z'::text as at, interval '1 day 2 hours'::text as for,
    '\\x00ff'::bytea::text as bytes, (0.1::float8 + 0.2)::text as number`
  const ours = { at: '2026-11-21 12:00:00+00', for: '1 day 02:00:00', bytes: '\\x00ff', number: '0.30000000000000004' }

  test('in each session', async () => {
    const { rows } = await (await openForeign()).query(textsSql)
    expect(rows).toEqual([ours])
  })

  test.skipIf(!hasPgbouncer)('in each transaction and statement through a pooler', async () => {
    const bouncer = await startPgbouncer(inject('postgresUrl'))
    onTestFinished(() => bouncer[Symbol.asyncDispose]())
    const pool = await openForeign(bouncer.through)
    const { rows } = await inTransaction(pool, (db) => db.query(textsSql))
    expect(rows).toEqual([ours])
    expect((await pool.query(textsSql)).rows).toEqual([ours])
    expect((await pool.query('show statement_timeout')).rows).toEqual([{ statement_timeout: '20s' }])
  })
})

test.skipIf(!hasPgbouncer)(
  'through a pooler the role has its search path, and a failed statement ends no session',
  async () => {
    const bouncer = await startPgbouncer(inject('postgresUrl'))
    onTestFinished(() => bouncer[Symbol.asyncDispose]())
    const database = await createDatabase('template0')
    onTestFinished(() => database[Symbol.asyncDispose]())
    const path = `'Sales, "a,b", "$user",public'`
    const name = new URL(database.url).pathname.slice(1)
    await database.pool.query(
      `select set_config('search_path', ${path}, false); alter database ${name} set search_path from current`,
    )
    const url = bouncer.through(database.url)
    const pool = createPool({ url, name: 'x', connections: 1, isErp: true, onIdleError: () => {} })
    onTestFinished(() => pool.end())
    const asRole = withSearchPathOfRole(pool)
    expect((await asRole.query('show search_path')).rows).toEqual([
      { search_path: 'sales, "a,b", "$user", public, pg_temp' },
    ])
    const server = () => pool.query('select pg_backend_pid() as pid').then(({ rows }) => rows)
    const before = await server()
    await expect(pool.query('select 1 / 0')).rejects.toThrow('division by zero')
    expect(await server()).toEqual(before)
  },
)

test('sessions do not compile statements, whatever the database says', async () => {
  const database = await createDatabase('template0')
  onTestFinished(() => database[Symbol.asyncDispose]())
  await database.pool.query(`alter database ${new URL(database.url).pathname.slice(1)} set jit = on`)
  expect((await open(database.url).query('show jit')).rows).toEqual([{ jit: 'off' }])
})

const database = openForFile(() => createDatabase('template0'))

function open(url = database.url): pg.Pool {
  const pool = createPool({ url, name: 'test', connections: 1, onIdleError: () => {}, prepares: true })
  onTestFinished(() => pool.end())
  return pool
}

async function again(pool: pg.Pool, text: string, times = 10): Promise<void> {
  for (let i = 0; i < times; i++) expect((await pool.query(text, [i])).rows).toEqual([{ n: i }])
}

async function prepared(pool: pg.Pool): Promise<string[]> {
  const { rows } = await pool.query<{ statement: string }>('select statement from pg_prepared_statements order by name')
  return rows.map(({ statement }) => statement)
}

test('a statement with values is prepared, inside and outside of transactions', async () => {
  const pool = open()
  await again(pool, 'select $1::int as n')
  for (let i = 0; i < 10; i++) await inTransaction(pool, (db) => db.query('select $1::int + 0 as n', [i]))
  await pool.query('select 8; select 9')
  expect(await prepared(pool)).toEqual(['select $1::int as n', 'select $1::int + 0 as n'])
})

test('a session prepares at most a hundred statements', async () => {
  const pool = open()
  for (let i = 0; i < 120; i++) await pool.query(`select ${i}, $1::int as n`, [i])
  expect((await prepared(pool)).length).toBe(100)
})

test('if a migration changes the type of a result, the next session reads it', async () => {
  const pool = open()
  await pool.query('create table changing (n int)')
  const read = () => inTransaction(pool, (db) => db.query('select * from changing where n = $1', [1]))
  for (let i = 0; i < 10; i++) await read()
  await database.pool.query('alter table changing add column more text')
  await expect(read()).rejects.toThrow('cached plan must not change result type')
  expect((await read()).fields.map(({ name }) => name)).toEqual(['n', 'more'])
})

test.skipIf(!hasPgbouncer)('nothing is prepared through a pooler that assigns sessions per transaction', async () => {
  const bouncer = await startPgbouncer(inject('postgresUrl'), [
    'statement_timeout',
    'idle_in_transaction_session_timeout',
    'options',
  ])
  onTestFinished(() => bouncer[Symbol.asyncDispose]())
  const pool = open(bouncer.through(database.url))
  await again(pool, 'select $1::int as n')
  expect(await prepared(pool)).toEqual([])
})
