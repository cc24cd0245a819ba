import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { expect, inject, onTestFinished, test } from 'vitest'
import { command as check } from '../../src/commands/check.ts'
import { command as migrate } from '../../src/commands/migrate.ts'
import { testContext } from '../support/context.ts'
import { startDaemonProcess } from '../support/daemon.ts'
import { dropRole } from '../support/grantRole.ts'
import { hasPgbouncer, type Pgbouncer, startPgbouncer } from '../support/pgbouncer.ts'
import { statusSays } from '../support/statusSays.ts'
import { until } from '../support/until.ts'
import { type Harness, setup } from './faults/harness.ts'
import { overriddenSettings } from './hostileSettingsTable.ts'

if (!hasPgbouncer)
  console.info('pgbouncer is not installed: the tests behind it are skipped (apt-get install pgbouncer)')

/** pgbouncer in transaction mode: no setting, prepared statement, lock or LISTEN outlives a transaction. */
async function behindPgbouncer(ignored: string[] = [], poolSize?: number): Promise<Harness> {
  return (await behindCrashing(ignored, poolSize)).harness
}

async function behindCrashing(
  ignored: string[] = [],
  poolSize?: number,
): Promise<{ harness: Harness; bouncer: Pgbouncer; directUrl: string }> {
  const bouncer = await startPgbouncer(inject('postgresUrl'), ignored, poolSize)
  onTestFinished(() => bouncer[Symbol.asyncDispose]())
  const harness = await setup()
  onTestFinished(() => harness[Symbol.asyncDispose]())
  const directUrl = harness.env.DATABASE_URL ?? ''
  harness.env.DATABASE_URL = bouncer.through(directUrl)
  return { harness, bouncer, directUrl }
}

async function runCheck(harness: Harness): Promise<string> {
  const context = testContext(harness.env)
  await check.action(context, {})
  return context.printed()
}

/** Reads what is left on the server's sessions, which the pooler gives to other programs. Holds all at once. */
async function readLeftovers({ pool }: Harness, pooledUrl: string): Promise<string[]> {
  const { rows } = await pool.query<{ sessions: number }>(
    `select count(*)::int as sessions from pg_stat_activity
     where datname = current_database() and backend_type = 'client backend' and pid <> pg_backend_pid()`,
  )
  const clients = Array.from({ length: rows[0]?.sessions ?? 0 }, () => new pg.Client(pooledUrl))
  const leftovers = await Promise.all(
    clients.map(async (client) => {
      await client.connect()
      await client.query('begin')
      const left = await client.query<{ what: string }>(leftoversSql)
      return left.rows.map(({ what }) => what)
    }),
  )
  await Promise.all(clients.map((client) => client.end()))
  return leftovers.flat()
}

/** pgbouncer itself sets the five settings, as its client has them. */
const leftoversSql = `
  select 'setting ' || name || ' = ' || setting as what from pg_settings
  where source = 'session' and name not in
    ('application_name', 'client_encoding', 'DateStyle', 'TimeZone', 'standard_conforming_strings')
  union all select 'listen ' || pg_listening_channels()
  union all select 'prepared ' || statement from pg_prepared_statements
  union all select 'lock ' || objid from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()
  union all select 'temporary ' || relname from pg_class where relnamespace = pg_my_temp_schema()`

test.skipIf(!hasPgbouncer).each([
  ['refuses our startup parameters', []],
  ['ignores our startup parameters', ['statement_timeout', 'idle_in_transaction_session_timeout', 'options']],
])('pgbouncer in transaction mode (%s): completed, once, and nothing is left on its sessions', async (_, ignored) => {
  const harness = await behindPgbouncer(ignored)
  const daemon = await harness.start()
  const markers = Array.from({ length: 20 }, (_, i) => `bounced-${i}-`)
  for (const [i, marker] of markers.entries()) await harness.insert(marker, { key: `k${i % 3}` })
  const outcomes = await Promise.all(markers.map((marker) => harness.becomes(marker, 'completed')))
  expect(outcomes.filter(({ effects, posts }) => effects !== 1 || posts.length !== 1)).toEqual([])
  await daemon.stop()
  await runCheck(harness)
  expect(await readLeftovers(harness, harness.env.DATABASE_URL ?? '')).toEqual([])
})

