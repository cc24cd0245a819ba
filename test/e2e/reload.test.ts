import { appendFile, cp, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { command as runReload } from '../../src/commands/reload.ts'
import type { OptionsOf } from '../../src/commands/terminal/command.ts'
import { testContext } from '../support/context.ts'
import { daemonEnvironment, saysRunning, startDaemonProcess } from '../support/daemon.ts'
import { createDatabase } from '../support/database.ts'
import { scrape } from '../support/scrape.ts'
import { statusSays } from '../support/statusSays.ts'

const shipped = join(import.meta.dirname, '..', '..', 'mappings')

/** An address without a service. The tests only check how records were mapped, not that they are sent. */
const nowhere = 'http://127.0.0.1:1'

test('on SIGHUP the daemon uses a new mapping, and keeps the old one if the new one is broken', async () => {
  await using database = await createDatabase()
  const dir = await mkdtemp(join(tmpdir(), 'outboxd-mappings-'))
  onTestFinished(() => rm(dir, { recursive: true }))
  await cp(shipped, dir, { recursive: true })
  await using daemon = await startDaemonProcess(daemonEnvironment(database.url, nowhere, { MAPPINGS_DIR: dir }))

  const reload = (event: string) => {
    const told = daemon.line((line) => line.includes(event))
    daemon.signal('SIGHUP')
    return told
  }
  const capture = async (type: string) => {
    const { rows } = await database.pool.query(
      `insert into outbox (type, payload) values ($1, '{"customerId": "C1"}') returning id`,
      [type],
    )
    const status = () => database.pool.query('select status, error from outbox where id = $1', [rows[0].id])
    await expect.poll(async () => (await status()).rows[0].status).not.toBe('new')
    return (await status()).rows[0]
  }

  expect(await capture('greeting')).toMatchObject({ status: 'rejected', error: expect.stringContaining('no mapping') })

  const file = join(dir, 'greeting.yaml')
  const mapping =
    'type: greeting\nendpoint: data\nfields:\n  who: { from: customerId, type: string }\nbody: { who: "${who}" }\n'
  await writeFile(file, mapping)
  await reload('mapping files were reloaded')
  expect(await capture('greeting')).toEqual({ status: 'queued', error: null })
  const types = async () => (await database.pool.query('select types from outboxd.instance')).rows
  // Other instances read the types in the ledger, at the latest after the next round.
  await expect.poll(types).toEqual([{ types: ['data', 'greeting', 'order'] }])

  const isUsable = async () => {
    const { port } = JSON.parse(await daemon.line((line) => line.includes('"event":"listening"')))
    const metrics = await scrape({ port })
    expect(metrics).toMatch(/outboxd_submissions_finished_by_type_total\{type="greeting",outcome="rejected"\} \d/)
    return /^outboxd_mappings_last_reload_successful (\d)$/m.exec(metrics)?.[1]
  }
  expect(await isUsable()).toBe('1')

  await appendFile(file, 'endpiont: data\n')
  expect(await reload('mapping files are broken')).toContain('greeting.yaml:6')
  expect(await isUsable()).toBe('0')
  expect(await capture('greeting')).toEqual({ status: 'queued', error: null })
})

const outboxYaml = (table: string) => `table: ${table}
id: id
type: { constant: data }
created_at: created_at
payload: payload
state: { status: status, new: new, queued: queued }
`

test('if outbox.yaml is broken or fits no table, the daemon keeps the old one and reports `files_broken`', async () => {
  await using database = await createDatabase()
  const dir = await mkdtemp(join(tmpdir(), 'outboxd-mappings-'))
  onTestFinished(() => rm(dir, { recursive: true }))
  await cp(shipped, dir, { recursive: true })
  const file = join(dir, 'outbox.yaml')
  await using daemon = await startDaemonProcess(daemonEnvironment(database.url, nowhere, { MAPPINGS_DIR: dir }))
  const reload = async (text: string, event: string) => {
    await writeFile(file, text)
    const told = daemon.line((line) => line.includes(event))
    daemon.signal('SIGHUP')
    return told
  }
  const env = { DATABASE_URL: database.url, MAPPINGS_DIR: shipped }
  const status = () => statusSays(env)

  await reload('table: outbox\nid: [\n', 'are broken')
  await expect.poll(status).toContain('problem         files_broken files of ')
  expect(await status()).toMatch(/cannot be used: .*outboxd reload/s)

  const ask = testContext(env)
  expect(await runReload.action(ask, { json: true })).toBe(1)
  expect(JSON.parse(ask.printed()).instances).toMatchObject([
    { hasAnswered: true, problem: expect.stringContaining('outbox.yaml') },
  ])
  expect(ask.messages()).toContain('keeps its previous files')

  await database.pool.query(`create table loose (like outbox); alter table loose alter id drop not null`)
  for (const [table, problem] of [
    ['absent', 'absent'],
    ['loose', 'id'],
  ] as const) {
    await writeFile(file, outboxYaml(table))
    const refused = testContext(env)
    expect(await runReload.action(refused, { json: true })).toBe(1)
    expect(JSON.parse(refused.printed()).instances).toMatchObject([
      { hasAnswered: true, problem: expect.stringContaining(problem) },
    ])
    expect(refused.messages()).toContain('keeps its previous files')
    await expect.poll(status).toMatch(new RegExp(`files_broken.*${problem}`, 's'))
  }

  await writeFile(file, outboxYaml('outbox'))
  const again = daemon.line(saysRunning, { nth: 2 })
  const mended = testContext(env)
  expect(await runReload.action(mended, {})).toBe(0)
  expect(mended.messages()).toMatch(/^daemon \w{8} on .* reloaded its files\.\n$/)
  await again
  await database.pool.query(`insert into outbox (type, payload) values ('whatever', '{"customerId": "C1"}')`)
  const row = async () => (await database.pool.query('select s.type from outboxd.submission s')).rows[0]
  await expect.poll(row).toEqual({ type: 'data' })
  await expect.poll(status).not.toContain('files_broken')
})

test('reload exits with 3 if no daemon runs, and --dry-run only names the daemons that it would ask', async () => {
  await using database = await createDatabase()
  const env = daemonEnvironment(database.url, nowhere)
  const run = async (options: OptionsOf<typeof runReload>) => {
    const context = testContext(env)
    return { code: await runReload.action(context, options), messages: context.messages() }
  }
  expect(await run({})).toMatchObject({ code: 3, messages: expect.stringContaining('No daemon is running') })
  await using _ = await startDaemonProcess(env)
  expect(await run({ dryRun: true })).toMatchObject({ code: 0, messages: expect.stringMatching(/^Would ask daemon/) })
  expect((await database.pool.query('select reload_asked from outboxd.instance')).rows).toEqual([{ reload_asked: 0 }])
})
