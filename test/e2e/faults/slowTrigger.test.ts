import { expect, test } from 'vitest'
import { standingProblemsSql } from '../../../src/ledger/problems.ts'
import { statusSays } from '../../support/statusSays.ts'
import { until } from '../../support/until.ts'
import { setup } from './harness.ts'

const rows = 100

test('with a trigger of 0.3 s per row all rows are written, and status names no false lock holder', async () => {
  await using harness = await setup()
  await harness.pool.query(`
    create function slow() returns trigger language plpgsql as $$ begin perform pg_sleep(0.3); return new; end $$;
    create trigger slow before update on outbox for each row execute function slow()`)
  const payload = { customerId: 'C1', orderDate: '2026-11-21T10:00:00Z', amount: 12.5, field2: 'slow' }
  await harness.pool.query(`insert into outbox (type, payload) select 'data', $1 from generate_series(1, $2)`, [
    JSON.stringify(payload),
    rows,
  ])
  await harness.start()
  const said = new Set<string>()
  const problems = new Set<string>()
  await until(
    async () => {
      const { rows: found } = await harness.pool.query<{ kind: string }>(`select kind from ${standingProblemsSql}`)
      for (const { kind } of found) problems.add(kind)
      said.add(await statusSays(harness.env))
      const { rows: told } = await harness.pool.query<{ n: number }>(
        `select count(*)::int as n from outbox where status = 'completed'`,
      )
      return told[0]?.n
    },
    (told) => told === rows,
    150_000,
  )
  expect([...problems]).toEqual([])
  expect([...said].filter((text) => /locked by|pg_terminate_backend|\(outboxd/.test(text))).toEqual([])
  const { rows: sent } = await harness.pool.query('select from outboxd.submission_event where to_state = $1', [
    'sending',
  ])
  expect(sent).toHaveLength(rows)
})
