import { expect, test } from 'vitest'
import { type Arrival, compareDocuments, toUuid, type Version } from '../../../tools/erp/compareDocuments.ts'

/** Checks that the judge of `npm run test:erp` notices each fault. */

const version: Version = {
  sale: 5,
  number: '7',
  date: '2026-11-23',
  customer: 'C1',
  total: '24.6900',
  lines: [{ article: 'A1', description: '1-1', quantity: '2', price: '12.3450' }],
  certain: true,
}
const changed: Version = {
  ...version,
  total: '30.00',
  lines: [{ article: 'A1', description: '1-2', quantity: '3', price: '10' }],
}

const data = ({ number, customer, total, date }: Version): Arrival => ({
  endpoint: 'data',
  body: `{"customerId":"${customer}","data":{"field2":"${number}","customer_id":"${customer}","order_date":"${date}T00:00:00Z","total_amount":${total}}}`,
})
const order = ({ customer, lines }: Version): Arrival => ({
  endpoint: 'orders',
  body: JSON.stringify({
    customerId: toUuid(customer),
    items: lines.map(({ price, ...line }) => ({ ...line, unitPrice: price })),
  }),
})
const both = (of: Version) => [data(of), order(of)]
const compare = (arrivals: readonly Arrival[], versions: readonly Version[] = [], revenue = '24.69') =>
  compareDocuments(versions, [version], arrivals, [{ customer: 'C1', revenue }])

test('each version once at each endpoint is right, in any notation of its numbers', () => {
  expect(compare(both({ ...version, total: '24.69' }))).toEqual([])
  expect(compare([...both(version), ...both(changed)], [changed])).toEqual([])
})

test('a version that is missing or arrived twice is reported', () => {
  expect(compare([data(version)])).toEqual([expect.stringMatching(/^sale 7 .*arrived 0 times at orders/)])
  expect(compare([...both(version), order(version)])).toEqual([expect.stringMatching(/arrived 2 times at orders/)])
})

test('a version that the daemon may have missed may be missing, but must not arrive twice', () => {
  const fleeting = { ...changed, certain: false }
  expect(compare(both(version), [fleeting])).toEqual([])
  expect(compare([...both(version), ...both(changed)], [fleeting])).toEqual([])
  expect(compare([...both(version), ...both(changed), data(changed)], [fleeting])).toHaveLength(1)
})

test('an arrival that matches no confirmed version is reported: a wrong quantity, a cent too much', () => {
  const line = { ...version.lines[0], quantity: '20' } as Version['lines'][number]
  expect(compare([...both(version), order({ ...version, lines: [line] })])).toEqual([
    expect.stringMatching(/^nobody confirmed what arrived at orders: .*"20"/),
  ])
  expect(compare([...both(version), data({ ...version, total: '24.70' })])).toEqual([
    expect.stringMatching(/^nobody confirmed what arrived at data: .*"24\.7"/),
  ])
})

test('a difference between the revenue in the ERP’s report and what arrived is reported in cents', () => {
  expect(compare(both(version), [], '24.70')).toEqual(["C1: 2469 cents arrived, and Tryton's report says 2470"])
})
