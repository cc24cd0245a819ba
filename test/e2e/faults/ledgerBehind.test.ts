import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { command as check } from '../../../src/commands/check.ts'
import { command as recover } from '../../../src/commands/recover.ts'
import { readLedgerSnapshot } from '../../../src/ledger/snapshot.ts'
import { testContext } from '../../support/context.ts'
import { eventually } from '../../support/eventually.ts'
import { statusSays } from '../../support/statusSays.ts'
import { type Installation, install } from '../installation.ts'

/** The ledger was restored or lost: rows are marked as captured, but would never be sent. */

const mapping = readFileSync('mappings/data.yaml', 'utf8')
const payload = (field2: string) =>
  `{"customerId": "C1", "orderDate": "2026-11-20T10:00:00+01:00", "amount": 1.50, "field2": "${field2}"}`
const contextOf = ({ url }: Installation) => testContext({ DATABASE_URL: url })
const rows = async ({ pool }: Installation) =>
  (
    await pool.query<{ said: string }>(`select payload ->> 'field2' || ' ' || status as said from outbox order by id`)
  ).rows.map(({ said }) => said)

/** Three rows that a lost ledger had captured, one that it had completed, and one that waits. */
async function withGap(): Promise<Installation> {
  const given = await install({ 'data.yaml': mapping })
  // Without this, the empty ledger would pause all sending, because row b names a transaction (ledgerRestored.test.ts).
  await given.pool.query(`update outboxd.history set agreed_actor = 'operator', agreed_by = 'operator test'`)
  for (const [field2, said] of [
    ['a', 'queued'],
    ['b', 'accepted'],
    ['c', 'uncertain'],
    ['d', 'completed'],
    ['e', 'new'],
  ] as const)
    await given.pool.query(`insert into outbox (type, payload, status, transaction_id) values ('data', $1, $2, $3)`, [
      payload(field2),
      said,
      said === 'accepted' ? 'tx-b' : null,
    ])
  return given
}

test('the ledger lost rows: `ledger_behind`, uncertain or tracked', async () => {
  const given = await withGap()
  await given.startInstance()
  await eventually(async () => expect((await readLedgerSnapshot(given.pool)).problems).toEqual({ ledger_behind: 1 }))
  const before = await statusSays({ DATABASE_URL: given.url })
  expect(before).toContain('the ledger does not know them, so they will not be sent. `outboxd recover --dry-run`')
  expect(before).not.toContain('All is well')
  const checked = contextOf(given)
  await check.action(checked, {})
  expect(checked.printed()).toContain('PROBLEM  outbox: 3 rows are marked as captured but are missing from the ledger')

  const dry = contextOf(given)
  expect(await recover.action(dry, { dryRun: true })).toBe(0)
  expect(dry.printed()).toContain(
    '3 rows that the ledger does not know (1 say queued, 1 say accepted, 1 say uncertain)',
  )
  expect(dry.printed()).toMatch(/2 {2}accepted {2}\S+ {2}tx-b/)
  expect(dry.printed()).toContain('1 of them name a transaction, so they have arrived')
  expect(await recover.action(contextOf(given), { as: 'uncertain' })).toBe(4)
  expect(await recover.action(contextOf(given), { as: 'uncertain', yes: true })).toBe(0)
  await eventually(async () =>
    expect(await rows(given)).toEqual(['a uncertain', 'b accepted', 'c uncertain', 'd completed', 'e completed']),
  )
  expect((await readLedgerSnapshot(given.pool)).problems).toEqual({})
  expect(await recover.action(contextOf(given), { as: 'uncertain', yes: true })).toBe(3)
  expect(await given.arrivals()).toHaveLength(1)
  const { rows: events } = await given.pool.query(
    `select distinct message, actor from outboxd.submission_event where cause = 'recovered' order by message`,
  )
  expect(events).toEqual([
    { message: 'recovered as uncertain', actor: 'operator' },
    { message: 'recovered: arrived as tx-b', actor: 'operator' },
  ])
})

test('the ledger lost rows, `--as new`: sent, unless rows name a transaction', async () => {
  const given = await withGap()
  expect(await recover.action(contextOf(given), {})).toBe(2)
  expect(await recover.action(contextOf(given), { as: 'new', yes: true })).toBe(0)
  await given.startInstance()
  await eventually(async () =>
    expect(await rows(given)).toEqual(['a completed', 'b accepted', 'c completed', 'd completed', 'e completed']),
  )
  expect(await given.arrivals()).toHaveLength(3)
})

test('a table shows no state before the end: `recover` finds nothing', async () => {
  const given = await install({
    'data.yaml': mapping,
    'outbox.yaml': readFileSync('mappings/examples/sales_order.yaml', 'utf8'),
  })
  await given.pool.query(`create table sales_order (id bigint primary key, customer_no text, status text, net_amount numeric,
    reference text, ordered_at timestamptz, created_at timestamptz, synced_at timestamptz, sync_error text)`)
  const context = testContext({ DATABASE_URL: given.url, MAPPINGS_DIR: given.mappingsDir })
  expect(await recover.action(context, { dryRun: true })).toBe(3)
  expect(context.messages()).toContain('show only their end, not that they were captured')
})
