import { type RecordKind, recordKindOf } from './recordKinds.ts'

/** A row of the ERP's table `sales_order`, as it is inserted. Amounts are decimal text: no number here is ever a double. */
export interface SalesOrder {
  kind: RecordKind
  number: string
  /** Which of the service's two halves it goes to, the outbox row's type. */
  type: 'data' | 'order'
  customer: string
  category: string
  amount: string
  /** Added to the amount by the ERP, and not rounded: that is how three decimals come about. */
  surcharge: string | null
}

/**
 * The smallest, the largest that decimal(10,2) holds, and those that a double or a careless format would change. The third
 * and the fourth record are wrong on purpose (recordKinds.ts): the awkward ones are for records that travel all the way.
 */
const firstAmounts = [
  '0.01',
  '12.5',
  '55',
  '19.99',
  '1234567.89',
  '99999999.99',
  '0.1',
  '4503599.63',
  '1.10',
  '70368744.17',
]

/** The record that the ERP writes as its `index`th, counted from 0; the same in every run. */
export function salesOrder(index: number): SalesOrder {
  const kind = recordKindOf(index)
  const type = kind === 'order' ? 'order' : 'data'
  return {
    kind,
    number: `SO-${String(index + 1).padStart(6, '0')}`,
    type,
    customer: customerOf(kind, index),
    category: `value${(index % 3) + 1}`,
    amount: firstAmounts[index] ?? `${(index * 7919) % 100_000}.${String((index * 37) % 100).padStart(2, '0')}`,
    surcharge: kind === 'three-decimals' ? '0.005' : null,
  }
}

function customerOf(kind: RecordKind, index: number): string {
  const digits = String(1000 + (index % 9000))
  switch (kind) {
    case 'order':
      return `6f1d2c3b-4a59-4e68-8f77-00000000${digits}`
    case 'unknown-customer':
      return 'UNKNOWN'
    case 'data':
    case 'three-decimals':
      return `C-${digits}`
    default:
      return kind satisfies never
  }
}