test.skipIf(!hasPgbouncer)('what another client left on the pooler’s session changes nothing', async () => {
  const harness = await behindPgbouncer([], 2)
  const role = `stranger_${randomBytes(4).toString('hex')}`
  await harness.pool.query(`create role ${role}; create schema stranger; create table stranger.outbox (like outbox)`)
  onTestFinished(() => dropRole(harness.pool, role))
  const { rows } = await harness.pool.query<{ name: string }>('select name from pg_settings')
  const known = new Set(['role', ...rows.map(({ name }) => name)])
  // Only a superuser can leave the first. The second ends a transaction, which is tried again.
  const { session_replication_role: _, transaction_timeout: __, ...overridden } = overriddenSettings
  const left = Object.entries({ ...overridden, role }).filter(([name]) => known.has(name))
  // Two at once, so that both sessions of the pool get the settings.
  const strangers = await Promise.all(
    ['one', 'two'].map(async () => {
      const stranger = new pg.Client(harness.env.DATABASE_URL)
      await stranger.connect()
      await stranger.query('begin; create temp table outbox (like public.outbox)')
      for (const [name, value] of left) await stranger.query(`set ${name} = ${pg.escapeLiteral(value)}`)
      await stranger.query('set search_path = stranger')
      return stranger
    }),
  )
  for (const stranger of strangers) {
    await stranger.query('commit')
    await stranger.end()
  }
  await harness.start()
  for (const marker of ['one-', 'two-', 'three-']) {
    await harness.insert(marker, { key: 'k' })
    expect(await harness.becomes(marker, 'completed')).toMatchObject({ effects: 1, posts: [200] })
  }
  const checked = testContext(harness.env)
  expect(await check.action(checked, {}), checked.printed()).toBe(0)
  // It would create the outbox in the schema `stranger`.
  await expect(migrate.action(testContext(harness.env), { outbox: true })).rejects.toThrow('a pooler')
})

test.skipIf(!hasPgbouncer)('check says that no insert wakes the daemon through this pooler', async () => {
  const checked = await runCheck(await behindPgbouncer())
  expect(checked).not.toContain('inserts wake the daemon')
  expect(checked).toContain('through this pooler no insert wakes the daemon')
})

test.skipIf(!hasPgbouncer)(
  'crashes of the pooler lose no record, and status does not blame the disk, a standby or other clients',
  async () => {
    const { harness, bouncer, directUrl } = await behindCrashing()
    const direct = { ...harness.env, DATABASE_URL: directUrl }
    const logged: string[] = []
    const daemon = await startDaemonProcess(harness.env, { onLine: (line) => logged.push(line) })
    onTestFinished(() => daemon[Symbol.asyncDispose]())
    const markers = Array.from({ length: 60 }, (_, i) => `crashed-${i}-`)
    const said: string[] = []
    for (const [i, marker] of markers.entries()) {
      await harness.insert(marker)
      if (i % 15 !== 10) continue
      await harness.becomes(`crashed-${i - 5}-`, 'completed', 'uncertain')
      await bouncer.crash()
      said.push(await statusSays(direct))
      await bouncer.restart()
      said.push(await statusSays(direct))
    }
    const outcomes = await Promise.all(markers.map((marker) => harness.becomes(marker, 'completed')))
    said.push(
      await until(
        () => statusSays(direct),
        (text) => text.startsWith('All is well'),
      ),
    )
    expect(outcomes.filter(({ effects }) => effects !== 1)).toEqual([])
    expect(said.filter((text) => /disk|standby|someone else/i.test(text))).toEqual([])
    expect(logged.filter((line) => line.includes('someone else spends'))).toEqual([])
  },
)
