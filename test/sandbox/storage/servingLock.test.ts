import { once } from 'node:events'
import { PassThrough } from 'node:stream'
import { text } from 'node:stream/consumers'
import type pg from 'pg'
import { expect, test } from 'vitest'
import { command as sandbox } from '../../../src/commands/sandbox.ts'
import { startSandbox } from '../../../src/sandbox/startSandbox.ts'
import { testContext } from '../../support/context.ts'
import { createDatabase } from '../../support/database.ts'
import { openForFile } from '../../support/openForFile.ts'
import { startProgram } from '../../support/program.ts'
import { until } from '../../support/until.ts'
import { setup, submission } from '../setup.ts'

const s = openForFile(() => setup())

const submit = (key: string) => s.call('POST', '/api/v1/data', submission(), { 'idempotency-key': key })

async function holders(): Promise<number[]> {
  const { rows } = await s.database.pool.query<{ pid: number }>(`
    select pid from pg_locks
    where locktype = 'advisory' and classid = 7164 and objid = 1 and granted
      and database = (select oid from pg_database where datname = current_database())
  `)
  return rows.map(({ pid }) => pid)
}

test('a second sandbox on a database names the first one and what to do, and exits with 1', async () => {
  const stderr = new PassThrough()
  const env = { SANDBOX_DATABASE_URL: s.database.url, SANDBOX_START_WAIT_SECONDS: '0' }
  const context = { ...testContext({}), env, stdout: new PassThrough(), stderr, signal: new AbortController().signal }
  expect(await sandbox.action(context, { port: 0 })).toBe(1)
  stderr.end()
  const message = await text(stderr)
  expect(message).toMatch(
    /Another sandbox serves this database: "outboxd sandbox, process \d+ on .*", Postgres backend \d/,
  )
  expect(message).toContain(`process ${process.pid} on`)
  expect(message).toContain(`Postgres backend ${await holders()}.`)
  expect(message).toContain('SANDBOX_DATABASE_URL')
  expect((await submit('one serves on')).status).toBe(200)
})

test('a sandbox that waits for its database stops on a stop signal', async () => {
  const stop = new AbortController()
  const env = { SANDBOX_DATABASE_URL: s.database.url, SANDBOX_START_WAIT_SECONDS: '3600' }
  const ended = sandbox.action(
    { ...testContext({}), env, stdout: new PassThrough(), stderr: new PassThrough(), signal: stop.signal },
    { port: 0 },
  )
  const waiting = () =>
    s.database.pool.query("select pid from pg_locks where classid = 7164 and not granted and locktype = 'advisory'")
  const { rows } = await until(waiting, ({ rowCount }) => rowCount === 1)
  stop.abort()
  expect(await ended).toBe(0)
  await s.database.pool.query('select pg_terminate_backend($1)', [rows[0].pid]) // as it would be at the end of the process
})

test('of three sandboxes started at once on a new database, one serves at a time', async () => {
  await using database = await createDatabase('template0')
  const options = { databaseUrl: database.url, port: 0, startWaitSeconds: 60 }
  let serving = 0
  const lives = Array.from({ length: 3 }, async () => {
    const one = await startSandbox(options)
    serving += 1
    expect(serving).toBe(1)
    expect((await fetch(`${one.url}/_sandbox/ledger`)).status).toBe(200)
    serving -= 1
    await one.close()
  })
  await Promise.all(lives)
})

test('after kill -9 of a sandbox, its successor starts once Postgres has noticed', async () => {
  await using database = await createDatabase('sandbox_template')
  await using first = startProgram({
    args: ['sandbox', '--port', '0', '--json'],
    env: { SANDBOX_DATABASE_URL: database.url },
  })
  await first.line((line) => line.startsWith('{'))
  first.signal('SIGKILL')
  const second = await startSandbox({ databaseUrl: database.url, port: 0 })
  await second.close()
})

test('a sandbox that loses its lock session keeps serving and takes the lock again', async () => {
  const [before] = await holders()
  await s.database.pool.query('select pg_terminate_backend($1)', [before])
  expect((await submit('while it is lost')).status).toBe(200)
  await until(holders, ([now]) => now !== undefined && now !== before)
  expect((await submit('after it is back')).status).toBe(200)
})

/** Takes the lock like another sandbox, at the moment when the first one loses its session. */
async function serveInstead(pool: pg.Pool): Promise<pg.PoolClient> {
  const successor = await pool.connect()
  const taken = successor.query('select pg_advisory_lock(7164, 1)')
  await until(
    () => pool.query("select from pg_locks where classid = 7164 and not granted and locktype = 'advisory'"),
    ({ rowCount }) => rowCount === 1,
  )
  await pool.query(
    "select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'outboxd sandbox, process%' and datname = current_database()",
  )
  await taken
  return successor
}

test('a sandbox that lost its lock to another one closes and says why', async () => {
  await using first = await setup()
  const successor = await serveInstead(first.database.pool)
  try {
    expect(await first.sandbox.failed).toMatch(
      /the sandbox's session on the database was lost. Another sandbox serves this database/,
    )
    await expect(fetch(first.sandbox.url)).rejects.toThrow()
  } finally {
    successor.release(true)
  }
})

test('the command of a sandbox that lost its lock to another one exits with 1', async () => {
  await using database = await createDatabase('sandbox_template')
  const stdout = new PassThrough()
  const stderr = new PassThrough()
  const context = {
    ...testContext({}),
    env: { SANDBOX_DATABASE_URL: database.url },
    stdout,
    stderr,
    signal: new AbortController().signal,
  }
  const ended = sandbox.action(context, { port: 0, json: true })
  await once(stdout, 'data')
  const successor = await serveInstead(database.pool)
  expect(await ended).toBe(1)
  successor.release(true)
  stderr.end()
  expect(await text(stderr)).toContain("the sandbox's session on the database was lost")
})
