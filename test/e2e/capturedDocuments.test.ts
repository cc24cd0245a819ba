import { cp, mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { command as discard } from '../../src/commands/discard.ts'
import { command as resume } from '../../src/commands/resume.ts'
import { captureDocuments } from '../support/changeCapture.ts'
import { testContext } from '../support/context.ts'
import type { Daemon } from '../support/daemon.ts'
import { openForFile } from '../support/openForFile.ts'
import { scrape } from '../support/scrape.ts'
import { until } from '../support/until.ts'
import { setup } from './faults/harness.ts'

/** Triggers capture documents with lines, the query of a mapping file reads them, and a real daemon sends them. */

const harness = openForFile(() => setup())
let folder: string
let daemon: Daemon
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'outboxd-documents-'))
  await cp('mappings', folder, { recursive: true })
  await writeFile(
    join(folder, 'sale.yaml'),
    `type: sale
endpoint: orders
document:
  table: public.sale
  key: id
  condition: h.state = 'confirmed' and exists (select from sale_line l where l.sale = h.id)
source: |
  select s.id, p.uuid as "customerId", jsonb_agg(jsonb_build_object('sku', l.sku, 'price', l.price) order by l.id) as items
  from sale s join party p on p.id = s.party join sale_line l on l.sale = s.id
  where s.id = any($1)
  group by s.id, p.uuid
fields:
  customer_id: { from: customerId, type: uuid, required: true }
  items: { from: items, type: array, required: true }
body:
  customerId: \${customer_id}
  items: \${items}
`,
  )
  const { pool } = harness
  await pool.query(`create table party (id int primary key, uuid uuid); insert into party values (1, '7b0e6c3e-2f5d-4b43-9d5a-0f6f3c1c9a11');
    create table sale (id int primary key, party int references party, state text);
    create table sale_line (id int primary key, sale int not null references sale on delete cascade, sku text, price numeric(12,2))`)
  await captureDocuments(pool, 'sale', { children: ['sale_line(sale)'] })
  daemon = await harness.start({ MAPPINGS_DIR: folder })
})

/** Waits until all rows of a document have ended. @returns state and reason of each row, in order */
async function rowsOf(id: number) {
  const { rows } = await until(
    () =>
      harness.pool.query(`select id::text, status, error from outbox where key = $1 order by outbox.id`, [String(id)]),
    ({ rows }) => rows.every(({ status }) => ['completed', 'discarded', 'rejected', 'failed'].includes(status)),
  )
  return rows as { id: string; status: string; error: string | null }[]
}

/** The bodies of the POSTs that name an article, in order. */
async function postsWith(sku: string): Promise<string[]> {
  const { rows } = (await harness.control('GET', 'ledger?endpoint=order&limit=1000')) as {
    rows: { body: string | null }[]
  }
  return rows.flatMap(({ body }) => (body?.includes(`"${sku}"`) ? [body] : []))
}

test('a header and ten lines from one transaction become one order, and numbers keep their digits', async () => {
  await harness.pool.query(`begin isolation level repeatable read; insert into sale values (1, 1, 'draft');
    insert into sale_line select n, 1, 'A-' || n, 1.10 from generate_series(1, 10) n; update sale set state = 'confirmed' where id = 1; commit`)
  expect(await rowsOf(1)).toMatchObject([{ status: 'completed' }])
  const [body, ...more] = await postsWith('A-1')
  expect(more).toEqual([])
  expect(body).toContain('{"sku":"A-10","price":1.10}')
})

test('by default, drafts and changes that affect nothing sent make no request, and a change after sending is listed', async () => {
  const { pool } = harness
  await pool.query(
    `insert into sale values (2, 1, 'draft'), (3, 1, 'confirmed'); insert into sale_line values (20, 2, 'B-1', 5), (30, 3, 'C-1', 6), (31, 3, 'C-2', 7)`,
  )
  expect(await rowsOf(2)).toMatchObject([
    { status: 'discarded', error: expect.stringContaining('does not meet the condition') },
  ])
  expect(await rowsOf(3)).toMatchObject([{ status: 'completed' }])
  await pool.query(`update sale set party = 1`) // changes no column that is sent
  const [first, second] = await rowsOf(3)
  expect(second).toMatchObject({ status: 'discarded', error: `unchanged since outbox:${first?.id}` })
  // A line moves from a document that was sent to one that is sent now.
  await pool.query(
    `begin; update sale set state = 'confirmed' where id = 2; update sale_line set sale = 2 where id = 31; commit`,
  )
  expect((await rowsOf(2)).at(-1)).toMatchObject({ status: 'completed' })
  expect((await rowsOf(3)).at(-1)).toMatchObject({
    ...{ status: 'rejected', error: `changed after it was sent as outbox:${first?.id}` },
  })
  expect((await postsWith('B-1')).map((body) => body.includes('"C-2"'))).toEqual([true])
  expect(await postsWith('C-1')).toHaveLength(1)
  await until(
    () => scrape(daemon),
    (text) => text.includes('outboxd_changed_after_sent 1\n'),
  )
  await pool.query(`delete from sale where id = 2`)
  expect((await rowsOf(2)).at(-1)).toMatchObject({ status: 'rejected', error: expect.stringContaining('was deleted') })
})

test('a document that waits after E003 and is cancelled meanwhile can be discarded, and is not sent then', async () => {
  const { pool } = harness
  await harness.control('PATCH', 'settings', { down: true, e003RetryAfterSeconds: 60 })
  await pool.query(
    `begin; insert into sale values (4, 1, 'confirmed'); insert into sale_line values (40, 4, 'D-1', 9); commit`,
  )
  const { rows } = await until(
    () =>
      pool.query<{ row: string }>(
        `select outbox_id as row from outboxd.submission where key = '4' and state = 'queued' and answered_unavailable`,
      ),
    ({ rowCount }) => rowCount === 1,
  )
  const before = await postsWith('D-1')
  await pool.query(`update sale set state = 'cancelled' where id = 4`)
  await until(
    () => pool.query(`select from outboxd.submission where key = '4' and changed_after_sent`),
    ({ rowCount }) => rowCount === 1,
  )
  const discarding = testContext(harness.env)
  expect(await discard.action(discarding, [`outbox:${rows[0]?.row}`], { reason: 'cancelled', yes: true })).toBe(0)
  expect((await rowsOf(4)).map(({ status }) => status)).toEqual(['discarded', 'rejected'])
  await harness.control('PATCH', 'settings', { down: false })
  const resuming = testContext(harness.env)
  expect(await resume.action(resuming, { all: true }), resuming.messages()).toBe(0)
  await pool.query(
    `begin; insert into sale values (6, 1, 'confirmed'); insert into sale_line values (60, 6, 'D-2', 9); commit`,
  )
  expect((await rowsOf(6)).at(-1)).toMatchObject({ status: 'completed' })
  expect(await postsWith('D-1')).toHaveLength(before.length)
})

test('with `changes: each`, each version is sent, and takes the place of those that waited', async () => {
  const { pool } = harness
  await daemon.stop()
  await writeFile(join(folder, 'outbox.yaml'), 'changes: each\n')
  daemon = await harness.start({ MAPPINGS_DIR: folder })
  await pool.query(`update sale_line set price = 8 where id = 30`)
  expect((await rowsOf(3)).slice(-2)).toMatchObject([
    { status: 'discarded', error: expect.stringContaining('superseded by outbox:') },
    { status: 'completed', error: null },
  ])
  expect((await postsWith('C-1')).map((body) => body.includes('"price":8.00'))).toEqual([false, true])
})
