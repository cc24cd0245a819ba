import { expect, onTestFinished, test } from 'vitest'
import { command as migrate } from '../../src/commands/migrate.ts'
import { findSequencesBehindTables } from '../../src/ledger/migrations.ts'
import { createPool } from '../../src/postgres/database.ts'
import { withLedgerSchema } from '../../src/postgres/ledgerSchema.ts'
import { testContext } from '../support/context.ts'
import { createDatabase } from '../support/database.ts'

test('another LEDGER_SCHEMA: nothing is created in or said about the default one', async () => {
  const database = await createDatabase('template0')
  onTestFinished(() => database[Symbol.asyncDispose]())
  const env = { DATABASE_URL: database.url, LEDGER_SCHEMA: 'partner_b', OUTBOX_TABLE: 'outbox_b' }
  expect(await migrate.action(testContext(env), { outbox: true })).toBe(0)
  const again = testContext(env)
  expect(await migrate.action(again, {})).toBe(0)
  expect(again.messages()).toContain('the schemas partner_b and partner_b_jobs are up to date')
  const { rows } = await database.pool.query<{ name: string }>(
    `select nspname::text as name from pg_namespace where nspname ~ 'outboxd|partner' order by 1`,
  )
  expect(rows.map(({ name }) => name)).toEqual(['partner_b', 'partner_b_jobs'])

  const url = withLedgerSchema(database.url, 'partner_b')
  const pool = createPool({ url, name: 'test', connections: 1, isErp: true })
  onTestFinished(() => pool.end())
  // Each object's name is known to the renamer, also where a statement gives it in quotes.
  const { rows: objects } = await database.pool.query<{ name: string }>(
    `select relname::text as name from pg_class where relnamespace = 'partner_b'::regnamespace and relkind in ('r', 'v', 'S')
     union select proname from pg_proc where pronamespace = 'partner_b'::regnamespace
     union select stxname from pg_statistic_ext where stxnamespace = 'partner_b'::regnamespace`,
  )
  const texts = objects.map(({ name }) => `select $$outboxd.${name}$$ || $$"outboxd"."${name}"$$ as text`)
  expect(texts.length).toBeGreaterThan(20)
  for (const text of texts) expect((await pool.query(text)).rows[0].text).not.toContain('outboxd')

  await pool.query(
    `insert into outboxd.request (instance_id, purpose, over_at) values (gen_random_uuid(), 'token', now())`,
  )
  await pool.query(`select setval('outboxd.request_id_seq', 1, false)`)
  expect((await findSequencesBehindTables(pool)).join()).toMatch(/^select setval\('partner_b\.(?!.*\boutboxd\.)/)
})
