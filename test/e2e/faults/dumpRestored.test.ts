import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import pg from 'pg'
import { afterAll, beforeAll, expect, type TestContext, test } from 'vitest'
import { command as check } from '../../../src/commands/check.ts'
import { command as recover } from '../../../src/commands/recover.ts'
import { migrateLedger } from '../../../src/ledger/migrations.ts'
import { testContext } from '../../support/context.ts'
import type { Daemon } from '../../support/daemon.ts'
import { createDatabaseOn, debian15, migrateAll, startPostgres } from '../../support/postgres.ts'
import { statusSays } from '../../support/statusSays.ts'
import { until } from '../../support/until.ts'
import { type Harness, setup } from './harness.ts'

/** The database or a part of it is restored, copied or dropped: nothing is sent until a person says so. */

const isThere = existsSync(join(debian15, 'pg_restore'))

let server: Awaited<ReturnType<typeof startPostgres>>
beforeAll(async () => {
  if (!isThere) return
  server = await startPostgres({ fsync: 'off', max_connections: '400' }, debian15)
  await migrateAll(await createDatabaseOn(server.url, 'migrated'))
})
afterAll(() => server?.stop())

const migrated = 'template migrated'
let databases = 0
const newDatabase = (options = '') => createDatabaseOn(server.url, `erp_${++databases}`, options)

async function open(url: string, { onTestFinished }: TestContext): Promise<Harness> {
  const harness = await setup({ idempotency: 'ignore' }, url)
  onTestFinished(() => harness[Symbol.asyncDispose]())
  return harness
}

const execute = promisify(execFile)
const run = (program: string, ...args: string[]) => execute(join(debian15, program), args)

async function complete(harness: Harness, marker: string): Promise<void> {
  await harness.insert(marker)
  expect(await harness.becomes(marker, 'completed')).toMatchObject({ effects: 1 })
}

const endPauses = (pool: pg.Pool) => pool.query('delete from outboxd.pause')

/** Inserts a record that is captured and not sent, because an operator has paused sending. */
async function captureWhilePaused(harness: Harness, marker: string): Promise<void> {
  await harness.pool.query(`insert into outboxd.pause (reason, detail) values ('operator', 'test')`)
  await harness.insert(marker)
  await harness.becomes(marker, 'queued')
}

/** Waits for three heartbeats: in that time a daemon would send what is due. */
async function threeHeartbeats(pool: pg.Pool): Promise<void> {
  const last = async () => (await pool.query('select max(beat_at)::text as at from outboxd.instance')).rows[0].at
  for (let i = 0; i < 3; i++) {
    const before = await last()
    await until(last, (at) => at !== before)
  }
}

interface Site {
  harness: Harness
  url: string
  dump: string
  daemon: Daemon
}

interface Kind {
  name: string
  /** Whether daemons run at the moment of the loss. */
  daemons: 'running' | 'stopped'
  /** Saves the present state. */
  save(site: Site): Promise<void>
  /** Goes back to the saved state. @returns the database whose daemon must not send now */
  goBack(site: Site): Promise<string>
  /** What `status` says then, or with what a daemon refuses to start. */
  says: RegExp
  refusesToStart?: true
  /** States after `recover`. */
  states: Record<string, string>
}

/** The dump has no pauses, so that what it has is due at once. */
const dump =
  (...parts: string[]) =>
  async ({ url, dump }: Site) =>
    void (await run('pg_dump', '-Fc', '--exclude-table-data=outboxd.pause', ...parts, '-f', dump, url))

async function restoreAll({ harness, url, dump }: Site): Promise<string> {
  const restore = () => run('pg_restore', '--clean', '--if-exists', '-1', '-d', url, dump)
  // pg_dump cannot drop the keys of pg-boss's partitions one by one.
  await expect(restore()).rejects.toThrow('cannot drop inherited constraint')
  await harness.pool.query('drop schema outboxd_jobs cascade')
  await restore()
  return url
}

