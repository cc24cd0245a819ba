import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, existsSync, openSync } from 'node:fs'
import { afterEach, expect, test } from 'vitest'
import { standingProblemsSql } from '../../../src/ledger/problems.ts'
import { startDaemonProcess } from '../../support/daemon.ts'
import { freePort } from '../../support/freePort.ts'
import { openForFile } from '../../support/openForFile.ts'
import { type Program, sourceMain } from '../../support/program.ts'
import { readMetric } from '../../support/scrape.ts'
import { statusSays } from '../../support/statusSays.ts'
import { until } from '../../support/until.ts'
import { setup } from './harness.ts'

/** The log during outages that the daemon handles, without contents of records. */

const harness = openForFile(() => setup())
afterEach(() => harness.control('DELETE', 'faults'))

type Line = Record<string, unknown>

/** Waits for a log line of this event with these fields. */
async function told(daemon: Program, event: string, fields: Line = {}): Promise<Line> {
  const is = (line: string) => {
    const said: Line = line.startsWith('{') ? JSON.parse(line) : {}
    return said.event === event && Object.entries(fields).every(([name, value]) => said[name] === value)
  }
  return JSON.parse(await daemon.line(is))
}

async function metric(daemon: Program, series: string): Promise<number> {
  const { port } = await told(daemon, 'listening')
  return readMetric({ port: Number(port) }, series)
}

test('a refused token: error and pause in the log', async () => {
  await harness.fault({ kind: 'answer', status: 401, code: 'invalid_client', endpoint: 'token' })
  await using daemon = await startDaemonProcess(harness.env)
  await harness.insert('refused-token-')
  const detail = expect.stringMatching(/^the token issuer answered 401 invalid_client; .*SERVICE_CLIENT_SECRET/)
  expect(await told(daemon, 'service refused our sign-in')).toMatchObject({ level: 'error', detail })
  const paused = await told(daemon, 'paused', { reason: 'unauthorized' })
  expect(paused).toMatchObject({ level: 'warn', detail })
  expect(Date.parse(String(paused.until))).toBeGreaterThan(0)
  await until(
    () => metric(daemon, 'outboxd_paused{reason="unauthorized"}'),
    (value) => value === 1,
  )
  expect(await metric(daemon, 'outboxd_contract_breaches_total{kind="unknown_code"}')).toBe(0)
  expect(await harness.pauses()).toEqual(['unauthorized'])

  await harness.control('DELETE', 'faults')
  const resumed = await told(daemon, 'resumed', { reason: 'unauthorized' })
  expect(resumed).toMatchObject({ level: 'info' })
  expect(resumed.lastedMs).toBeGreaterThan(0)
  await harness.becomes('refused-token-', 'completed')
})

test('a rejected record: in the log without its contents', async () => {
  await using daemon = await startDaemonProcess(harness.env)
  const long = await harness.insert('rejected-here-', { customerId: 'Jane Doe of Sometown' })
  expect(await told(daemon, 'record does not fit its mapping and was rejected', { outboxId: long })).toMatchObject({
    level: 'warn',
    state: 'rejected',
    type: 'data',
    fieldErrors: [{ field: 'customer_id', kind: 'too_long' }],
  })
  await harness.fault({
    kind: 'answer',
    status: 400,
    body: { code: 'E001', detail: 'Jane Doe is unknown' },
    endpoint: 'submit',
    times: 1,
  })
  const unknown = await harness.insert('rejected-there-')
  expect(await told(daemon, 'submitted', { outboxId: unknown, state: 'rejected' })).toMatchObject({
    level: 'warn',
    status: 400,
    code: 'E001',
  })
  await until(
    () => metric(daemon, 'outboxd_submissions_finished_total{outcome="rejected"}'),
    (rejected) => rejected === 2,
  )
  expect((await daemon.stop()).stdout).not.toContain('Jane')
})

test('the log has the SQLSTATE of a failing loop, and counts repeats within a minute', async () => {
  await using daemon = await startDaemonProcess(harness.env)
  await harness.pool.query('alter table outbox rename to away')
  try {
    const failed = await told(daemon, 'loop failed: the daemon tries again', { loop: 'capture' })
    expect(failed).toMatchObject({ level: 'error', code: '42P01' })
    await until(
      async () => (await harness.pool.query(`select from ${standingProblemsSql} where kind = 'loop_failing'`)).rowCount,
      (problems) => problems !== null && problems > 0,
    )
  } finally {
    await harness.pool.query('alter table away rename to outbox')
  }
  const { stdout } = await daemon.stop()
  const lines = stdout.split('\n').filter((line) => line.includes('"loop":"capture"'))
  expect(lines.map((line) => JSON.parse(line).repeated)).toEqual([undefined, expect.any(Number)])
})

test("the log has the row's id and the SQLSTATE if the table refuses an outcome", async () => {
  await harness.pool.query(
    `alter table outbox add constraint never_done check (status <> 'completed' or payload::text not like '%no-outcome-%')`,
  )
  await using daemon = await startDaemonProcess(harness.env)
  const outboxId = await harness.insert('no-outcome-')
  expect(await told(daemon, 'outcome could not be written back: the daemon tries again')).toMatchObject({
    level: 'warn',
    outboxId,
    reason: 'report_refused',
    code: '23514',
  })
  await until(
    () => metric(daemon, 'outboxd_problems{kind="report_refused"}'),
    (value) => value === 1,
  )
  await harness.pool.query('alter table outbox drop constraint never_done')
})

const isThere = existsSync('/dev/full')

test.skipIf(!isThere)('a full disk under the log: the daemon goes on sending, `log_failing`', async () => {
  const full = openSync('/dev/full', 'w')
  const env = {
    ...harness.env,
    PATH: process.env.PATH ?? '',
    NODE_ENV: 'production',
    LOG_LEVEL: 'info',
    SERVICE_TYPO: 'warns on stderr',
    HTTP_PORT: String(await freePort()),
  }
  const daemon = spawn(process.execPath, [sourceMain, 'run'], { stdio: ['ignore', full, full], env })
  closeSync(full)
  const ended = once(daemon, 'exit')
  try {
    await harness.insert('full-disk-refused-', { customerId: 'too long for this field, so a warning is written' })
    await harness.insert('full-disk-')
    const sent = harness.becomes('full-disk-', 'completed')
    expect(await Promise.race([sent.then(() => 'sent'), ended])).toBe('sent')
    await until(
      () => statusSays(env),
      (status) =>
        /A daemon cannot write its log, so lines are lost \(log of \w{8}: ENOSPC.*\)\. Records go on\./.test(status),
    )
    expect(await readMetric({ port: Number(env.HTTP_PORT) }, 'outboxd_log_write_failures_total')).toBeGreaterThan(0)
  } finally {
    daemon.kill('SIGTERM')
  }
  expect(await ended).toEqual([0, null])
})
