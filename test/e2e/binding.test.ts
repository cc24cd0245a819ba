import { readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { command as adopt } from '../../src/commands/adopt.ts'
import { command as check } from '../../src/commands/check.ts'
import { startSandbox } from '../../src/sandbox/startSandbox.ts'
import { testContext } from '../support/context.ts'
import { daemonEnvironment } from '../support/daemon.ts'
import { createDatabase } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { startProgram } from '../support/program.ts'
import { serviceEnvironment } from '../support/serviceEnvironment.ts'
import { type Installation, install } from './installation.ts'

/** A ledger belongs to one service and one outbox.yaml. */

const mapping = { 'data.yaml': readFileSync('mappings/data.yaml', 'utf8') }
const payload = '{"customerId": "C1", "orderDate": "2026-11-20T10:00:00+01:00", "amount": 1.50, "field2": "x"}'
/** Drops the check of the standard table, which allows only its own statuses. */
const takeAnyStatus = ({ pool }: Pick<Installation, 'pool'>) =>
  pool.query('alter table outbox drop constraint if exists outboxd_knows_status')
const insert = ({ pool }: Installation, rows = 1) =>
  pool.query(`insert into outbox (type, payload) select 'data', '${payload}' from generate_series(1, ${rows})`)
const statuses = async ({ pool }: Installation) =>
  (await pool.query<{ status: string }>('select status from outbox order by id')).rows.map(({ status }) => status)

/** A second service. `requests` counts the requests that it got. */
async function anotherService() {
  const database = await createDatabase('sandbox_template')
  onTestFinished(() => database[Symbol.asyncDispose]())
  const sandbox = await startSandbox({ databaseUrl: database.url, port: 0, rateLimitRequests: 100_000 })
  onTestFinished(() => sandbox.close())
  return {
    env: serviceEnvironment(sandbox.url),
    requests: async () => (await database.pool.query('select from sandbox.ledger')).rowCount,
  }
}

test('a daemon of a different service exits with 2, and its ledger stays usable for its own service', async () => {
  const given = await install(mapping)
  await insert(given)
  const stop = await given.startInstance()
  await eventually(async () => expect(await statuses(given)).toEqual(['completed']))
  await stop()
  const other = await anotherService()
  await insert(given)
  const env = { ...daemonEnvironment(given.url, '', { MAPPINGS_DIR: given.mappingsDir }), ...other.env }
  await using daemon = startProgram({ args: ['run'], env })
  const { code, stderr } = await daemon.ended()
  expect(stderr).toContain('the ledger belongs to a different service than the configured one (SERVICE_BASE_URL is ')
  expect(code).toBe(2)
  const checked = testContext(env)
  expect(await check.action(checked, {})).toBe(1)
  expect(checked.printed()).toContain('PROBLEM  service: the ledger belongs to a different service')
  expect(await other.requests()).toBe(0)
  expect(await statuses(given)).toEqual(['completed', 'new'])

  // The ledger still works with its own service, even if the address is written differently.
  const address = (await ownService(given)).replace('http://127', 'HTTP://127')
  await given.startInstance({ SERVICE_BASE_URL: `${address}/` })
  await eventually(async () => expect(await statuses(given)).toEqual(['completed', 'completed']))
})

const ownService = async ({ pool }: Installation): Promise<string> =>
  (await pool.query('select base_url as url from outboxd.ledger')).rows[0].url

test('adopt --same gives the service a new address while no daemon runs, and a daemon with the former address is refused', async () => {
  const given = await install(mapping)
  await insert(given)
  const stop = await given.startInstance()
  await eventually(async () => expect(await statuses(given)).toEqual(['completed']))
  const other = await anotherService()
  const env = { ...daemonEnvironment(given.url, '', { MAPPINGS_DIR: given.mappingsDir }), ...other.env }
  const move = async () => {
    const context = testContext(env)
    const code = await adopt.action(context, { same: true, yes: true })
    return { code, said: context.messages() }
  }
  expect(await move()).toMatchObject({ code: 1, said: expect.stringContaining('1 daemon still runs') })
  await stop()
  expect(await move()).toMatchObject({ code: 0, said: expect.stringContaining('under new names') })
  await expect(given.startInstance()).rejects.toThrow('the ledger belongs to a different service')
  await insert(given)
  await given.startInstance(other.env)
  await eventually(async () => expect(await statuses(given)).toEqual(['completed', 'completed']))
  expect(await other.requests()).toBeGreaterThan(1)
  expect(await given.arrivals()).toHaveLength(1)
})

/** An outbox.yaml in which `completed` is the word for completed rows. */
const described = (completed: string, comment = '') => `${comment}
table: outbox
id: id
type: { constant: data }
created_at: created_at
payload: payload
state: { status: status, new: new, queued: taken, accepted: taken, completed: ${completed} }
`

test('a daemon with a new outbox.yaml captures only after the last daemon with the former file has stopped', async () => {
  const given = await install({ ...mapping, 'outbox.yaml': described('done') })
  await takeAnyStatus(given)
  const stop = await given.startInstance()
  await writeFile(join(given.mappingsDir, 'outbox.yaml'), described('finished'))
  await given.startInstance()
  await insert(given, 5)
  await eventually(async () => expect(await statuses(given)).toEqual(Array(5).fill('done')))
  await stop()
  await insert(given, 5)
  await eventually(async () => expect((await statuses(given)).slice(5)).toEqual(Array(5).fill('finished')))
})
