import type pg from 'pg'
import type { SeededRandom } from './seededRandom.ts'

/** The outcome that a record must have if it is not uncertain. */
type Outcome =
  | 'completed'
  | 'unmappable'
  | 'unreadable'
  | 'unknown-customer'
  | 'fails-e001'
  | 'fails-e003'
  | 'fails-long'

/** A record as the ERP wrote it, and the outcome that it must have. */
export interface Written {
  /** Unique text in the payload, which identifies the record in the service's log. */
  marker: string
  outcome: Outcome
  /** The amount as it must arrive. */
  amount: string | null
}

interface Row extends Written {
  type: string
  key: string | null
  payload: string
}

const outcomes: readonly [Outcome, number][] = [
  ['completed', 0.83],
  ['unmappable', 0.04],
  ['unreadable', 0.02],
  ['unknown-customer', 0.03],
  ['fails-e001', 0.04],
  ['fails-e003', 0.02],
  ['fails-long', 0.02],
]
const keys = 40

/** Returns a function that makes records with the markers 1, 2, and so on. */
export function createRecordMaker(random: SeededRandom): () => Row {
  let n = 0
  return () => {
    const marker = `m${++n}.`
    const key = random.chance(0.35) ? `key-${random.whole(1, keys)}` : null
    return random.chance(0.25) ? order(random, marker, key) : data(random, marker, key)
  }
}

function data(random: SeededRandom, marker: string, key: string | null): Row {
  const outcome = drawOutcome(random)
  if (outcome === 'unreadable') return unreadable(random, marker, key)
  const cents = random.whole(1, 999_999_999)
  const digits = String(cents).padStart(3, '0')
  const amount = `${digits.slice(0, -2)}.${digits.slice(-2)}`
  const code = { 'fails-e001': 'E001', 'fails-e003': 'E003', 'fails-long': longCode(random) }[outcome as string]
  const prefix = code ? `fail:${code} ` : ''
  const customer = outcome === 'unknown-customer' ? 'UNKNOWN1' : 'C100'
  const asWritten = outcome === 'unmappable' ? `${amount}5` : random.pick([amount, `"${amount}"`, `${amount}00`])
  const payload = `{"customerId":"${customer}","orderDate":"2026-11-21T10:00:00+01:00","amount":${asWritten},"field2":"${prefix}${marker}"}`
  // 12.3400 has more than two decimals, but the others are zeros, so it must arrive as 12.34.
  return { marker, outcome, amount, type: 'data', key, payload }
}

/** A code that is too long for a btree index: 3,000 characters that cannot be compressed. */
function longCode(random: SeededRandom): string {
  return `X${incompressible(random)}`.slice(0, 3_000)
}

function incompressible(random: SeededRandom): string {
  return Array.from({ length: 700 }, () => random.float().toString(36).slice(2)).join('')
}

/** A row that no ledger can store unchanged. It must be rejected and must not delay other rows. */
function unreadable(random: SeededRandom, marker: string, key: string | null): Row {
  const payload = (more: string) => `{"field2":"${marker}"${more}}`
  const shared = { marker, outcome: 'unreadable' as const, amount: null, type: 'data' }
  return random.chance(0.5)
    ? { ...shared, key: incompressible(random), payload: payload('') }
    : { ...shared, key, payload: payload(`,"note":"${'x'.repeat(1_100_000)}"`) }
}

function order(random: SeededRandom, marker: string, key: string | null): Row {
  const price = `${random.whole(0, 999)}.${random.whole(10, 99)}0`
  const customerId = '7b0e6c3e-2f5d-4b43-9d5a-0f6f3c1c9a11'
  const type = random.chance(0.03) ? 'unheard-of' : 'order'
  const payload = `{"customerId":"${customerId}","items":[{"sku":"${marker}","price":${price}}]}`
  return { marker, outcome: type === 'order' ? 'completed' : 'unmappable', amount: price, type, key, payload }
}

function drawOutcome(random: SeededRandom): Outcome {
  let left = random.float()
  for (const [outcome, share] of outcomes) {
    left -= share
    if (left < 0) return outcome
  }
  return 'completed'
}

/** Writes rows in one transaction, as the ERP does. After a lost connection, the table shows whether it committed. */
export async function insertRecords(outbox: pg.Pool, rows: readonly Row[]): Promise<void> {
  await outbox.query(
    `insert into outbox (type, key, payload)
     select type, key, payload::jsonb from unnest($1::text[], $2::text[], $3::text[]) with ordinality
       r(type, key, payload, ord) order by ord`,
    [rows.map(({ type }) => type), rows.map(({ key }) => key), rows.map(({ payload }) => payload)],
  )
}
