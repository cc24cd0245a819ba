import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { command as check } from '../../../src/commands/check.ts'
import { command as recover } from '../../../src/commands/recover.ts'
import { testContext } from '../../support/context.ts'
import { debian15, migrateAll, startPostgres } from '../../support/postgres.ts'
import { statusSays } from '../../support/statusSays.ts'
import { until } from '../../support/until.ts'
import { type Harness, setup } from './harness.ts'

/** A dump is restored with pg_restore --clean into the database from which it was taken. */

const isThere = existsSync(join(debian15, 'pg_restore'))

async function open(): Promise<{ harness: Harness; url: string; folder: string }> {
  const server = await startPostgres({ fsync: 'off' }, debian15)
  onTestFinished(server.stop)
  await migrateAll(server.url)
  const harness = await setup({ idempotency: 'ignore' }, server.url)
  onTestFinished(() => harness[Symbol.asyncDispose]())
  return { harness, url: server.url, folder: server.folder }
}

const run = (program: string, ...args: string[]) =>
  execFileSync(join(debian15, program), args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })

async function complete(harness: Harness, marker: string): Promise<void> {
  await harness.insert(marker)
  expect(await harness.becomes(marker, 'completed')).toMatchObject({ effects: 1 })
}

test.skipIf(!isThere)(
  'pg_restore beside a living daemon: what was sent since is uncertain',
  async () => {
    const { harness, url, folder } = await open()
    await harness.start()
    await complete(harness, 'before-')
    await harness.pool.query(`insert into outboxd.pause (reason, detail) values ('operator', 'test')`)
    await harness.insert('between-')
    await until(
      () => harness.outcome('between-'),
      ({ status, state }) => status === 'queued' && state === 'queued',
    )
    const dump = join(folder, 'all.dump')
    run('pg_dump', '-Fc', '-f', dump, url)
    await harness.pool.query('delete from outboxd.pause')
    expect(await harness.becomes('between-', 'completed')).toMatchObject({ effects: 1 })
    await complete(harness, 'since-')
    // pg_dump cannot drop the keys of pg-boss's partitions one by one.
    expect(() => run('pg_restore', '--clean', '--if-exists', '-1', '-d', url, dump)).toThrow(
      'cannot drop inherited constraint',
    )
    await harness.pool.query('drop schema outboxd_jobs cascade')
    run('pg_restore', '--clean', '--if-exists', '-1', '-d', url, dump)
    const found = await until(
      () => statusSays(harness.env),
      (text) => text.includes('outboxd recover'),
    )
    expect(found).toContain('the ledger’s tables were created again')
    expect(await recover.action(testContext(harness.env), { yes: true })).toBe(0)
    await harness.pool.query(
      'delete from outboxd.pause; truncate outboxd.request; update outboxd.ledger set spent_at = null',
    )
    await harness.becomes('between-', 'uncertain')
    expect(await check.action(testContext(harness.env), {})).toBe(0)
  },
  120_000,
)

test.skipIf(!isThere)(
  'only the outbox is restored: nothing is sent twice',
  async () => {
    const { harness, url, folder } = await open()
    await harness.control('PATCH', 'settings', { processingTime: 'constant:3' }).catch(() => null)
    await harness.start()
    await complete(harness, 'before-')
    await harness.insert('accepted-')
    await harness.becomes('accepted-', 'accepted')
    await harness.pool.query(`insert into outboxd.pause (reason, detail) values ('operator', 'test')`)
    await harness.insert('waiting-')
    await harness.becomes('waiting-', 'queued')
    const dump = join(folder, 'outbox.dump')
    run('pg_dump', '-Fc', '-t', 'outbox', '-f', dump, url)
    await harness.pool.query('delete from outboxd.pause')
    await harness.becomes('accepted-', 'completed')
    await harness.becomes('waiting-', 'completed')
    await complete(harness, 'since-')
    run('pg_restore', '--clean', '--if-exists', '-1', '-d', url, dump)
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
  120_000,
)
