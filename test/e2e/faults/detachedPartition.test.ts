import { expect, test } from 'vitest'
import { statusSays } from '../../support/statusSays.ts'
import { until } from '../../support/until.ts'
import { setup } from './harness.ts'

test("a row's partition is detached for a while: `row_missing`, then written back", async () => {
  await using harness = await setup()
  const { pool } = harness
  await pool.query(`
    drop table outbox;
    create sequence ids;
    create table outbox (
      id bigint primary key default nextval('ids'), type text not null, key text, payload jsonb not null,
      created_at timestamptz not null default now(), status text not null default 'new',
      transaction_id text, error_code text, error text, updated_at timestamptz
    ) partition by range (id);
    create table outbox_1 partition of outbox for values from (1) to (1000)`)
  await harness.fault({ kind: 'answer', status: 500, endpoint: 'status' })
  await harness.start()
  await harness.insert('detached-')
  await harness.becomes('detached-', 'accepted')
  await pool.query('alter table outbox detach partition outbox_1')
  await harness.control('DELETE', 'faults')
  const says = () => statusSays(harness.env)
  await until(says, (text) => text.includes('1 row left the outbox'))
  await pool.query('alter table outbox attach partition outbox_1 for values from (1) to (1000)')
  const { rowCount } = await pool.query(
    `update outboxd.submission set report_not_before = clock_timestamp() where report_due and report_not_before between
       clock_timestamp() + interval '50 min' and clock_timestamp() + interval '60 min'`,
  )
  expect(rowCount).toBe(1) // as if an hour had passed
  await harness.becomes('detached-', 'completed')
  await until(says, (text) => text.startsWith('All is well'))
})
