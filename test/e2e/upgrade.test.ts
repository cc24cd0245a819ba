import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { conclude } from '../../tools/crash/conclude.ts'
import { openSurroundings, runToEnd } from '../../tools/crash/environment.ts'
import { type Fleet, launchFleet } from '../../tools/crash/fleet.ts'
import { copyProgram } from '../../tools/crash/programCopy.ts'
import { createSeededRandom } from '../../tools/crash/seededRandom.ts'
import { createRecordMaker, insertRecords, type Written } from '../../tools/crash/workload.ts'
import { saysRunning, startDaemonProcess } from '../support/daemon.ts'
import { startPostgres } from '../support/postgres.ts'
import { until } from '../support/until.ts'
import { setup } from './faults/harness.ts'

/** What a later release may do to a ledger under running daemons: add columns, and a table. */
const inventedMigration = `
  alter table outboxd.submission add column invented integer not null default 7;
  alter table outboxd.request add column invented text;
  create table outboxd.invented (id bigint primary key)`

test('daemons of the release before send each record once, before, while and after `migrate` of the next release runs', async () => {
  await using harness = await setup()
  await using next = await copyProgram([])
  await writeFile(join(next.dir, 'migrations', '0002_invented.sql'), inventedMigration)
  await using one = await startDaemonProcess(harness.env)
  await using two = await startDaemonProcess(harness.env)
  const markers: string[] = []
  const insert = async () => {
    const marker = `record-${markers.length + 1}-`
    markers.push(marker)
    await harness.insert(marker, { key: `C${markers.length % 3}` })
  }

  for (let nth = 0; nth < 10; nth++) await insert()
  const migrated = next.start(['migrate'], harness.env).ended()
  let isMigrating = true
  void migrated.finally(() => {
    isMigrating = false
  })
  while (isMigrating) {
    await insert()
    await harness.becomes(markers.at(-1) ?? '', 'completed')
  }
  const { code, stderr } = await migrated
  expect(code, stderr).toBe(0)
  expect(stderr).toContain('applied 0002_invented')
  for (let nth = 0; nth < 10; nth++) await insert()
  for (const marker of markers)
    expect(await harness.becomes(marker, 'completed'), marker).toMatchObject({ posts: [200], effects: 1, attempt: 1 })

  // As in a rolling upgrade: the new daemon runs beside one of the old, and takes its place.
  await using successor = next.start(['run'], { ...harness.env, LOG_LEVEL: 'info' })
  await successor.line(saysRunning)
  expect((await one.stop()).code).toBe(0)
  await insert()
  expect(await harness.becomes(markers.at(-1) ?? '', 'completed')).toMatchObject({ effects: 1 })
  expect((await two.stop()).code).toBe(0)
  await insert()
  expect(await harness.becomes(markers.at(-1) ?? '', 'completed')).toMatchObject({ effects: 1 })
})

test('daemons of both releases that are killed around `migrate` break no promise', async ({ signal }) => {
  await using former = await copyProgram([])
  await using next = await copyProgram([])
  // Its locks stay for so long that daemons wait for them, and one is killed then.
  await writeFile(join(next.dir, 'migrations', '0002_invented.sql'), `${inventedMigration};\nselect pg_sleep(2);`)
  await using server = await startPostgres()
  const settings = { idempotency: 'ignore', seed: 1, standby: 'none', isPooled: false } as const
  await using surroundings = await openSurroundings(former, server.url, settings)
  const { env, database } = surroundings
  const make = createRecordMaker(createSeededRandom(settings.seed, 'records'))
  const written = new Map<string, Written>()
  const insert = async () => {
    const rows = Array.from({ length: 10 }, make)
    for (const { marker, outcome, amount } of rows) written.set(marker, { marker, outcome, amount })
    await insertRecords(database, rows)
  }
  const kill = async ({ berths }: Fleet) => {
    await insert()
    await until(() => berths.some((berth) => berth.atWork()), Boolean)
    berths.find((berth) => berth.atWork())?.kill()
  }
  const areAtWork = ({ berths }: Fleet) => until(() => berths.every((berth) => berth.atWork()), Boolean)
  const countCompleted = async () =>
    (await database.query(`select from outbox where status = 'completed'`)).rowCount ?? 0
  const isMigrating = async () => (await database.query(hasMigrationLockSql)).rowCount === 1

  const old = launchFleet({ program: former, env, size: 3 })
  let successors: Fleet | null = null
  try {
    await areAtWork(old)
    for (let nth = 0; nth < 3; nth++) await kill(old)
    await areAtWork(old)
    const migrated = next.start(['migrate'], env).ended()
    await until(isMigrating, Boolean)
    await kill(old)
    expect(await isMigrating()).toBe(true)
    const { code, stderr } = await migrated
    expect(code, stderr).toBe(0)
    expect(stderr).toContain('applied 0002_invented')

    // A daemon of the release before cannot start any more. One is left, and sends.
    await kill(old)
    const before = await countCompleted()
    await insert()
    await until(countCompleted, (count) => count > before + 5)

    successors = launchFleet({ program: next, env, size: 2 })
    await areAtWork(successors)
    await insert()
    old.scuttle()
    for (let nth = 0; nth < 3; nth++) await kill(successors)
    const settle = async () => {
      if ((await database.query(blockingRecordsSql)).rowCount === 0) return
      await runToEnd(next, ['discard', '--state', 'uncertain', '--yes', '--reason', 'killed'], env)
    }
    const ended = await conclude({ surroundings, fleet: successors, written, lost: [], settle, signal })
    expect(ended.violations).toEqual([])
    expect(old.deserters).toEqual([])
    expect(ended.history.outbox).toHaveLength(written.size)
  } finally {
    old.scuttle()
    successors?.scuttle()
  }
})

const blockingRecordsSql = `select from outboxd.submission where state = 'uncertain' and key is not null`
const hasMigrationLockSql = `
  select from pg_locks where relation = 'outboxd.submission'::regclass and mode = 'AccessExclusiveLock' and granted`
