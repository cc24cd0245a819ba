import type { OutboxRow, RecordKind } from './erp.ts'

export interface Evidence {
  written: readonly WrittenRecord[]
  arrivals: readonly LoggedRequest[]
  outbox: readonly OutboxRow[]
}

export interface WrittenRecord {
  reference: string
  kind: RecordKind
  /** Decimal text. */
  amount: string
}

export interface LoggedRequest {
  endpoint: string
  body: string | null
  /** Null if the connection was dropped. */
  status: number | null
  transactionId: string | null
  orderId: string | null
}

export interface RecordCheck {
  kinds: { kind: RecordKind; written: number; right: number }[]
  problems: string[]
}

/** The service must read `requests` requests and keep `kept` records. */
const expected: Record<RecordKind, { label: string; ending: string; requests: number; kept: number }> = {
  data: { label: 'data records', ending: 'completed', requests: 1, kept: 1 },
  order: { label: 'orders', ending: 'completed', requests: 1, kept: 1 },
  'unknown-customer': { label: 'unknown customer', ending: 'rejected (E001)', requests: 1, kept: 0 },
  'three-decimals': { label: 'three decimals', ending: 'rejected', requests: 0, kept: 0 },
}
const kinds = Object.keys(expected) as RecordKind[]

export function checkRecords({ written, arrivals, outbox }: Evidence): RecordCheck {
  const arrivalsOf = Map.groupBy(arrivals.map(readArrival), ({ reference }) => reference)
  const rowsOf = Map.groupBy(outbox, ({ reference }) => reference)
  const checked = written.map(({ reference, kind, amount }) => {
    const { ending, requests, kept } = expected[kind]
    const wanted = describe(ending, requests, kept, requests === 0 ? [] : [amount])
    const found = describeFound(arrivalsOf.get(reference) ?? [], rowsOf.get(reference) ?? [])
    return { reference, kind, wanted, found, isRight: wanted === found }
  })
  const known = new Set<string | null>(written.map(({ reference }) => reference))
  const wrong = checked.filter(({ isRight }) => !isRight)
  const unknown = [...arrivalsOf.keys(), ...rowsOf.keys()].filter((reference) => !known.has(reference))
  return {
    kinds: kinds
      .map((kind) => checked.filter((each) => each.kind === kind))
      .flatMap((all) => all.slice(0, 1).map(({ kind }) => ({ kind, written: all.length, right: countRight(all) }))),
    problems: [
      ...wrong.map(({ reference, wanted, found }) => `${reference} should be ${wanted}, but is ${found}`),
      ...unknown.map(
        (reference) => `${reference ?? 'a request without a readable reference'} arrived, but the ERP never wrote it`,
      ),
    ],
  }
}

export function formatRecordCheck({ kinds }: RecordCheck): string {
  const lines = kinds.map(({ kind, written, right }) => {
    const { label, ending, requests, kept } = expected[kind]
    const amounts = requests === 0 ? '' : ', its amount equal to the cent'
    return `${`${right} of ${written}`.padStart(12)}  ${label.padEnd(16)}  ${describe(ending, requests, kept, [])}${amounts}`
  })
  return `${lines.join('\n')}\n`
}

interface Arrival {
  reference: string | null
  amount: string | null
  /** False for 401 and 429, which the service answers without reading the request. */
  wasRead: boolean
  keptAs: string | null
}

function describeFound(arrivals: readonly Arrival[], rows: readonly OutboxRow[]): string {
  const read = arrivals.filter(({ wasRead }) => wasRead)
  const kept = arrivals.flatMap(({ keptAs }) => keptAs ?? [])
  const amounts = read.map(({ amount }) => amount ?? 'nothing')
  const ending = rows.map(endingOf).join(' and ') || 'not in the outbox'
  const isNamed = rows.every(
    ({ status, transactionId }) => status !== 'completed' || kept.includes(transactionId ?? ''),
  )
  return `${describe(ending, read.length, kept.length, amounts)}${isNamed ? '' : '; the outbox names another transaction'}`
}

function endingOf({ status, errorCode, error }: OutboxRow): string {
  const why = status === 'rejected' && !error ? ' without a reason' : ''
  return `${status}${errorCode === null ? '' : ` (${errorCode})`}${why}`
}

/** A record is correct if its expected and its found result have the same text. */
function describe(ending: string, requests: number, kept: number, amounts: readonly string[]): string {
  const sum = amounts.map((amount) => ` ${withCents(amount)}`).join('')
  return `${ending}, ${times('sent', requests)}, ${times('kept by the service', kept)}${sum && `, amount${sum}`}`
}

/** Never uses a double. */
function withCents(amount: string): string {
  const [, whole, decimals = ''] = /^(-?\d+)(?:\.(\d{1,2}))?$/.exec(amount) ?? []
  return whole === undefined ? amount : `${BigInt(whole)}.${decimals.padEnd(2, '0')}`
}

function readArrival({ endpoint, body, status, transactionId, orderId }: LoggedRequest): Arrival {
  const json = parseDigits(body)
  const item = endpoint === 'order' ? at(at(json, 'items'), '0') : at(json, 'data')
  const [reference, amount] = endpoint === 'order' ? ['orderNumber', 'price'] : ['field2', 'total_amount']
  return {
    reference: textAt(item, reference),
    amount: textAt(item, amount),
    wasRead: status !== 401 && status !== 429,
    keptAs: transactionId ?? orderId,
  }
}

/** Numbers keep their digits, because a double could lose the last cent. */
function parseDigits(body: string | null): unknown {
  try {
    return JSON.parse(body ?? '', (_, value, { source }) => (typeof value === 'number' ? source : value))
  } catch {
    return null
  }
}

function at(value: unknown, key: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[key] : undefined
}

function textAt(value: unknown, key: string): string | null {
  const member = at(value, key)
  return typeof member === 'string' ? member : null
}

function countRight(checked: readonly { isRight: boolean }[]): number {
  return checked.filter(({ isRight }) => isRight).length
}

function times(what: string, count: number): string {
  return [`never ${what}`, `${what} once`, `${what} twice`][count] ?? `${what} ${count} times`
}
