import { beforeAll, expect, test } from 'vitest'
import { command as recover } from '../../../src/commands/recover.ts'
import { testContext } from '../../support/context.ts'
import type { Daemon } from '../../support/daemon.ts'
import { openForFile } from '../../support/openForFile.ts'
import { migrateAll } from '../../support/postgres.ts'
import { type Node, type Replicas, startReplicas } from '../../support/replicas.ts'
import { statusSays } from '../../support/statusSays.ts'
import { until } from '../../support/until.ts'
import { waitForStandby } from '../../support/waitForStandby.ts'
import { type Harness, setup, shortTimeout } from './harness.ts'

/** The ledger's database loses commits: it fails over to a standby, or is restored. */

interface Fixture extends AsyncDisposable {
  replicas: Replicas
  harness: Harness
}

async function openFixture(): Promise<Fixture> {
  await using stack = new AsyncDisposableStack()
  const replicas = await startReplicas()
  stack.use(replicas)
  await migrateAll(replicas.clientUrl)
  const harness = await setup({ idempotency: 'ignore' }, replicas.clientUrl)
  stack.use(harness)
  const all = stack.move()
  return { replicas, harness, [Symbol.asyncDispose]: () => all.disposeAsync() }
}

const fixture = openForFile(openFixture)
let primary: Node
let daemon: Daemon
beforeAll(async () => {
  primary = fixture.replicas.primary
})

const says = () => statusSays(fixture.harness.env)

/** Inserts a record and waits until it is completed. */
async function insertAndComplete(marker: string): Promise<void> {
  await fixture.harness.insert(marker)
  expect(await fixture.harness.becomes(marker, 'completed')).toMatchObject({ effects: 1 })
}

test('a declared synchronous standby is promoted: goes on by itself', async () => {
  const { replicas, harness } = fixture
  const { standby } = await replicas.addStandby(primary)
  const declared = await harness.start({ ...shortTimeout, LEDGER_STANDBY: 'synchronous' })
  await harness.insert('sync-before-')
  await until(says, (text) => text.includes('LEDGER_STANDBY is synchronous, but COMMITs'))
  expect(await harness.outcome('sync-before-')).toMatchObject({ posts: [] })
  await waitForStandby('*', primary.run)
  expect(await harness.becomes('sync-before-', 'completed')).toMatchObject({ effects: 1 })
  await primary.kill()
  await standby.promote()
  await replicas.redirect(standby)
  primary = standby
  await replicas.addStandby(primary, 'next')
  await waitForStandby('*', primary.run)
  await until(
    () => harness.insert('sync-after-').catch(() => null),
    (id) => id !== null,
  )
  expect(await harness.becomes('sync-after-', 'completed')).toMatchObject({ posts: [200], effects: 1 })
  expect(await harness.outcome('sync-before-')).toMatchObject({ posts: [200], effects: 1 })
  const { rows } = await primary.run('select timeline, recovered_at from outboxd.ledger')
  expect(rows).toEqual([{ timeline: '00000002', recovered_at: null }])
  expect(await says()).not.toContain('history')
  await declared.stop()
  await waitForStandby('', primary.run)
  daemon = await harness.start(shortTimeout) // after `recover` the budget is spent until no request can arrive
})

test('an asynchronous standby is promoted: nothing is sent before `recover`', async () => {
  const { replicas, harness } = fixture
  const { standby, link } = await replicas.addStandby(primary, 'late')
  await insertAndComplete('async-before-')
  await harness.pool.query(`insert into outboxd.pause (reason, detail) values ('operator', 'test')`)
  for (const marker of ['async-lost-1-', 'async-lost-2-']) {
    await harness.insert(marker)
    await until(
      () => harness.outcome(marker),
      ({ status, state }) => status === 'queued' && state === 'queued',
    )
  }
  const { rows } = await primary.run('select pg_current_wal_lsn()::text as lsn')
  await until(
    () => standby.run(`select pg_last_wal_replay_lsn() >= '${rows[0].lsn}' as caught_up`),
    (caughtUp) => caughtUp.rows[0].caught_up,
  )
  await link.setFault({ kind: 'refuse' })
  await harness.pool.query('delete from outboxd.pause')
  for (const marker of ['async-lost-1-', 'async-lost-2-']) await harness.becomes(marker, 'completed')
  await primary.kill()
  await standby.promote()
  await replicas.redirect(standby)
  primary = standby

  const found = await until(says, (text) => text.includes('outboxd recover'))
  expect(found.split('\n')[0]).toContain('paused (history)')
  const context = testContext(harness.env)
  expect(await recover.action(context, { dryRun: true })).toBe(0)
  expect(context.printed()).toContain('2 records that waited in the ledger would be uncertain')
  expect(await recover.action(testContext(harness.env), {})).toBe(4)
  expect(await recover.action(testContext(harness.env), { yes: true })).toBe(0)
  // The pause that an operator had ended exists again, too.
  await harness.pool.query(`delete from outboxd.pause where reason = 'operator'`)
  for (const marker of ['async-lost-1-', 'async-lost-2-'])
    expect(await harness.becomes(marker, 'uncertain')).toMatchObject({ posts: [200], effects: 1 })
  await insertAndComplete('async-after-')
  expect(await says()).not.toContain('history')
})

