import type { Parts } from './question.ts'

/** Where the client's fields of docs/interface.md, 2.5, stand in a request, and how the amount is written. */
export interface RecordShape {
  place: 'data' | 'beside' | 'nowhere'
  amount: 'number' | 'text'
}

/** In the order in which they are tried: the first is how mappings/data.yaml sends them. */
export const shapes: readonly RecordShape[] = [
  { place: 'data', amount: 'number' },
  { place: 'data', amount: 'text' },
  { place: 'nowhere', amount: 'number' },
  { place: 'beside', amount: 'number' },
  { place: 'beside', amount: 'text' },
]

export interface RecordChange {
  customerId?: string
  /** The client's fields in place of those of a usual record, wherever they stand. */
  mapped?: Readonly<Record<string, unknown>>
  /** Fields of data in place of its own, or beside them. */
  data?: Readonly<Record<string, unknown>>
  /** Fields beside data. */
  beside?: Readonly<Record<string, unknown>>
}

/** What tells one test record from another, and from the client's own, to people at the service. */
export const noteOf = ({ run }: Pick<Parts, 'run'>, what: string): string => `outboxd discover ${run}: ${what}`

/** The body of a test record (docs/interface.md, 2.2) as JSON text. */
export function testRecord(shape: RecordShape, customer: string, note: string, change: RecordChange = {}): string {
  const customerId = change.customerId ?? customer
  const mapped = { ...mappedFields(shape, customerId), ...change.mapped }
  const standing = (place: RecordShape['place']) => (shape.place === place ? mapped : {})
  return JSON.stringify({
    customerId,
    data: { field1: 'value1', field2: note, ...standing('data'), ...change.data },
    ...standing('beside'),
    ...change.beside,
  })
}

function mappedFields({ amount }: RecordShape, customerId: string): Record<string, unknown> {
  return { customer_id: customerId, order_date: '2026-01-02T03:04:05Z', total_amount: amountAs(amount, '12.30') }
}

/** An amount with its digits. */
export const amountAs = (form: RecordShape['amount'], digits: string): unknown =>
  form === 'text' ? digits : JSON.rawJSON(digits)
