import { EventEmitter } from 'node:events'
import pg from 'pg'
import { beforeAll, describe, expect, test } from 'vitest'
import {
  beginTransaction,
  classifyDatabaseError,
  createPool,
  inTransaction,
  isTransientError,
  withConnectionErrorsExplained,
} from '../../src/postgres/database.ts'
import { createDatabase } from '../support/database.ts'
import { openForFile } from '../support/openForFile.ts'
import { openPool } from '../support/postgres.ts'

const database = openForFile(() => createDatabase('template0'))
beforeAll(async () => {
  await database.pool.query('create table t (n int check (n > 0))')
})

const thrownBy = (work: () => Promise<unknown>) =>
  work().then(
    () => null,
    (error: unknown) => error,
  )
const count = async () => Number((await database.pool.query('select count(*) as n from t')).rows[0].n)

test('work that throws is rolled back, and its connection stays usable', async () => {
  const before = await count()
  await thrownBy(() =>
    inTransaction(database.pool, async (db) => {
      await db.query('insert into t values (1)')
      throw new Error('lost')
    }),
  )
  expect(await count()).toBe(before)
  await inTransaction(database.pool, (db) => db.query('insert into t values (1)'))
  expect(await count()).toBe(before + 1)
})

test('a transaction that is not committed is rolled back', async () => {
  const before = await count()
  {
    await using transaction = await beginTransaction(database.pool)
    await transaction.db.query('insert into t values (1)')
  }
  expect(await count()).toBe(before)
})

test('a broken connection is not given back to the pool', async () => {
  const pool = openPool(database.url, { max: 1 })
  const broken = await thrownBy(() =>
    inTransaction(pool, async (db) => {
      const { rows } = await db.query<{ pid: number }>('select pg_backend_pid() as pid')
      await database.pool.query('select pg_terminate_backend($1)', [rows[0]?.pid])
      await db.query('select 1')
    }),
  )
  expect(isTransientError(broken)).toBe(true)
  expect((await pool.query('select 1 as one')).rows).toEqual([{ one: 1 }])
  await pool.end()
})

test('a session that did not answer gets no ROLLBACK, which would take as long again', async () => {
  const sent: string[] = []
  const client = Object.assign(new EventEmitter(), {
    async query(text: string) {
      sent.push(text)
      if (text === 'select 1') throw new Error('Query read timeout')
    },
    release: (error?: Error) => void sent.push(`released: ${error?.message}`),
  })
  const pool = { connect: async () => client } as unknown as pg.Pool
  await thrownBy(() => inTransaction(pool, (db) => db.query('select 1')))
  expect(sent).toEqual(['begin', 'select 1', 'released: Query read timeout'])
})

test('a connection to a server that became read-only is not given back, and the error counts as transient', async () => {
  const pool = createPool({ url: database.url, name: 'x', connections: 1, onIdleError: () => {} })
  const pid = async () => (await pool.query<{ pid: number }>('select pg_backend_pid() as pid')).rows[0]?.pid
  const before = await pid()
  const refused = await thrownBy(() =>
    inTransaction(pool, async (db) => {
      await db.query('set transaction read only')
      await db.query('insert into t values (1)')
    }),
  )
  expect([(refused as { code: string }).code, isTransientError(refused), isRefusal(refused)]).toEqual([
    '25006',
    true,
    false,
  ])
  expect(await pid()).not.toBe(before)
  await pool.end()
})

const isRefusal = (error: unknown) => classifyDatabaseError(error, 'outcome') === 'piece'

describe('an error', () => {
  test.each([
    ['Connection terminated unexpectedly', true],
    ['Client was closed and is not queryable', true],
    ['timeout exceeded when trying to connect', true],
    ['an extended protocol message was not intended here', false],
    ['has no column closed', false],
    ['a statement that returns one row has returned 0: select timeout', false],
  ])('without a code is transient only if it says that the session is gone: %s', (message, transient) => {
    expect(isTransientError(new Error(message))).toBe(transient)
  })

  test.each([
    ['data that cannot be stored', `select '\\ud800'::json ->> 0, '"\\u0000"'::json #>> '{}'`],
    ['a broken constraint', 'insert into t values (-1)'],
    ['a number out of range', 'select 1 / 0'],
  ])('about %s is a refusal, and not transient', async (_, sql) => {
    const error = await thrownBy(() => database.pool.query(sql))
    expect([isRefusal(error), isTransientError(error)]).toEqual([true, false])
  })

  test.each([
    ['a table that is not there', 'select * from nowhere'],
    ['a statement that took too long', `set statement_timeout = 1; select pg_sleep(1)`],
  ])('about %s is no refusal, because it may be fixed', async (_, sql) => {
    const client = new pg.Client(database.url)
    await client.connect()
    const error = await thrownBy(() => client.query(sql))
    await client.end()
    expect(isRefusal(error)).toBe(false)
  })

  test('about an unreachable server is transient', async () => {
    const pool = createPool({
      url: 'postgres://u:secret@127.0.0.1:1/db',
      name: 'x',
      connections: 1,
      onIdleError: () => {},
    })
    const error = await thrownBy(() => pool.query('select 1'))
    await pool.end()
    expect([isTransientError(error), isRefusal(error)]).toEqual([true, false])
  })

  test('that is a mistake of ours is a refusal, because a retry does not help', () => {
    expect(isRefusal(new TypeError('undefined is not a function'))).toBe(true)
  })

  test('about an unusable database names the variable and the server, and no password', async () => {
    const url = 'postgres://u:secret@127.0.0.1:1/db'
    const pool = createPool({ url, name: 'x', connections: 1, onIdleError: () => {} })
    const error = await thrownBy(() => withConnectionErrorsExplained(url, () => pool.query('select 1')))
    await pool.end()
    expect(String(error)).toContain('DATABASE_URL at 127.0.0.1:1/db')
    expect(String(error)).not.toContain('secret')
    expect(isTransientError(error)).toBe(true)
  })
})