async function restoreLedger({ harness, url, dump }: Site): Promise<string> {
  await harness.pool.query('drop schema outboxd, outboxd_jobs cascade')
  await run('pg_restore', '-1', '-d', url, dump)
  return url
}

/** Truncates the ledger's tables and copies the rows of the dump into them, in one transaction. */
async function restoreRows({ harness, url, dump }: Site): Promise<string> {
  const { rows } = await harness.pool.query<{ tables: string }>(
    `select string_agg(oid::regclass::text, ', ') as tables from pg_class
     where relkind in ('r', 'p') and relnamespace in ('outboxd'::regnamespace, 'outboxd_jobs'::regnamespace)`,
  )
  const copies = `${dump}.sql`
  await run('pg_restore', '--data-only', '--disable-triggers', '-f', copies, dump)
  await run('psql', '-1', '-v', 'ON_ERROR_STOP=1', '-c', `truncate ${rows[0]?.tables}`, '-f', copies, url)
  return url
}

async function dropLedger({ harness, url }: Site): Promise<string> {
  await harness.pool.query('drop schema outboxd, outboxd_jobs cascade')
  await migrateLedger(url)
  return url
}

const whole = {
  name: 'the whole database is restored',
  save: dump(),
  goBack: restoreAll,
  says: /the ledger’s tables were created again/,
  states: { between: 'uncertain', waiting: 'uncertain' },
}
const ledgerOnly = {
  name: 'the ledger’s schemas are restored',
  save: dump('-n', 'outboxd', '-n', 'outboxd_jobs'),
  goBack: restoreLedger,
  says: /the ledger’s tables were created again/,
  // The row of `between` names its transaction, so it is polled.
  states: { between: 'completed', marked: 'uncertain', waiting: 'uncertain' },
}
const rowsOnly = {
  ...ledgerOnly,
  name: 'the ledger’s rows are restored',
  goBack: restoreRows,
  says: /rows of a backup were restored/,
}
const dropped = {
  name: 'the ledger is dropped and created again',
  save: async () => {},
  goBack: dropLedger,
  states: { marked: 'uncertain', waiting: 'uncertain' },
}
const inOtherDatabase = {
  says: /the ledger is in a different database/,
  states: { between: 'uncertain', waiting: 'uncertain' },
}
let copyByTemplate = ''

const kinds: Kind[] = [
  { ...whole, daemons: 'running' },
  { ...whole, daemons: 'stopped' },
  { ...ledgerOnly, daemons: 'running' },
  { ...ledgerOnly, daemons: 'stopped' },
  { ...rowsOnly, daemons: 'stopped' },
  { ...dropped, daemons: 'running', says: /the ledger was created again/ },
  { ...dropped, daemons: 'stopped', says: /Say where to begin/, refusesToStart: true },
  {
    ...inOtherDatabase,
    name: 'a dump is restored into another database',
    daemons: 'running',
    save: dump(),
    async goBack({ dump }) {
      const copy = await newDatabase()
      await run('pg_restore', '-1', '-d', copy, dump)
      return copy
    },
  },
  {
    ...inOtherDatabase,
    name: 'the database is copied as a template',
    daemons: 'running',
    async save(site) {
      await site.daemon.stop()
      const { harness, url } = site
      const name = new URL(url).pathname.slice(1)
      const admin = new pg.Client(server.url)
      await admin.connect()
      await admin.query(`select pg_terminate_backend(pid) from pg_stat_activity where datname = $1`, [name])
      await admin.end()
      copyByTemplate = await newDatabase(`template ${name}`)
      const copy = new pg.Client(copyByTemplate)
      await copy.connect()
      await copy.query('delete from outboxd.pause')
      await copy.end()
      site.daemon = await harness.start()
    },
    goBack: async () => copyByTemplate,
  },
]

