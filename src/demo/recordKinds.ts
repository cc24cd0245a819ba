import type { State } from '../model.ts'

/** The kinds of records that the demo's ERP writes, two of them wrong on purpose. */
export const recordKinds = ['data', 'order', 'unknown-customer', 'three-decimals'] as const
export type RecordKind = (typeof recordKinds)[number]

/** What should become of a record. */
export interface KindScenario {
  /** For people. */
  label: string
  endsAs: State
  /** The service's code on the outbox row; null where it has none. */
  errorCode: string | null
  /** POSTs that the service reads. */
  requests: 0 | 1
  /** Transactions or orders that the service keeps. */
  kept: 0 | 1
}

export const kindScenarios: Record<RecordKind, KindScenario> = {
  data: { label: 'data records', endsAs: 'completed', errorCode: null, requests: 1, kept: 1 },
  order: { label: 'orders', endsAs: 'completed', errorCode: null, requests: 1, kept: 1 },
  'unknown-customer': { label: 'unknown customer', endsAs: 'rejected', errorCode: 'E001', requests: 1, kept: 0 },
  // The mapping finds it: it costs no request.
  'three-decimals': { label: 'three decimals', endsAs: 'rejected', errorCode: null, requests: 0, kept: 0 },
}

/** Of ten records six are right, two are orders, and of each mistake there is one; the first four are one of each. */
const mix: readonly RecordKind[] = [
  'data',
  'order',
  'unknown-customer',
  'three-decimals',
  'data',
  'data',
  'order',
  'data',
  'data',
  'data',
]

/** @param index counted from 0 */
export function recordKindOf(index: number): RecordKind {
  return mix[index % mix.length] as RecordKind
}
