import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { expect, inject, onTestFinished, test } from 'vitest'
import { command as adopt } from '../../src/commands/adopt.ts'
import { command as check } from '../../src/commands/check.ts'
import { command as recover } from '../../src/commands/recover.ts'
import { command as reload } from '../../src/commands/reload.ts'
import { readLedgerSnapshot } from '../../src/ledger/snapshot.ts'
import { startSandbox } from '../../src/sandbox/startSandbox.ts'
import { testContext } from '../support/context.ts'
import { daemonEnvironment, startDaemonProcess } from '../support/daemon.ts'
import { createDatabase } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { hasPgbouncer, startPgbouncer } from '../support/pgbouncer.ts'
import { startProgram } from '../support/program.ts'
import { serviceEnvironment } from '../support/serviceEnvironment.ts'
import { statusSays } from '../support/statusSays.ts'
import { type Installation, install } from './installation.ts'

/** A ledger belongs to one service, one outbox that no other ledger serves, and one outbox.yaml. */

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
  expect((await readLedgerSnapshot(given.pool)).problems).toEqual({ foreign_service: 1 })
  expect(await statusSays(env)).toContain('its service is not the ledger’s: SERVICE_BASE_URL is')
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

test('adopt --service moves a ledger while no daemon runs, and then a daemon of the former service is refused', async () => {
  const given = await install(mapping)
  await insert(given)
  const stop = await given.startInstance()
  await eventually(async () => expect(await statuses(given)).toEqual(['completed']))
  const other = await anotherService()
  const env = { ...daemonEnvironment(given.url, '', { MAPPINGS_DIR: given.mappingsDir }), ...other.env }
  const move = async () => {
    const context = testContext(env)
    const code = await adopt.action(context, { service: true, yes: true })
    return { code, said: context.messages() }
  }
  expect(await move()).toMatchObject({ code: 1, said: expect.stringContaining('1 daemon still runs') })
  await stop()
  expect(await move()).toMatchObject({
    code: 0,
    said: expect.stringContaining('The ledger belongs to the service http'),
  })
  expect(await move()).toMatchObject({ code: 0, said: expect.stringContaining('already') })
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

test('daemons with different `outbox.yaml`: only those with the file in use capture and write back', async () => {
  const given = await install({ ...mapping, 'outbox.yaml': described('done') })
  await takeAnyStatus(given)
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
  expect(said).toContain('Daemons on this ledger have different settings')
  expect(said).toMatch(
    /outbox.yaml has the digest \w+ here, but the file with \w+ is in use since 20\S+ \(daemon \w+ on /,
  )

  // A comment makes no difference. The daemon whose file is in use reads the new file.
  await writeFile(join(given.mappingsDir, 'outbox.yaml'), described('finished', '# as on the other host'))
  const context = testContext(env)
  await reload.action(context, {})
  await second.line((line) => line.includes('settings of the instances agree again'))
  await insert(given, 20)
  await eventually(async () => expect((await statuses(given)).slice(20)).toEqual(Array(20).fill('finished')))
  expect((await statuses(given)).slice(0, 20)).toEqual(Array(20).fill('done'))
  await eventually(async () => expect(await statusSays(env)).toContain('All is well'))
})

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

/** An outbox and a ledger in different databases, and the variable that a second daemon may lack. */
async function apart(files: Record<string, string> = mapping) {
  const given = await install(files)
  const state = await createDatabase()
  onTestFinished(() => state[Symbol.asyncDispose]())
  await state.pool.query('update outboxd.ledger set id = gen_random_uuid()') // `migrate` gives each ledger its own id, but a template database does not
  const env = { ...daemonEnvironment(given.url, given.serviceUrl), MAPPINGS_DIR: given.mappingsDir }
  return { ...given, env, STATE_DATABASE_URL: state.url, state: state.pool }
}

const withoutState = described('done').replace(/^state: .*$/m, 'state: none')

test('a daemon without `STATE_DATABASE_URL` is refused while one with that variable runs, and sends nothing', async () => {
  const { STATE_DATABASE_URL, ...given } = await apart({ ...mapping, 'outbox.yaml': withoutState })
  await given.startInstance({ STATE_DATABASE_URL })
  await given.startInstance({ STATE_DATABASE_URL }) // a second instance on the same ledger
  await insert(given, 20)
  await using lacking = startProgram({ args: ['run'], env: given.env })
  const { code, stderr } = await lacking.ended()
  expect(stderr).toMatch(
    /a daemon of another ledger serves the outbox \S*outbox"? \(pid \d+ postgres.*STATE_DATABASE_URL is probably missing or wrong/,
  )
  expect(code).toBe(2)
  await eventually(async () => expect(await given.arrivals()).toHaveLength(20))
  expect((await readLedgerSnapshot(given.pool)).problems).toEqual({ foreign_ledger: 1 })
  expect((await readLedgerSnapshot(given.state)).problems).toEqual({})
  expect(await statusSays(given.env)).toContain('A daemon of another ledger serves the outbox')
  const checked = testContext(given.env)
  expect(await check.action(checked, {})).toBe(1)
  expect(checked.printed()).toContain('PROBLEM  outbox: a daemon of another ledger serves the outbox')
  const recovering = testContext(given.env)
  expect(await recover.action(recovering, { as: 'new', yes: true })).toBe(1)
  expect(recovering.messages()).toContain('If you recovered these rows, they could be sent twice. Nothing was changed')
  expect(await given.arrivals()).toHaveLength(20)
})

test('of two ledgers that start at once on one outbox, only one serves it', async () => {
  const { STATE_DATABASE_URL, ...given } = await apart()
  for (let round = 0; round < 3; round++) {
    const starts = await Promise.allSettled([given.startInstance({ STATE_DATABASE_URL }), given.startInstance()])
    const started = starts.filter((start) => start.status === 'fulfilled')
    expect(started).toHaveLength(1)
    const refused = starts.find((start) => start.status === 'rejected')
    expect(String(refused?.reason)).toContain('a daemon of another ledger serves the outbox')
    await started[0]?.value()
  }
})

test('if the registration session of a ledger breaks, the daemon goes on, and another ledger is still refused', async () => {
  const { STATE_DATABASE_URL, ...given } = await apart()
  await given.startInstance({ STATE_DATABASE_URL })
  const sessions = `select pid from pg_stat_activity where starts_with(application_name, 'outboxd registration') and datname = current_database()`
  const pids = async () => (await given.pool.query(sessions)).rows.map(({ pid }) => pid)
  const [former] = await pids()
  await given.pool.query('select pg_terminate_backend($1)', [former])
  await insert(given)
  await eventually(async () => expect(await statuses(given)).toEqual(['completed']))
  await eventually(async () => expect(await pids()).toEqual([expect.any(Number)]))
  expect(await pids()).not.toEqual([former])
  await expect(given.startInstance()).rejects.toThrow('a daemon of another ledger serves the outbox')
})

test('after kill -9 of a daemon, another ledger may serve its outbox, and later its own ledger again', async () => {
  const { STATE_DATABASE_URL, ...given } = await apart()
  const env = { ...given.env, STATE_DATABASE_URL }
  await using killed = await startDaemonProcess(env)
  killed.signal('SIGKILL')
  await killed.ended()
  const stop = await given.startInstance() // on another ledger
  await stop()
  await given.startInstance({ STATE_DATABASE_URL })
  await insert(given)
  await eventually(async () => expect(await statuses(given)).toEqual(['completed']))
})

test('check and recover name a second ledger that a daemon without `STATE_DATABASE_URL` has filled', async () => {
  const { STATE_DATABASE_URL, ...given } = await apart()
  await insert(given, 3)
  const stop = await given.startInstance({ SERVICE_BASE_URL: 'http://127.0.0.1:1' })
  await eventually(async () => expect(await statuses(given)).toEqual(Array(3).fill('queued')))
  await stop()
  const env = { ...given.env, STATE_DATABASE_URL }
  const checked = testContext(env)
  await check.action(checked, {})
  expect(checked.printed()).toMatch(
    /PROBLEM {2}ledgers: the outbox's own database has a second ledger.*captured 3 records.*3 of them have not ended/,
  )
  expect(checked.printed()).not.toContain('Nobody will send them')
  const recovering = testContext(env)
  expect(await recover.action(recovering, { as: 'new', yes: true })).toBe(3)
  expect(recovering.messages()).toContain('a second ledger')
  await given.startInstance({ SERVICE_BASE_URL: 'http://127.0.0.1:1' })
  expect(await given.arrivals()).toEqual([])
})

test.skipIf(!hasPgbouncer)('behind pgbouncer in transaction mode, a second ledger is refused too', async () => {
  const { STATE_DATABASE_URL, ...given } = await apart()
  const bouncer = await startPgbouncer(inject('postgresUrl'))
  onTestFinished(() => bouncer[Symbol.asyncDispose]())
  const DATABASE_URL = bouncer.through(given.url)
  const stop = await given.startInstance({ STATE_DATABASE_URL, DATABASE_URL })
  await expect(given.startInstance()).rejects.toThrow('a daemon of another ledger serves the outbox')
  await expect(given.startInstance({ DATABASE_URL })).rejects.toThrow('a daemon of another ledger serves the outbox')
  await given.startInstance({ STATE_DATABASE_URL })
  await insert(given)
  await eventually(async () => expect(await statuses(given)).toEqual(['completed']))
  await stop()
})

/** Creates a role that may only connect, and opens its session. */
async function stranger({ pool, url }: Pick<Installation, 'pool' | 'url'>) {
  const name = `stranger_${randomBytes(4).toString('hex')}`
  await pool.query(`create role ${name} login password 'x'`)
  const client = new pg.Client({
    connectionString: Object.assign(new URL(url), { username: name, password: 'x' }).href,
  })
  client.on('error', () => {})
  await client.connect()
  onTestFinished(async () => {
    await client.end()
    await pool.query(`drop role ${name}`)
  })
  return client
}

test('a role without rights cannot block daemons by naming its session like a daemon of another ledger', async () => {
  const given = await install(mapping)
  const stop = await given.startInstance()
  const named = `select application_name as name from pg_stat_activity where starts_with(application_name, 'outboxd registration')`
  const { rows } = await given.pool.query<{ name: string }>(named)
  await stop()
  const client = await stranger(given)
  await client.query(`select set_config('application_name', $1, false)`, [rows[0]?.name.replace(/.{4}$/, '0000')])
  await given.startInstance()
  await given.startInstance()
  await insert(given)
  await eventually(async () => expect(await statuses(given)).toEqual(['completed']))
})