test.skipIf(!isThere).for(kinds)(
  'a restore, a copy or a dropped ledger ($name, daemons $daemons): nothing is sent until `recover`, and nothing twice',
  { timeout: 180_000, concurrent: true },
  async (kind, context) => {
    const url = await newDatabase(migrated)
    const harness = await open(url, context)
    const site = {
      harness,
      url,
      daemon: await harness.start(),
      dump: join(server.folder, `${new URL(url).pathname}.dump`),
    }
    await complete(harness, 'before-')
    await captureWhilePaused(harness, 'between-')
    await kind.save(site)
    await endPauses(harness.pool)
    expect(await harness.becomes('between-', 'completed')).toMatchObject({ effects: 1 })
    await complete(harness, 'since-')
    await captureWhilePaused(harness, 'marked-')
    if (kind.daemons === 'stopped') await site.daemon.stop()

    const there = await kind.goBack(site)
    const env = { ...harness.env, DATABASE_URL: there }
    const restored = there === url ? harness : await open(there, context)
    await restored.insert('waiting-')
    const start = () => restored.start(env)
    if (kind.refusesToStart) await expect(start()).rejects.toThrow(kind.says)
    else {
      if (kind.daemons === 'stopped' || restored !== harness) await start()
      await until(
        () => statusSays(env),
        (text) => /^Nothing is sent: paused \(history\).*`outboxd recover/.test(text) && kind.says.test(text),
      )
      await threeHeartbeats(restored.pool)
    }
    const posts = async (marker: string) => (await harness.outcome(marker)).posts
    expect(await posts('between-')).toEqual([200])
    expect(await posts('waiting-')).toEqual([])

    expect(await recover.action(testContext(env), { yes: true })).toBe(0)
    await restored.pool.query(
      'delete from outboxd.pause; truncate outboxd.request; update outboxd.ledger set spent_at = null',
    )
    if (kind.refusesToStart) await start()
    for (const [name, state] of Object.entries(kind.states)) await restored.becomes(`${name}-`, state)
    await restored.insert('after-')
    await restored.becomes('after-', 'completed')
    expect(await check.action(testContext(env), {})).toBe(0)
    for (const marker of ['before-', 'between-', 'since-', 'after-']) expect(await posts(marker)).toEqual([200])
    for (const marker of ['marked-', 'waiting-']) expect(await posts(marker)).toEqual([])
  },
)

test.skipIf(!isThere)(
  'only the outbox is restored: nothing is sent twice',
  { timeout: 120_000, concurrent: true },
  async (context) => {
    const url = await newDatabase(migrated)
    const harness = await open(url, context)
    await harness.control('PATCH', 'settings', { processingTime: 'constant:3' }).catch(() => null)
    await harness.start()
    await complete(harness, 'before-')
    await harness.insert('accepted-')
    await harness.becomes('accepted-', 'accepted')
    await harness.pool.query(`insert into outboxd.pause (reason, detail) values ('operator', 'test')`)
    await harness.insert('waiting-')
    await harness.becomes('waiting-', 'queued')
    const dump = join(server.folder, 'outbox.dump')
    await run('pg_dump', '-Fc', '-t', 'outbox', '-f', dump, url)
    await harness.pool.query('delete from outboxd.pause')
    await harness.becomes('accepted-', 'completed')
    await harness.becomes('waiting-', 'completed')
    await complete(harness, 'since-')
    await run('pg_restore', '--clean', '--if-exists', '-1', '-d', url, dump)
    const statuses = async () => {
      const { rows } = await harness.pool.query<{ status: string }>('select status from outbox order by id')
      return rows.map(({ status }) => status)
    }
    expect(await statuses()).toEqual(['completed', 'accepted', 'queued'])
    await harness.pool.query('update outboxd.submission set report_due = true where ended_at is not null')
    await until(statuses, (all) => all.every((status) => status === 'completed'))
    await harness.pool.query(
      `select setval(pg_get_serial_sequence('outbox', 'id'), (select max(outbox_id::bigint) from outboxd.submission))`,
    )
    await complete(harness, 'again-')
    for (const marker of ['accepted-', 'waiting-', 'again-'])
      expect(await harness.outcome(marker)).toMatchObject({ effects: 1 })
  },
)
