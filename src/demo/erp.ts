import type pg from 'pg'

export type RecordKind = 'data' | 'order' | 'unknown-customer' | 'three-decimals'

/** Amounts are decimal text, never doubles. */
export interface SalesOrder {
  kind: RecordKind
  number: string
  type: 'data' | 'order'
  customer: string
  category: string
  amount: string
  /** Added without rounding, so that the sum has three decimals. */
  surcharge: string | null
}

/** Of ten records, six are correct data, two are orders, and one has each mistake. The first four differ in kind. */
const kindOf = (index: number): RecordKind =>
  (['data', 'order', 'unknown-customer', 'three-decimals', 'data', 'data', 'order'] as const)[index % 10] ?? 'data'

/** The smallest and the largest decimal(10,2), and amounts that a double or a careless format would change. */
const firstAmounts = [
  ...['0.01', '12.5', '55', '19.99', '1234567.89'],
  ...['99999999.99', '0.1', '4503599.63', '1.10', '70368744.17'],
]

export function createSalesOrder(index: number): SalesOrder {
  const kind = kindOf(index)
  return {
    kind,
    number: `SO-${String(index + 1).padStart(6, '0')}`,
    type: kind === 'order' ? 'order' : 'data',
    customer: customerOf(kind, String(1000 + (index % 9000))),
    category: `value${(index % 3) + 1}`,
    amount: firstAmounts[index] ?? `${(index * 7919) % 100_000}.${String((index * 37) % 100).padStart(2, '0')}`,
    surcharge: kind === 'three-decimals' ? '0.005' : null,
  }
}

function customerOf(kind: RecordKind, digits: string): string {
  if (kind === 'order') return `6f1d2c3b-4a59-4e68-8f77-00000000${digits}`
  return kind === 'unknown-customer' ? 'UNKNOWN' : `C-${digits}`
}

const schemaSql = `
create table sales_order (
  number     text           primary key,
  type       text           not null check (type in ('data', 'order')),
  customer   text           not null,
  category   text           not null,
  amount     numeric(10, 2) not null,
  surcharge  numeric(10, 3),
  ordered_at timestamptz    not null default now()
);

create function sales_order_to_outbox() returns trigger language plpgsql as $$
declare
  total numeric := coalesce(new.amount + new.surcharge, new.amount);
begin
  insert into outbox (type, key, payload) values (new.type, new.number, case new.type
    when 'order' then jsonb_build_object(
      'customerId', new.customer,
      'items', jsonb_build_array(jsonb_build_object('orderNumber', new.number, 'quantity', 1, 'price', total)))
    else jsonb_build_object(
      'customerId', new.customer, 'orderDate', new.ordered_at, 'amount', total,
      'field1', new.category, 'field2', new.number)
    end);
  return null;
end $$;

create trigger sales_order_to_outbox after insert on sales_order
  for each row execute function sales_order_to_outbox()`

export async function createErpTables(erp: pg.Pool): Promise<void> {
  await erp.query(schemaSql)
}

export async function insertSalesOrder(erp: pg.Pool, order: SalesOrder): Promise<void> {
  const { number, type, customer, category, amount, surcharge } = order
  await erp.query(
    'insert into sales_order (number, type, customer, category, amount, surcharge) values ($1, $2, $3, $4, $5, $6)',
    [number, type, customer, category, amount, surcharge],
  )
}

export async function readTotalByOrderNumber(erp: pg.Pool): Promise<Map<string, string>> {
  const { rows } = await erp.query<{ number: string; amount: string }>(
    'select number, coalesce(amount + surcharge, amount)::text as amount from sales_order order by number',
  )
  return new Map(rows.map(({ number, amount }) => [number, amount]))
}

export interface OutboxRow {
  reference: string | null
  status: string
  transactionId: string | null
  errorCode: string | null
  error: string | null
}

export async function readOutboxRows(erp: pg.Pool): Promise<OutboxRow[]> {
  const { rows } = await erp.query<OutboxRow>(
    `select key as reference, status, transaction_id as "transactionId", error_code as "errorCode", error
     from outbox order by id`,
  )
  return rows
}
