import { existsSync } from 'node:fs'
import { expect, test } from 'vitest'
import { estimateMigration } from '../../src/commands/printMigrationPlan.ts'
import { readMigrationCosts } from '../../src/ledger/migrations.ts'

import { createDatabase } from '../support/database.ts'
import { measureMigration, migrationNames } from '../support/measureMigration.ts'
import { createDatabaseOn, debian15, openPool, startPostgres } from '../support/postgres.ts'

/**
 * What `migrate --plan` says of a migration is what it did here, to tables with rows: `npm test -- test/ledger/migrationCosts -u`
 * writes it to migrations/costs.json.
 */

test('migrate --plan says what each migration really locks, reads and makes', async () => {
  await using database = await createDatabase('template0')
  await expect(await measureAll(database.url)).toMatchFileSnapshot('../../migrations/costs.json')
})

test.runIf(existsSync(debian15))('PostgreSQL 15 takes the same locks', async () => {
  await using server = await startPostgres({ fsync: 'off' }, debian15)
  await expect(await measureAll(await createDatabaseOn(server.url, 'ledger'))).toMatchFileSnapshot(
    '../../migrations/costs.json',
  )
})

/** Makes statements find rows as they do if a condition matches many. */
const asIfLarge =
  'set enable_indexscan = off; set enable_bitmapscan = off; set enable_nestloop = off; set enable_mergejoin = off'

const fill = `
  insert into outboxd.submission (id, outbox_id, type, resource, payload, body, recorded_at, state, idempotency_key, ended_at)
  select gen_random_uuid(), n::text, 'data', 'data', '{}', '{}', now(), 'completed', gen_random_uuid(), now()
  from generate_series(1, 1000) n;
  insert into outboxd.submission_event (submission_id, to_state, attempt, cause, who)
  select id, 'completed', 1, 'x', 'y' from outboxd.submission`

async function measureAll(url: string): Promise<string> {
  const pool = openPool(url)
  const client = await pool.connect()
  try {
    await client.query(`create schema outboxd; ${asIfLarge}`)
    const costs = []
    for (const name of migrationNames) {
      costs.push(await measureMigration(client, name))
      if (name === '0001_ledger') await client.query(fill)
    }
    return `${JSON.stringify(costs, null, 2)}\n`
  } finally {
    client.release()
    await pool.end()
  }
}

test('migrate --plan names whom a lock stops, and estimates more for larger tables and more work', async () => {
  const costs = await readMigrationCosts()
  const plan = (name: string, rows: number) => {
    const cost = costs.find((each) => each.name === name)
    if (cost === undefined) throw new Error(`no migration ${name}`)
    return estimateMigration(cost, new Map([['submission', { rows, bytes: rows * 1_300 }]]))
  }
  expect(plan('0014_lookups', 1_000_000).tables).toMatchObject([{ table: 'submission', stops: 'writes', indexes: 3 }])
  expect(plan('0012_refused_polls', 1_000_000).tables).toMatchObject([{ table: 'submission', stops: 'all', reads: 1 }])
  expect(plan('0025_rarity', 1_000_000).tables).toMatchObject([{ table: 'submission', stops: 'nobody' }])
  const [small, large, lighter] = [
    plan('0014_lookups', 1_000),
    plan('0014_lookups', 1_000_000),
    plan('0012_refused_polls', 1_000_000),
  ]
  expect(small.aboutMs).toBeLessThan(100)
  expect(large.aboutMs).toBeCloseTo(1_000 * small.aboutMs)
  expect(lighter.aboutMs).toBeLessThan(large.aboutMs)
  expect(plan('0020_minutes', 1_000_000).aboutMs).toBe(0) // its only table has 500 rows at most
})
