import { readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { adopt } from '../../src/commands/adopt.ts'
import { check } from '../../src/commands/check.ts'
import { reload } from '../../src/commands/reload.ts'
import { readSnapshot } from '../../src/ledger/snapshot.ts'
import { startSandbox } from '../../src/sandbox/startSandbox.ts'
import { testContext } from '../support/context.ts'
import { daemonEnvironment, startDaemonProcess } from '../support/daemon.ts'
import { createDatabase } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { startProgram } from '../support/program.ts'
import { serviceEnvironment } from '../support/serviceEnvironment.ts'
import { statusSays } from '../support/statusSays.ts'
import { type Installation, install } from './installation.ts'

/** What a ledger belongs to: one service, one outbox that no other ledger serves, and one description of it. */

const mapping = { 'data.yaml': readFileSync('mappings/data.yaml', 'utf8') }
const payload = '{"customerId": "C1", "orderDate": "2026-11-20T10:00:00+01:00", "amount": 1.50, "field2": "x"}'
const insert = ({ pool }: Installation, rows = 1) =>
  pool.query(`insert into outbox (type, payload) select 'data', '${payload}' from generate_series(1, ${rows})`)
const statuses = async ({ pool }: Installation) =>
  (await pool.query<{ status: string }>('select status from outbox order by id')).rows.map(({ status }) => status)

/** A second service, and how often it was asked for anything. */
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

test('a daemon that is configured for another service than the ledger belongs to sends and asks nothing, and exits with 2', async () => {
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
  expect(stderr).toContain('the ledger belongs to another service than the one configured (SERVICE_BASE_URL is ')
  expect(code).toBe(2)
  expect((await readSnapshot(given.pool)).problems).toEqual({ foreign_service: 1 })
  expect(await statusSays(env)).toContain('A daemon is configured for another service')
  const checked = testContext(env)
  expect(await check(checked, {})).toBe(1)
  expect(checked.printed()).toContain('PROBLEM  service: the ledger belongs to another service')
  expect(await other.requests()).toBe(0)
  expect(await statuses(given)).toEqual(['completed', 'new'])

  // Its own service serves it as before, also by an address that is written in another way.
  const address = (await ownService(given)).replace('http://127', 'HTTP://127')
  await given.startInstance({ SERVICE_BASE_URL: `${address}/` })
  await eventually(async () => expect(await statuses(given)).toEqual(['completed', 'completed']))
})

const ownService = async ({ pool }: Installation): Promise<string> =>
  (await pool.query('select base_url as url from outboxd.ledger')).rows[0].url

test('a ledger moves to another service when no daemon runs and nothing is under way, and a daemon of the former one is refused', async () => {
  const given = await install(mapping)
  await insert(given)
  const stop = await given.startInstance()
  await eventually(async () => expect(await statuses(given)).toEqual(['completed']))
  const other = await anotherService()
  const env = { ...daemonEnvironment(given.url, '', { MAPPINGS_DIR: given.mappingsDir }), ...other.env }
  const move = async () => {
    const context = testContext(env)
    const code = await adopt(context, { service: true, yes: true })
    return { code, said: context.messages() }
  }
  expect(await move()).toMatchObject({ code: 1, said: expect.stringContaining('1 daemon still runs') })
  await stop()
  expect(await move()).toMatchObject({
    code: 0,
    said: expect.stringContaining('The ledger belongs to the service http'),
  })
  expect(await move()).toMatchObject({ code: 0, said: expect.stringContaining('already') })
  await expect(given.startInstance()).rejects.toThrow('the ledger belongs to another service')
  await insert(given)
  await given.startInstance(other.env)
  await eventually(async () => expect(await statuses(given)).toEqual(['completed', 'completed']))
  expect(await other.requests()).toBeGreaterThan(1)
  expect(await given.arrivals()).toHaveLength(1)
})

/** Section 10's table, whose rows end in this word. */
const described = (completed: string, comment = '') => `${comment}
table: outbox
id: id
type: { constant: data }
created_at: created_at
payload: payload
state: { status: status, new: new, queued: taken, accepted: taken, completed: ${completed} }
`

test('of two daemons with different outbox.yaml one captures and writes back, the other says which file is in force; reload changes it for both', async () => {
  const given = await install({ ...mapping, 'outbox.yaml': described('done') })
  const others = await mkdtemp(join(tmpdir(), 'outboxd-mappings-'))
  onTestFinished(() => rm(others, { recursive: true }))
  await writeFile(join(others, 'data.yaml'), mapping['data.yaml'])
  await writeFile(join(others, 'outbox.yaml'), described('finished'))
  const env = { ...daemonEnvironment(given.url, given.serviceUrl), MAPPINGS_DIR: given.mappingsDir }
  const otherEnv = { ...env, MAPPINGS_DIR: others }
  await using _ = await startDaemonProcess(env)
  await using second = await startDaemonProcess(otherEnv)
  await second.line((line) => line.includes('captures nothing and writes nothing back'))
  await insert(given, 20)
  await eventually(async () => expect(new Set(await statuses(given))).toEqual(new Set(['done'])))
  const said = await statusSays(env)
  expect(said).toContain('Daemons on this ledger differ in their settings')
  expect(said).toMatch(/outbox.yaml is \w+ here, and \w+ has been in force since 20\S+ \(daemon \w+ on /)

  // A comment is no difference; the daemon of the file in force reads the new one.
  await writeFile(join(given.mappingsDir, 'outbox.yaml'), described('finished', '# as on the other host'))
  const context = testContext(env)
  await reload(context, {})
  await second.line((line) => line.includes('settings of the instances no longer differ'))
  await insert(given, 20)
  await eventually(async () => expect((await statuses(given)).slice(20)).toEqual(Array(20).fill('finished')))
  expect((await statuses(given)).slice(0, 20)).toEqual(Array(20).fill('done'))
  await eventually(async () => expect(await statusSays(env)).toContain('All is well'))
})

test('a daemon with a new outbox.yaml begins when the last one with the former has left', async () => {
  const given = await install({ ...mapping, 'outbox.yaml': described('done') })
  const stop = await given.startInstance()
  await writeFile(join(given.mappingsDir, 'outbox.yaml'), described('finished'))
  await given.startInstance()
  await insert(given, 5)
  await eventually(async () => expect(await statuses(given)).toEqual(Array(5).fill('done')))
  await stop()
  await insert(given, 5)
  await eventually(async () => expect((await statuses(given)).slice(5)).toEqual(Array(5).fill('finished')))
})
