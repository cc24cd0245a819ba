import { expect, onTestFinished, test } from 'vitest'
import { saysRunning } from '../support/daemon.ts'
import { createDatabase } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { openPool } from '../support/postgres.ts'
import { startProgram } from '../support/program.ts'

test('migrate, sandbox and run process rows of every outcome', async () => {
  await using database = await createDatabase('template0')
  const credentials = { SERVICE_CLIENT_ID: 'erp', SERVICE_CLIENT_SECRET: 'not to be seen' }
  const env = { DATABASE_URL: database.url, ...credentials }
  expect(await startProgram({ args: ['migrate', '--outbox'], env }).ended()).toMatchObject({ code: 0 })

  await using sandbox = startProgram({
    args: ['sandbox', '--port', '0', '--json'],
    env: { ...env, SANDBOX_PROCESSING_TIME: 'constant:0.2' },
  })
  const { url } = JSON.parse(await sandbox.line((line) => line.startsWith('{'))) as { url: string }
  await using daemon = startProgram({
    args: ['run'],
    env: { ...env, SERVICE_BASE_URL: url, SERVICE_AUTH_URL: url, HTTP_PORT: '0' },
  })
  await daemon.line(saysRunning)

  const pool = openPool(database.url)
  onTestFinished(() => pool.end())
  await pool.query(`insert into outbox (type, payload) values
    ('data', '{"customerId": "C1", "orderDate": "2026-11-20T10:00:00+01:00", "amount": 12.5, "field2": "x"}'),
    ('data', '{"customerId": "C1", "orderDate": "2026-11-20T10:00:00Z", "amount": 1, "field2": "fail:E001"}'),
    ('data', '{"customerId": "UNKNOWN1", "orderDate": "2026-11-20T10:00:00Z", "amount": 1, "field2": "x"}'),
    ('data', '{"customerId": "C1", "orderDate": "2026-11-20T10:00:00Z", "amount": 0.001, "field2": "x"}'),
    ('order', '{"customerId": "6f1f1b0a-1f5e-4b43-9d2c-0f6b6f6b6f6b", "items": [{"price": 1.10}]}'),
    ('invoice', '{}')`)
  await eventually(async () => {
    const { rows } = await pool.query('select status, error_code from outbox order by id')
    expect(rows.map(({ status, error_code }) => `${status} ${error_code ?? ''}`.trim())).toEqual([
      'completed',
      'failed E001',
      'rejected E001',
      'rejected',
      'completed',
      'rejected',
    ])
  })
  const { rows: requests } = (await (await fetch(`${url}/_sandbox/ledger`)).json()) as {
    rows: { body: string | null }[]
  }
  expect(requests.map(({ body }) => body ?? '').join('\n')).toContain('"total_amount":12.50')

  const { code, stdout, stderr } = await daemon.stop()
  expect(code).toBe(0)
  expect(stdout + stderr).not.toContain('not to be seen')
})
