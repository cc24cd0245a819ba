import { mkdtemp, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { command as describe } from '../../src/commands/describe.ts'
import { readLedgerSnapshot } from '../../src/ledger/snapshot.ts'
import { testContext } from '../support/context.ts'
import { until } from '../support/until.ts'
import { setup } from './faults/harness.ts'

/** Documents of three invented ERPs, from what `outboxd describe --capture` proposes to the requests of a real daemon. */

/** Document `n` has two lines, with the articles `n-1` and `n-2`. */
interface Erp {
  ddl: string
  table: string
  children: string[]
  /** What a user fills in. */
  condition: string
  items: string
  customer: string
  key(n: number): string
  create(n: number, prices: readonly string[]): string
  /** Sets the price of a line. */
  change(n: number, line: 1 | 2, price: string): string
  cancel(n: number): string
  remove(n: number): string
  copyLines(n: number, prices: readonly string[]): string
  truncateLines: string
}

const uuid = (n: number) => `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`
const customer = `'7b0e6c3e-2f5d-4b43-9d5a-0f6f3c1c9a11'`
const copy = (into: string, rows: readonly (readonly (string | number)[])[]) =>
  `copy ${into} from program $$printf '${rows.map((row) => `${row.join('\\t')}\\n`).join('')}'$$`
const german = (price: string) =>
  price
    .replace(/\B(?=(\d{3})+\.)/g, ' ')
    .replace('.', ',')
    .replaceAll(' ', '.')

const erps: Readonly<Record<string, Erp>> = {
  'a hotel: uuids, and bookings that are only marked as deleted': {
    ddl: `create table guest (id uuid primary key); insert into guest values (${customer});
      create table booking (id uuid primary key, guest uuid not null references guest, state text not null, deleted_at timestamptz);
      create table booking_night (booking uuid references booking on delete cascade, night int, room text, price numeric(12,2), primary key (booking, night))`,
    table: 'booking',
    children: ['booking_night(booking)'],
    condition: `h.state = 'confirmed' and h.deleted_at is null and exists (select from public.booking_night l where l.booking = h.id)`,
    items: `(select jsonb_agg(jsonb_build_object('sku', l.room, 'price', l.price) order by l.booking, l.night) from public.booking_night l where l.booking = h.id)`,
    customer: 'guest',
    key: uuid,
    create: (n, prices) => `insert into booking values ('${uuid(n)}', ${customer}, 'confirmed');
      ${prices.map((price, i) => `insert into booking_night values ('${uuid(n)}', ${i + 1}, '${n}-${i + 1}', ${price})`).join(';')}`,
    change: (n, line, price) =>
      `update booking_night set price = ${price} where booking = '${uuid(n)}' and night = ${line}`,
    cancel: (n) => `update booking set deleted_at = now() where id = '${uuid(n)}'`,
    remove: (n) => `delete from booking where id = '${uuid(n)}'`,
    copyLines: (n, prices) =>
      copy(
        'booking_night',
        prices.map((price, i) => [uuid(n), i + 1, `${n}-${i + 1}`, price]),
      ),
    truncateLines: 'truncate booking_night',
  },
  'a wholesaler: keys of tenant and number, and discounts below the lines': {
    ddl: `create table "Order" (tenant int, "No" char(6), customer uuid, state int not null, primary key (tenant, "No"));
      create table order_line (id bigint generated always as identity primary key, tenant int, "No" char(6), pos int, sku text, unit_price numeric(14,4),
        foreign key (tenant, "No") references "Order" on delete cascade);
      create table line_discount (line bigint references order_line on delete cascade, amount numeric(14,4))`,
    table: 'Order',
    children: ['order_line(tenant, "No")', 'line_discount(line)'],
    condition: `h.state < 9 and exists (select from public.order_line l where l.tenant = h.tenant and l."No" = h."No")`,
    items: `(select jsonb_agg(jsonb_build_object('sku', l.sku, 'price',
      (l.unit_price - coalesce((select sum(d.amount) from public.line_discount d where d.line = l.id), 0))::numeric(14,2)) order by l.pos)
      from public.order_line l where l.tenant = h.tenant and l."No" = h."No")`,
    customer: 'customer',
    key: (n) => `7/A-${n}`,
    create: (n, prices) => `insert into "Order" values (7, 'A-${n}', ${customer}, 1);
      ${prices.map((price, i) => `insert into order_line (tenant, "No", pos, sku, unit_price) values (7, 'A-${n}', ${i + 1}, '${n}-${i + 1}', ${price} + 1)`).join(';')};
      insert into line_discount select id, 1 from order_line where sku like '${n}-_'`,
    change: (n, line, price) =>
      `update line_discount d set amount = l.unit_price - ${price} from order_line l where l.id = d.line and l.sku = '${n}-${line}'`,
    cancel: (n) => `update "Order" set state = 9 where "No" = 'A-${n}'`,
    remove: (n) => `delete from "Order" where "No" = 'A-${n}'`,
    copyLines: (n, prices) =>
      copy(
        'order_line (tenant, "No", pos, sku, unit_price)',
        prices.map((price, i) => [7, `A-${n}`, i + 1, `${n}-${i + 1}`, price]),
      ),
    truncateLines: 'truncate order_line cascade',
  },
  'a German one: numbers as keys, umlauts, and amounts as texts': {
    ddl: `create table "Kunde" (nr text primary key, "Schlüssel" text); insert into "Kunde" values ('K1', ${customer});
      create table rechnung (nr text primary key, kunde text references "Kunde", storniert boolean not null default false);
      create table "Rechnungsposition" ("Rechnung" text references rechnung on delete cascade, zeile int, artikel text, "Betrag" varchar(20))`,
    table: 'rechnung',
    children: ['"Rechnungsposition"("Rechnung")'],
    condition: `not h.storniert and exists (select from public."Rechnungsposition" l where l."Rechnung" = h.nr)`,
    items: `(select "Schlüssel" from public."Kunde" k where k.nr = h.kunde) as "Kundenschlüssel",
    (select jsonb_agg(jsonb_build_object('sku', l.artikel, 'price', replace(replace(l."Betrag", '.', ''), ',', '.')::numeric) order by l.zeile)
      from public."Rechnungsposition" l where l."Rechnung" = h.nr)`,
    customer: 'Kundenschlüssel',
    key: (n) => `RE/${n}`,
    create: (n, prices) => `insert into rechnung values ('RE/${n}', 'K1');
      ${prices.map((price, i) => `insert into "Rechnungsposition" values ('RE/${n}', ${i + 1}, '${n}-${i + 1}', '${german(price)}')`).join(';')}`,
    change: (n, line, price) =>
      `update "Rechnungsposition" set "Betrag" = '${german(price)}' where "Rechnung" = 'RE/${n}' and zeile = ${line}`,
    cancel: (n) => `update rechnung set storniert = true where nr = 'RE/${n}'`,
    remove: (n) => `delete from rechnung where nr = 'RE/${n}'`,
    copyLines: (n, prices) =>
      copy(
        '"Rechnungsposition"',
        prices.map((price, i) => [`RE/${n}`, i + 1, `${n}-${i + 1}`, german(price)]),
      ),
    truncateLines: 'truncate "Rechnungsposition"',
  },
}

const prices = ['1.10', '20.00']

test.each(Object.entries(erps))('%s', async (_, erp) => {
  await using harness = await setup()
  const { pool } = harness
  await pool.query(erp.ddl)
  const folder = await mkdtemp(join(tmpdir(), 'outboxd-erp-'))
  const context = testContext({ DATABASE_URL: harness.env.DATABASE_URL, MAPPINGS_DIR: folder })
  const { table, children: child } = erp
  expect(
    await describe.action(context, table, { capture: true, child, endpoint: 'orders', type: 'order', write: true }),
  ).toBe(0)
  const file = join(folder, 'order.yaml')
  const filledIn = (await readFile(file, 'utf8'))
    .replace(/condition: FILL_IN.*/, () => `condition: ${JSON.stringify(erp.condition)}`)
    .replace(/FILL_IN as items .*/, () => `${erp.items} as items`)
    .replace('from: FILL_IN', () => `from: ${erp.customer}`)
  await writeFile(file, filledIn)
  await pool.query(`begin; ${await readFile(join(folder, 'order.capture.sql'), 'utf8')} commit`)
  await pool.query(`insert into outboxd.pause (reason, detail) values ('operator', 'test')`)
  await harness.start({ MAPPINGS_DIR: folder })

  // Before anything is sent.
  for (const statements of [
    ...[1, 2, 3, 4].map((n) => erp.create(n, prices)),
    `begin; ${erp.create(5, prices)}; rollback`,
    `begin; ${erp.create(6, prices)}; savepoint a; ${erp.change(6, 1, '999')}; rollback to a; commit`,
    ...[7, 8].map((n) => erp.create(n, n === 7 ? prices : [])),
    ...[erp.change(2, 1, '999'), erp.change(2, 1, '12345.67'), erp.cancel(3), erp.remove(4)],
    erp.copyLines(8, ['0.30', '1234567.89']),
  ])
    await pool.query(statements)
  const first = await pool.connect()
  await first.query(`begin; ${erp.change(7, 1, '3.33')}`)
  await pool.query(erp.change(7, 2, '4.44'))
  await first.query('commit')
  first.release()

  /** Waits until all rows have ended. @returns state and error of each document's last row */
  async function ended() {
    const { rows } = await until(
      () =>
        pool.query(`select distinct on (key) key, status, error,
          (select count(*)::int from outbox where status not in ('completed', 'discarded', 'rejected')) as open
          from outbox order by key, id desc`),
      ({ rows }) => rows.every(({ open }) => open === 0),
    )
    return new Map<number, string>(
      [1, 2, 3, 4, 5, 6, 7, 8].flatMap((n) => {
        const row = rows.find(({ key }) => key === erp.key(n))
        return row === undefined ? [] : [[n, `${row.status}: ${row.error ?? ''}`]]
      }),
    )
  }
  /** The prices in each request, by document. */
  async function sent() {
    const { rows } = (await harness.control('GET', 'ledger?endpoint=order&limit=1000')) as {
      rows: { body: string | null }[]
    }
    const requests = rows.map(({ body }) => [...(body ?? '').matchAll(/"sku":"(\d)-\d","price":([\d.]+)/g)])
    return requests.map((lines) => [Number(lines[0]?.[1]), ...lines.map(([, , price]) => price)]).toSorted()
  }
  await until(
    () => pool.query(`select from outbox where status = 'new'`),
    ({ rowCount }) => rowCount === 0,
  )
  await pool.query('delete from outboxd.pause')
  const gone = expect.stringMatching(/^discarded: .* was deleted$/)
  const unmet = expect.stringMatching(/^discarded: .* does not meet the condition$/)
  const before = await ended()
  expect([before.get(3), before.get(4), before.get(5)]).toEqual([unmet, gone, undefined])
  const all = [
    [1, '1.10', '20.00'],
    [2, '12345.67', '20.00'],
    [6, '1.10', '20.00'],
    [7, '3.33', '4.44'],
    [8, '0.30', '1234567.89'],
  ]
  expect(await sent()).toEqual(all)

  // After all was sent.
  for (const statements of [erp.change(1, 1, '5'), erp.cancel(2), erp.remove(6)]) await pool.query(statements)
  const listed = (why: string) =>
    expect.stringMatching(new RegExp(String.raw`^rejected: changed after it was sent as outbox:\d+${why}$`))
  const isUnmet = listed(': .* does not meet the condition')
  const after = await ended()
  expect([after.get(1), after.get(2), after.get(6)]).toEqual([listed(''), isUnmet, listed(': .* was deleted')])
  await pool.query(erp.truncateLines)
  const truncated = await ended()
  expect([1, 2, 7, 8].map((n) => truncated.get(n))).toEqual([
    isUnmet,
    expect.stringMatching('unchanged since'),
    isUnmet,
    isUnmet,
  ])
  expect(await sent()).toEqual(all)
  expect((await readLedgerSnapshot(pool)).changedAfterSent).toBe(5)
})
