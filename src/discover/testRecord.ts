import type { Parts } from './question.ts'

/** Where the client's fields of docs/interface.md, 2.5, stand in a request: the first is how mappings/data.yaml sends them. */
export const shapes = ['in data', 'in data, the amount as text', 'nowhere', 'beside data'] as const
export type RecordShape = (typeof shapes)[number]

export interface RecordChange {
  customerId?: string
  /** Fields of data in place of its own, or beside them; undefined takes one away. */
  data?: Readonly<Record<string, unknown>>
  /** Fields beside data. */
  beside?: Readonly<Record<string, unknown>>
}

/** What tells one test record from another, and from the client's own, to people at the service. */
export const noteOf = ({ run }: Pick<Parts, 'run'>, what: string): string => `outboxd discover ${run}: ${what}`

/** The body of a test record (docs/interface.md, 2.2) as JSON text. */
export function testRecord(shape: RecordShape, customer: string, note: string, change: RecordChange = {}): string {
  const customerId = change.customerId ?? customer
  const mapped = mappedFields(shape, customerId)
  return JSON.stringify({
    customerId,
    data: { field1: 'value1', field2: note, ...(shape.startsWith('in data') ? mapped : {}), ...change.data },
    ...(shape === 'beside data' ? mapped : {}),
    ...change.beside,
  })
}

function mappedFields(shape: RecordShape, customerId: string): Record<string, unknown> {
  const digits = '12.30'
  return {
    customer_id: customerId,
    order_date: '2026-01-02T03:04:05Z',
    total_amount: shape === 'in data, the amount as text' ? digits : JSON.rawJSON(digits),
  }
}
