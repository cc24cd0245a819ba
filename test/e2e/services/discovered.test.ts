import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { type Asked, ask, customers } from '../../discover/ask.ts'
import { givenFor, randomService } from '../../discover/randomService.ts'
import { field2Of, truthOf } from '../../discover/truthOf.ts'
import { mappingsDir } from '../../support/daemon.ts'
import { until } from '../../support/until.ts'
import { type Harness, setup } from '../faults/harness.ts'

/**
 * Draws a service, runs `outboxd discover --rate` on it, and has a daemon send 100 records with the variables and the
 * mapping that follow. `npm run discover:many` draws several; SEED=N begins with that one.
 */

const from = Number(process.env.SEED ?? 3)
const seeds = Array.from({ length: Number(process.env.BATCHES ?? 1) }, (_, n) => from + n)
/** Questions whose findings determine a variable or the mapping. */
const only =
  'token-unit,mapped-fields,amount,idempotency,idempotency-header,idempotency-form,own-id,rate-second,rate-limit'
/** Ten seconds instead of a minute, so that 200 requests do not take two minutes and more. */
const windowSeconds = 10
const recordsSent = 100

// Only in `npm run discover:many`: counting to a limit twice takes minutes.
test.skipIf(process.env.BATCHES === undefined).concurrent.each(seeds)(
  'with the findings about the service of seed %i, 100 records arrive once each, without a 429',
  {
    timeout: 900_000,
  },
  async (seed) => {
    const service = randomService(seed)
    const settings = { ...service.settings, rateLimitWindowSeconds: windowSeconds }
    await using harness = await setup({ ...service.options, ...settings, processingTime: 'constant:0.5' })
    // Discover and the daemon need the same limits. The harness's own limits are higher.
    const env = { RATE_LIMIT_REQUESTS: '100', RATE_LIMIT_WINDOW_SECONDS: String(windowSeconds) }
    const asked = await ask(harness.sandbox.url, { ...customers, rate: true, only, ...givenFor(service) }, env)
    const truth = truthOf(settings)
    const wrong = Object.entries(asked.findings).filter(
      ([name, { found, certainty }]) => certainty === 'sure' && !truth[name]?.(found ?? ''),
    )
    expect(wrong).toEqual([])
    await harness.control('DELETE', 'ledger?everything=true')

    // The last requests of discover have to leave the window first.
    await wait(1_000 * (windowSeconds + 1))
    using mappings = writeMappings(asked)
    await insert(harness, recordsSent, field2Of(service.settings) ?? 'plain1234')
    const daemon = await harness.start({ ...env, ...asked.set, MAPPINGS_DIR: mappings.folder })
    const states = () => statesOf(harness)
    await until(states, ({ completed = 0 }) => completed === recordsSent, 400_000).catch(() => {})
    const said = Object.values(asked.findings)
      .filter(({ set, found }) => set.length > 0 || found === null)
      .map(({ found, why }) => `${found}: ${why}`)
    expect(
      { ...(await states()), pauses: await harness.pauses(), errors: await errorsOf(harness) },
      said.join('\n'),
    ).toEqual({
      completed: recordsSent,
      pauses: [],
      errors: [],
    })
    await daemon.stop()
    const { rows } = (await harness.control('GET', 'counts')) as {
      rows: { status: number; effects: string; requests: string }[]
    }
    expect(rows.reduce((sum, { effects }) => sum + Number(effects), 0)).toBe(recordsSent)
    expect(
      rows.filter(({ status }) => status === 429),
      said.join('\n'),
    ).toEqual([])
  },
)

async function insert({ pool }: Harness, count: number, field2: string): Promise<void> {
  const payload = { customerId: 'C1', orderDate: '2026-11-21T10:00:00Z', amount: 12.5, field2 }
  await pool.query(`insert into outbox (type, payload) select 'data', $2 from generate_series(1, $1::integer)`, [
    count,
    JSON.stringify(payload),
  ])
}

async function statesOf({ pool }: Harness): Promise<Record<string, number>> {
  const { rows } = await pool.query<{ state: string; count: number }>(
    'select state, count(*)::integer as count from outboxd.submission group by state',
  )
  return Object.fromEntries(rows.map(({ state, count }) => [state, count]))
}

async function errorsOf({ pool }: Harness): Promise<string[]> {
  const { rows } = await pool.query<{ error: string }>(
    'select distinct error from outboxd.submission where error is not null limit 3',
  )
  return rows.map(({ error }) => error)
}

/** The shipped mappings, changed as discover advises. */
function writeMappings({ findings }: Asked): Disposable & { folder: string } {
  const folder = mkdtempSync(join(tmpdir(), 'discovered-'))
  const [data = '', order = ''] = ['data.yaml', 'order.yaml'].map((name) =>
    readFileSync(join(mappingsDir, name), 'utf8'),
  )
  const amount = findings.amount?.found === 'text' ? asText : asItIs
  const ownId = findings['own-id']?.found === 'required' ? withOwnId : asItIs
  writeFileSync(join(folder, 'data.yaml'), ownId(inPlace(findings['mapped-fields']?.found ?? '', amount(data))))
  writeFileSync(join(folder, 'order.yaml'), order)
  return { folder, [Symbol.dispose]: () => rmSync(folder, { recursive: true }) }
}

const asItIs = (mapping: string) => mapping
const asText = (mapping: string) => mapping.replace('type: "decimal(10,2)"', 'type: "decimal(10,2)", as: string')
const withOwnId = (mapping: string) => mapping.replace(/^body:.*\n/m, 'body:\n  transactionId: ${submission.id}\n')

function inPlace(place: string, mapping: string): string {
  const fields = /^ {4}(customer_id|order_date|total_amount): /gm
  if (place.startsWith('beside data')) return mapping.replace(fields, '  $1: ')
  if (place !== 'refused') return mapping
  // A mapping must not have fields that its body does not use.
  return mapping.replaceAll(
    /^ {4}(customer_id|order_date|total_amount): .*\n|^ {2}(order_date|total_amount): .*\n/gm,
    '',
  )
}
