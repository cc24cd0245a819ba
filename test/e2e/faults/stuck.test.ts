import { beforeAll, expect, test } from 'vitest'
import { PollQueue } from '../../../src/ledger/queue.ts'
import type { Daemon } from '../../support/daemon.ts'
import { openForFile } from '../../support/openForFile.ts'
import { scrape } from '../../support/scrape.ts'
import { statusSays } from '../../support/statusSays.ts'
import { until } from '../../support/until.ts'
import { setup } from './harness.ts'

/** Transactions that the service never ends. */

const stuck = 1_000
const records = 30
const env = { RATE_LIMIT_REQUESTS: '100', RATE_LIMIT_WINDOW_SECONDS: '6', STUCK_AFTER_SECONDS: '3600' }

const harness = openForFile(() => setup())
let daemon: Daemon
beforeAll(async () => {
  const { rows } = await harness.pool.query<{ submissionId: string }>(
    `insert into outboxd.submission (id, outbox_id, type, resource, payload, body, recorded_at, state, idempotency_key,
       transaction_id, sent_at, accepted_at)
     select gen_random_uuid(), 'old ' || n, 'data', 'data', '{}', '{}', now() - interval '2 days', 'accepted',
       gen_random_uuid(), 'old ' || n, now() - interval '2 days', now() - interval '2 days'
     from generate_series(1, $1) n returning id as "submissionId"`,
    [stuck],
  )
  const queue = await PollQueue.open(harness.pool)
  await queue.replace(
    harness.pool,
    [],
    rows.map((row) => ({ ...row, inMs: 0, rarely: true })),
  )
  await queue[Symbol.asyncDispose]()
  daemon = await harness.start(env)
})

test('a thousand transactions never end: they get a twentieth of the limit', async () => {
  const startMs = performance.now()
  for (let n = 0; n < records; n++) await harness.insert(`new-${n}-`)
  await until(
    () => harness.pool.query(`select from outbox where status = 'completed'`),
    ({ rowCount }) => rowCount === records,
  )
  const windows = Math.ceil((performance.now() - startMs) / 6_000)
  const { rows } = await harness.pool.query<{ asked: number }>(
    `select count(*)::int as asked from outboxd.submission where outbox_id like 'old %' and polls > 0`,
  )
  expect(rows[0]?.asked).toBeGreaterThan(0)
  // A twentieth of each window, and those allowed while nothing else waited.
  expect(rows[0]?.asked).toBeLessThan(60 + 5 * (windows + 1))
})

test('a transaction is open past `STUCK_AFTER_SECONDS`: `stuck_transaction`', async () => {
  await until(
    () => statusSays({ ...harness.env, ...env }),
    (printed) =>
      printed.includes(`For too long the service has not ended ${stuck} accepted records, the oldest outbox:old`),
  )
  await until(
    () => scrape(daemon),
    (text) => text.includes('outboxd_problems{kind="stuck_transaction"} 1'),
  )
})

test('a record whose 303 names an id that GET never confirms is stuck, and not sent again', async () => {
  const says = (kind: object, endpoint: string) => harness.fault({ ...kind, endpoint })
  await says(
    { kind: 'redirect', status: 303, location: '/status/{id}', when: 'after', bodyContains: 'named-' },
    'submit',
  )
  await says({ kind: 'answer', status: 500 }, 'status')
  await harness.insert('named-')
  const aged = await until(
    () =>
      harness.pool.query(
        `update outboxd.submission set sent_at = now() - interval '2 days' where probing and fruitless > 0`,
      ),
    ({ rowCount }) => rowCount === 1,
  )
  expect(aged.rowCount).toBe(1)
  const printed = await until(
    () => statusSays({ ...harness.env, ...env }),
    (text) => text.includes('the service has not said what became of 1 record sent to it, the oldest outbox:'),
  )
  expect(printed).toMatch(/to send .*, 0 captured\n/)
  expect(printed).not.toContain('oldest unsent')
  expect(printed).not.toContain('All is well')
  const { rows } = await harness.pool.query('select attempt from outboxd.submission where probing')
  expect(rows).toEqual([{ attempt: 1 }])
})
