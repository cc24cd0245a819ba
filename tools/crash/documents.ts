import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'
import { captureDocuments } from '../../test/support/changeCapture.ts'
import type { ProgramCopy } from './programCopy.ts'
import type { SeededRandom } from './seededRandom.ts'

/** Sales with lines in tables of the ERP. Change capture captures them, and a query reads them. */

const mappingFile = `type: sale
endpoint: orders
document:
  table: public.sale
  key: id
  condition: h.is_confirmed and exists (select from sale_line l where l.sale = h.id)
source: |
  select s.id, '7b0e6c3e-2f5d-4b43-9d5a-0f6f3c1c9a11' as "customerId",
    jsonb_build_array(jsonb_build_object('sku', s.marker, 'price', sum(l.price))) ||
      jsonb_agg(jsonb_build_object('sku', 'line ' || l.id, 'price', l.price) order by l.id) as items
  from sale s join sale_line l on l.sale = s.id
  where s.id = any($1)
  group by s.id
fields:
  customer_id: { from: customerId, type: uuid, required: true }
  items: { from: items, type: array, required: true }
body:
  customerId: \${customer_id}
  items: \${items}
`

/** Adds the mapping file of sales to the daemons' program, and lets them send each version. */
export async function addDocumentMapping(program: ProgramCopy): Promise<void> {
  await writeFile(join(program.dir, 'mappings', 'sale.yaml'), mappingFile)
  await writeFile(join(program.dir, 'mappings', 'outbox.yaml'), 'changes: each\n')
}

/**
 * Creates the tables and the trigger. For each sale that a transaction writes, it adds a row to
 * `sale_version`: what must be sent for the sale from then on. `marker` is a text that only this version contains.
 */
export async function installDocuments(erp: pg.Pool): Promise<void> {
  await erp.query(`
    create table sale (id int generated always as identity primary key, marker text not null, is_confirmed boolean not null, note text);
    create table sale_line (id int generated always as identity primary key, sale int not null references sale on delete cascade, price numeric(9, 2) not null);
    create index on sale_line (sale);
    create table sale_version (id bigint generated always as identity primary key, sale int not null, marker text, total numeric, is_sent boolean not null)`)
  await captureDocuments(erp, 'sale', { children: ['sale_line(sale)'] })
}

/** Number of sales that a transaction may change. Of more sales, each would change too rarely. */
const recentSales = 25
/** Larger than the markers of records. */
const firstMarker = 1_000_000

/** Makes a function that writes one transaction of the ERP. `sale_version` shows whether it committed. */
export function createSaleWriter(url: string): (random: SeededRandom) => Promise<void> {
  let n = firstMarker
  const sales: number[] = []
  return async (random) => {
    const client = new pg.Client(url)
    client.on('error', () => {}) // the server is restarted now and then
    try {
      await client.connect()
      await client.query(
        `begin isolation level ${random.pick(['read committed', 'repeatable read', 'serializable'])}; set local statement_timeout = '10s'`,
      )
      const written = await write(client, random, sales.slice(-recentSales), () => `m${++n}.`)
      await client.query(
        `insert into sale_version (sale, marker, total, is_sent)
         select written, s.marker, (select sum(l.price) from sale_line l where l.sale = written), coalesce(s.is_confirmed, false)
         from unnest($1::int[]) written left join sale s on s.id = written`,
        [written],
      )
      await client.query('commit')
      for (const id of written) if (!sales.includes(id)) sales.push(id)
    } catch {
      // The transaction was rolled back or committed. The table says which.
    } finally {
      await client.end().catch(() => {})
    }
  }
}

/** Writes a new sale, or changes one or two. @returns their ids, each of which gets one outbox row */
async function write(
  client: pg.Client,
  random: SeededRandom,
  sales: number[],
  marker: () => string,
): Promise<number[]> {
  const act =
    sales.length < 3
      ? 'create'
      : random.pick(['create', 'change', 'change', 'change', 'touch', 'move', 'delete'] as const)
  if (act === 'create') {
    const { rows } = await client.query<{ id: number }>(
      'insert into sale (marker, is_confirmed) values ($1, $2) returning id',
      [marker(), random.chance(0.7)],
    )
    const id = rows[0]?.id ?? 0
    for (let line = random.whole(1, 8); line > 0; line--) await addLine(client, random, id)
    return [id]
  }
  const [one = 0, other = 0] = [random.pick(sales), random.pick(sales)]
  const ids = [...new Set(act === 'move' ? [one, other] : [one])].sort((a, b) => a - b)
  // The lock makes versions of a sale commit in their order.
  const { rowCount } = await client.query('select from sale where id = any($1) order by id for update', [ids])
  if (rowCount !== ids.length) throw new Error('deleted meanwhile')
  if (act === 'delete') {
    await client.query('delete from sale where id = $1', [one])
  } else if (act === 'touch') {
    await client.query('update sale set note = clock_timestamp()::text where id = $1', [one])
    await client.query('update sale_line set price = price where sale = $1', [one])
  } else {
    for (const id of ids)
      await client.query('update sale set marker = $2, is_confirmed = $3 where id = $1', [
        id,
        marker(),
        random.chance(0.85),
      ])
    if (act === 'move')
      await client.query(
        `update sale_line set sale = $2 where id = (select max(id) from sale_line where sale = $1 having count(*) > 1)`,
        [one, other],
      )
    else await changeLines(client, random, one)
  }
  return ids
}

async function changeLines(client: pg.Client, random: SeededRandom, id: number): Promise<void> {
  await addLine(client, random, id)
  await client.query(
    'update sale_line set price = price + 0.01 where id = (select min(id) from sale_line where sale = $1)',
    [id],
  )
  await client.query('savepoint a')
  await client.query('delete from sale_line where sale = $1', [id])
  await client.query('rollback to a')
  if (random.chance(0.5))
    await client.query(
      'delete from sale_line where id = (select max(id) from sale_line where sale = $1 having count(*) > 2)',
      [id],
    )
}

function addLine(client: pg.Client, random: SeededRandom, id: number): Promise<unknown> {
  return client.query('insert into sale_line (sale, price) values ($1, $2)', [
    id,
    `${random.whole(0, 999)}.${random.whole(10, 99)}`,
  ])
}
