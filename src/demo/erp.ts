import type pg from 'pg'
import type { SalesOrder } from './salesOrder.ts'
import type { OutboxRow } from './verify.ts'

/** What an ERP looks like from outside: a table, and a trigger that writes each new row to the outbox, in one transaction. */
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

/** Creates the ERP's table and trigger in a database that has the outbox. */
export async function createErp(erp: pg.Pool): Promise<void> {
  await erp.query(schemaSql)
}

/** Inserts one sales order, as an ERP does: it knows nothing of the outbox. */
export async function insertSalesOrder(erp: pg.Pool, order: SalesOrder): Promise<void> {
  const { number, type, customer, category, amount, surcharge } = order
  await erp.query(
    'insert into sales_order (number, type, customer, category, amount, surcharge) values ($1, $2, $3, $4, $5, $6)',
    [number, type, customer, category, amount, surcharge],
  )
}

/** The amounts that the ERP has, by order number, as Postgres writes them: text, every digit. */
export async function readAmounts(erp: pg.Pool): Promise<Map<string, string>> {
  const { rows } = await erp.query<{ number: string; amount: string }>(
    'select number, coalesce(amount + surcharge, amount)::text as amount from sales_order order by number',
  )
  return new Map(rows.map(({ number, amount }) => [number, amount]))
}

/** What the outbox says has become of each record. */
export async function readOutbox(erp: pg.Pool): Promise<OutboxRow[]> {
  const { rows } = await erp.query<OutboxRow>(
    `select key as reference, status, transaction_id as "transactionId", error_code as "errorCode", error
     from outbox order by id`,
  )
  return rows
}

/** How many outbox rows have each status. */
export async function countOutbox(erp: pg.Pool): Promise<Map<string, number>> {
  const { rows } = await erp.query<{ status: string; n: number }>(
    'select status, count(*)::int as n from outbox group by status',
  )
  return new Map(rows.map(({ status, n }) => [status, n]))
}
