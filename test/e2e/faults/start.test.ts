import { once } from 'node:events'
import { createServer } from 'node:net'
import { beforeAll, expect, onTestFinished, test } from 'vitest'
import { openForFile } from '../../support/openForFile.ts'
import { startProgram } from '../../support/program.ts'
import { until } from '../../support/until.ts'
import { setup, through } from './harness.ts'

/** A start that fails has no effect: no row is captured and no request is made. */

const harness = openForFile(() => setup())
beforeAll(async () => {
  for (let i = 0; i < 8; i++) await harness.insert(`start-${i}-`)
})

const run = (env: Record<string, string>) =>
  startProgram({ args: ['run'], env: { ...harness.env, LOG_LEVEL: 'info', ...env } })

async function untouched() {
  const { rows } = await harness.pool.query(
    `select (select count(*)::int from outbox where status <> 'new') as taken,
       (select count(*)::int from outboxd.submission) as captured`,
  )
  const { rows: requests } = (await harness.control('GET', 'ledger')) as { rows: unknown[] }
  expect({ ...rows[0], requests }).toEqual({ taken: 0, captured: 0, requests: [] })
}

test('the HTTP port is taken: exit 2', async () => {
  const taken = createServer().listen(0, '127.0.0.1')
  await once(taken, 'listening')
  onTestFinished(() => void taken.close())
  const { port } = taken.address() as { port: number }
  const { code, stderr } = await run({ HTTP_PORT: String(port) }).ended()
  expect({ code, stderr }).toEqual({
    code: 2,
    stderr: `outboxd: cannot listen on 127.0.0.1 port ${port} (EADDRINUSE): set HTTP_HOST and HTTP_PORT to a free address\n`,
  })
  await untouched()
})

test('no heartbeat can be written: exit 1', async () => {
  await harness.pool.query('alter table outboxd.instance add constraint refused check (false) not valid')
  onTestFinished(async () => {
    await harness.pool.query('alter table outboxd.instance drop constraint refused')
  })
  const { code, stderr } = await run({}).ended()
  expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining('"instance"') })
  await untouched()
})

test("the queue's schema is missing: exit 1", async () => {
  await harness.pool.query('alter schema outboxd_jobs rename to jobs_away')
  onTestFinished(async () => {
    await harness.pool.query('alter schema jobs_away rename to outboxd_jobs')
  })
  expect((await run({}).ended()).code).toBe(1)
  await untouched()
})

test('the databases are away: alive, not ready', async () => {
  await harness.postgres.setFault({ kind: 'refuse' })
  onTestFinished(() => harness.postgres.setFault(null))
  const url = through(harness.postgres, harness.env.DATABASE_URL ?? '')
  await using daemon = run({ DATABASE_URL: url })
  const { port } = JSON.parse(await daemon.line((line) => line.includes('"event":"listening"'))) as { port: number }
  const get = async (path: string) => {
    const answer = await fetch(`http://127.0.0.1:${port}/${path}`)
    return { status: answer.status, body: await answer.text() }
  }
  expect((await get('livez')).status).toBe(200)
  const ready = await until(
    () => get('readyz'),
    ({ body }) => body.includes('ECONNREFUSED'),
  )
  expect(ready.status).toBe(503)
  expect(ready.body).toContain('the daemon waits for a database: the database of DATABASE_URL')
  expect(ready.body).not.toContain('postgres:postgres')
  expect((await get('metrics')).status).toBe(200)
  daemon.signal('SIGTERM')
  expect((await daemon.ended()).code).toBe(0)
  await untouched()
})