test('requests whose outcome a promotion lost become uncertain', async () => {
  const { replicas, harness } = fixture
  const { standby, link } = await replicas.addStandby(primary, 'behind')
  const markers = ['wire-1-', 'wire-2-', 'wire-3-']
  await harness.fault({ kind: 'delay', delayMs: 4_000, when: 'after', endpoint: 'submit', times: markers.length })
  for (const marker of markers) await harness.insert(marker)
  const countSending = async (query: (text: string) => Promise<{ rows: { count: number }[] }>) => {
    const { rows } = await query(`select count(*)::int as count from outboxd.submission where state = 'sending'`)
    return rows[0]?.count
  }
  await until(
    () => countSending((text) => standby.run(text)),
    (count) => count === markers.length,
  )
  await link.setFault({ kind: 'refuse' })
  for (const marker of markers) expect(await harness.becomes(marker, 'completed')).toMatchObject({ effects: 1 })
  await primary.kill()
  await standby.promote()
  await replicas.redirect(standby)
  primary = standby
  await until(says, (text) => text.includes('outboxd recover'))
  expect(await recover.action(testContext(harness.env), { yes: true })).toBe(0)
  expect(await says()).toMatch(/^\d records need attention/)
  for (const marker of markers)
    expect(await harness.becomes(marker, 'uncertain')).toMatchObject({ posts: [200], effects: 1 })
})

test("the server's folder is put back: a living daemon stops all", async () => {
  const { replicas, harness } = fixture
  await insertAndComplete('folder-before-')
  await harness.pool.query(`insert into outboxd.pause (reason, detail) values ('operator', 'test')`)
  await harness.insert('folder-lost-')
  await until(
    () => harness.outcome('folder-lost-'),
    ({ status, state }) => status === 'queued' && state === 'queued',
  )
  await primary.stop()
  const copy = await replicas.copyFolder(primary.dataDir)
  await primary.start()
  await until(
    () => harness.pool.query('delete from outboxd.pause').catch(() => null),
    (result) => result !== null,
  )
  await harness.becomes('folder-lost-', 'completed')
  await primary.kill()
  const restored = await replicas.startOn(copy)
  await replicas.redirect(restored)
  primary = restored
  await until(says, (text) => text.includes('that a daemon had written is missing'))
  expect(await recover.action(testContext(harness.env), { yes: true })).toBe(0)
  await harness.pool.query(`delete from outboxd.pause where reason = 'operator'`)
  expect(await harness.becomes('folder-lost-', 'uncertain')).toMatchObject({ posts: [200], effects: 1 })
})

test('a backup is recovered to a point in time while no daemon runs: a daemon that starts sends nothing', async () => {
  const { replicas, harness } = fixture
  await harness.pool.query(`insert into outboxd.pause (reason, detail) values ('operator', 'test')`)
  await harness.insert('pitr-lost-')
  await until(
    () => harness.outcome('pitr-lost-'),
    ({ status, state }) => status === 'queued' && state === 'queued',
  )
  const backup = await replicas.backUp(primary)
  await harness.pool.query('delete from outboxd.pause')
  expect(await harness.becomes('pitr-lost-', 'completed')).toMatchObject({ effects: 1 })
  await daemon.stop()
  await primary.kill()
  const restored = await replicas.startOn(
    backup,
    {
      restore_command: `cp ${primary.dataDir}/pg_wal/%f %p`,
      recovery_target: 'immediate',
      recovery_target_action: 'promote',
    },
    { 'recovery.signal': '' },
  )
  await replicas.redirect(restored)
  primary = restored
  await until(
    () => primary.run('select pg_is_in_recovery() as is'),
    ({ rows: [row] }) => !row.is,
  )
  await harness.start(shortTimeout)
  await until(says, (text) => text.includes('the server has a new timeline'))
  await harness.pool.query(`delete from outboxd.pause where reason = 'operator'`)
  expect(await recover.action(testContext(harness.env), { yes: true })).toBe(0)
  expect(await harness.becomes('pitr-lost-', 'uncertain')).toMatchObject({ posts: [200], effects: 1 })
})
