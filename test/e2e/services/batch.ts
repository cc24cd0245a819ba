import type { SettingsPatch } from '../../../src/sandbox/sandboxSettings.ts'
import { scrape } from '../../support/scrape.ts'
import { until } from '../../support/until.ts'
import type { Harness } from '../faults/harness.ts'

/** The records of a batch, by name. */
const records = {
  plain: {},
  again: {},
  /** The order date has a fraction of a second. */
  fraction: { orderDate: '2026-11-21T12:00:00.123+02:00' },
  /** Six characters, which are 12 UTF-16 units and 24 bytes. */
  emoji: { customerId: '😀😀😀😀😀😀' },
  unknown: { customerId: 'X1' },
  failing: { field2: 'fail:E001 ' },
  order: null,
  /** The record's first answer is lost after it was applied. */
  lost: { field2: 'lost ' },
} satisfies Record<string, Payload | null>

interface Payload {
  orderDate?: string
  customerId?: string
  field2?: string
}

type RecordName = keyof typeof records | 'renewed' | 'later'

/** For each record its state, its code, and how many transactions or orders the service made of it. */
export type Outcomes = Record<RecordName, string>

/** The outcome of a batch. */
export interface BatchSeen {
  outcomes: Outcomes
  /** Counts by kind, as in contract_breaches_total, without zeros. */
  breaches: Record<string, number>
}

/** The outcomes with the sandbox's defaults and UNCERTAIN_POLICY=resend. */
export const usual: Outcomes = {
  plain: 'completed, 1',
  again: 'completed, 1',
  fraction: 'completed, 1',
  emoji: 'completed, 1',
  unknown: 'rejected E001, 0',
  failing: 'failed E001, 1',
  order: 'completed, 1',
  lost: 'uncertain E002, 1',
  renewed: 'completed, 1',
  later: 'completed, 1',
}

const ended = ['completed', 'rejected', 'failed', 'uncertain']
let batches = 0

/**
 * Runs a batch through a service with these settings: records of every kind, an answer that is lost, tokens that are
 * revoked, and a service that is down for a moment. A record that has not ended after `waitMs` shows its state.
 */
export async function runBatch(
  harness: Harness,
  settings: SettingsPatch,
  env: Record<string, string> = {},
  waitMs = 20_000,
): Promise<BatchSeen> {
  const batch = `b${++batches}-`
  await harness.control('DELETE', 'settings')
  await harness.control('PATCH', 'settings', settings)
  const daemon = await harness.start({ UNCERTAIN_POLICY: 'resend', ...env })
  try {
    await harness.fault({ kind: 'drop', when: 'after', endpoint: 'submit', bodyContains: `lost ${batch}`, times: 1 })
    for (const [name, payload] of Object.entries(records)) await insert(harness, batch + name, payload)
    const first = await settle(harness, batch, Object.keys(records), waitMs)
    await harness.control('POST', 'tokens/revoke')
    await insert(harness, `${batch}renewed`, {})
    const second = await settle(harness, batch, ['renewed'], waitMs)
    await harness.control('PATCH', 'settings', { e003RetryAfterSeconds: 1, ...settings, down: true })
    await insert(harness, `${batch}later`, {})
    await until(
      () => harness.outcome(`${batch}later`),
      ({ posts }) => posts.length > 0,
      waitMs,
    ).catch(() => {})
    await harness.control('PATCH', 'settings', { down: false })
    const third = await settle(harness, batch, ['later'], waitMs)
    return { outcomes: { ...first, ...second, ...third } as Outcomes, breaches: breachesIn(await scrape(daemon)) }
  } finally {
    await daemon.stop()
    await harness.control('DELETE', 'faults')
    await harness.control('DELETE', 'settings')
    await harness.pool.query('delete from outboxd.pause')
  }
}

async function insert({ pool }: Harness, marker: string, payload: Payload | null): Promise<void> {
  const { field2 = '', ...others } = payload ?? {}
  const row =
    payload === null
      ? { customerId: '7b0e6c3e-2f5d-4b43-9d5a-0f6f3c1c9a11', items: [{ sku: 'A1', quantity: 1, note: marker }] }
      : { customerId: 'C1', orderDate: '2026-11-21T10:00:00Z', amount: 12.5, ...others, field2: field2 + marker }
  const type = payload === null ? 'order' : 'data'
  await pool.query('insert into outbox (type, payload) values ($1, $2)', [type, JSON.stringify(row)])
}

async function settle(harness: Harness, batch: string, names: readonly string[], waitMs: number) {
  const look = () => Promise.all(names.map((name) => harness.outcome(batch + name)))
  await until(look, (seen) => seen.every(({ state }) => state !== null && ended.includes(state)), waitMs).catch(
    () => {},
  )
  const seen = await look()
  return Object.fromEntries(
    seen.map(({ state, code, effects }, index) => [
      names[index],
      `${[state, code].filter(Boolean).join(' ')}, ${effects}`,
    ]),
  )
}

function breachesIn(metrics: string): Record<string, number> {
  const lines = metrics.matchAll(/^outboxd_contract_breaches_total\{kind="(\w+)"\} (\d+)$/gm)
  return Object.fromEntries([...lines].flatMap(([, kind, count]) => (Number(count) > 0 ? [[kind, Number(count)]] : [])))
}
