import { mkdtemp, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { daemonEnvironment, startDaemonProcess } from '../support/daemon.ts'
import { eventually } from '../support/eventually.ts'
import { statusSays } from '../support/statusSays.ts'
import { install } from './installation.ts'

const mapping = (comment: string) => `type: data
endpoint: data
fields: { customerId: { from: customerId, type: string } }
body: { customerId: "\${customerId}", data: { customer_id: "\${customerId}", order_date: "2026-11-20T10:00:00Z", total_amount: 1.5, field1: value1, field2: ${comment} } }
`

test('a host that comes back with old files and settings changes nothing until the last daemon with the ledger’s has stopped for good', async () => {
  const given = await install({ 'data.yaml': mapping('current') })
  const { pool, url, serviceUrl, mappingsDir } = given
  const oldDir = await mkdtemp(join(tmpdir(), 'outboxd-mappings-'))
  await writeFile(join(oldDir, 'data.yaml'), mapping('old'))
  const env = daemonEnvironment(url, serviceUrl, { MAPPINGS_DIR: mappingsDir, RATE_LIMIT_REQUESTS: '3000' })
  let current = await startDaemonProcess(env)
  await using _old = await startDaemonProcess({
    ...env,
    MAPPINGS_DIR: oldDir,
    RATE_LIMIT_REQUESTS: '6000',
    KEY_ON_FAILURE: 'block',
  })
  const insert = (rows: number) =>
    pool.query(
      `insert into outbox (type, payload) select 'data', jsonb_build_object('customerId', 'C' || n) from generate_series(1, $1::int) n`,
      [rows],
    )
  const completed = async (rows: number) => {
    const { rowCount } = await pool.query(`select from outbox where status = 'completed'`)
    expect(rowCount).toBe(rows)
  }
  await insert(20)
  await eventually(() => completed(20))
  const sent = async () => [...new Set((await given.arrivals()).map((body) => JSON.parse(body).data.field2))]
  expect(await sent()).toEqual(['current'])
  await eventually(async () =>
    expect(await statusSays(env)).toMatch(
      /settings of \w{8}: .*KEY_ON_FAILURE is block, not continue; RATE_LIMIT_REQUESTS is 6000, not 3000; mapping of data differs/,
    ),
  )
  const limits = async () =>
    (await pool.query(`select rate_limit, settings ->> 'KEY_ON_FAILURE' as policy from outboxd.ledger`)).rows
  expect(await limits()).toEqual([{ rate_limit: 3000, policy: 'continue' }])
  // Both send.
  const senders = `select count(distinct e.who)::int as n from outboxd.submission_event e where e.cause = 'claimed'`
  await eventually(async () => {
    await insert(20)
    expect((await pool.query(senders)).rows).toEqual([{ n: 2 }])
  })
  await eventually(async () =>
    expect((await pool.query(`select from outbox where status <> 'completed'`)).rowCount).toBe(0),
  )
  expect(await sent()).toEqual(['current'])

  await current.stop()
  await insert(1)
  current = await startDaemonProcess(env)
  await eventually(async () =>
    expect((await pool.query(`select from outbox where status <> 'completed'`)).rowCount).toBe(0),
  )
  expect(await sent()).toEqual(['current'])
  expect(await limits()).toEqual([{ rate_limit: 3000, policy: 'continue' }])

  await current.stop()
  await insert(1)
  await eventually(async () => expect(await sent()).toEqual(['current', 'old']))
  expect(await limits()).toEqual([{ rate_limit: 6000, policy: 'block' }])
  expect((await pool.query(`select reason from outboxd.operator_act where act = 'settings' order by id`)).rows).toEqual(
    [{ reason: 'the first daemon starts' }, { reason: 'no daemon has the former settings' }],
  )
  await eventually(async () => expect(await statusSays(env)).not.toContain('settings of'))
})

test('a changed mapping file takes effect with a restart', async () => {
  const { pool, mappingsDir, startInstance, arrivals } = await install({ 'data.yaml': mapping('first') })
  const insert = () => pool.query(`insert into outbox (type, payload) values ('data', '{"customerId": "C1"}')`)
  const stop = await startInstance()
  await writeFile(
    join(mappingsDir, 'data.yaml'),
    (await readFile(join(mappingsDir, 'data.yaml'), 'utf8')).replace('first', 'second'),
  )
  await insert()
  await eventually(async () =>
    expect((await arrivals()).map((body) => JSON.parse(body).data.field2)).toEqual(['first']),
  )
  await stop()
  await startInstance()
  await insert()
  await eventually(async () =>
    expect((await arrivals()).map((body) => JSON.parse(body).data.field2)).toEqual(['first', 'second']),
  )
})
