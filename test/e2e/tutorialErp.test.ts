import pg from 'pg'
import { expect, test } from 'vitest'
import { erps } from '../support/erpDdl.ts'
import { hasPsql, readSteps, typeSteps } from '../support/typePage.ts'

const steps = await readSteps('start/tutorial-erp.md')

test('at most ten commands lead from describe to the first order', () => {
  const upToOrder = steps.slice(0, steps.findIndex(({ typed }) => typed.includes('join outbox o')) + 1)
  const commands = upToOrder.flatMap(({ typed }) => typed.match(/^(?!export |cat )[a-z]+/gm) ?? [])
  expect(commands[0]).toBe('outboxd')
  expect(commands.length).toBeLessThanOrEqual(10)
})

test.skipIf(!hasPsql)('each step of the tutorial beside an ERP prints the output that the page shows', () =>
  typeSteps(steps, createTryton),
)

/** Tryton's tables with two sales: a quotation, and one that was done before outboxd came. */
async function createTryton(url: string): Promise<void> {
  const tryton = erps.find(({ table }) => table === 'sale_sale')
  if (tryton === undefined) throw new Error('no ERP has the table sale_sale')
  const client = new pg.Client(url)
  await client.connect()
  try {
    await client.query(tryton.ddl)
    await client.query(`update sale_sale set state = 'quotation';
      insert into sale_sale (company, currency, invoice_method, invoice_state, number, party, sale_date, shipment_method,
        shipment_state, state, total_amount_cache) values (1, 1, 'order', 'none', '6', 1, '2026-11-19', 'order', 'none', 'done', 5);
      insert into sale_line (sale, sequence, type, product, quantity, unit, unit_price, description)
        values (2, 1, 'line', 1, 1, 1, 5, 'before')`)
  } finally {
    await client.end()
  }
}
