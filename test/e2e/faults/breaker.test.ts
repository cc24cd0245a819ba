import { setTimeout as after } from 'node:timers/promises'
import { expect, type TestContext, test } from 'vitest'
import { startDaemonProcess } from '../../support/daemon.ts'
import { until } from '../../support/until.ts'
import { type Harness, setup, shortTimeout } from './harness.ts'

/** What one record, one resource, or one daemon does wrong holds up nobody else for longer than a pause. */

const onePause = { UNAVAILABLE_PAUSE_SECONDS: '1', UNAUTHORIZED_PAUSE_SECONDS: '1' }

async function started({ onTestFinished }: TestContext, env: Record<string, string> = {}): Promise<Harness> {
  const harness = await setup()
  onTestFinished(() => harness[Symbol.asyncDispose]())
  await harness.start(env)
  return harness
}

const completed = (harness: Harness, markers: readonly string[]) =>
  Promise.all(markers.map((marker) => harness.becomes(marker, 'completed')))

/** Inserts a record each 200 ms until the poisoned one has ended. @returns its state */
async function insertUntilEnd(harness: Harness): Promise<string | null> {
  const ended = ['rejected', 'uncertain', 'completed']
  let poison = await harness.outcome('poison-')
  for (let i = 0; !ended.includes(poison.state ?? '') && i < 250; i++) {
    await harness.insert(`good-${i}-`)
    await after(200)
    poison = await harness.outcome('poison-')
  }
  return poison.state
}

/** The answers that paused all sending so far. */
async function openings(harness: Harness): Promise<number> {
  const { rows } = await harness.pool.query<{ n: number }>(
    `select count(*)::int as n from outboxd.submission_event where cause = 'paused'`,
  )
  return rows[0]?.n ?? 0
}

/** Makes a record complete and forgets its transaction, so that the service answers its id as an unknown one. */
async function completeOne(harness: Harness): Promise<string> {
  await harness.insert('known-')
  await harness.becomes('known-', 'completed')
  const { rows } = await harness.pool.query<{ id: string }>('select transaction_id as id from outboxd.submission')
  return rows[0]?.id ?? ''
}

test.concurrent.for([
  { name: '403', status: 403 },
  { name: '500', status: 500 },
  { name: '404', status: 404 },
])(
  'after an outage the service refuses the last id that it gave ($name): sending goes on by itself',
  {
    timeout: 90_000,
  },
  async ({ status }, context) => {
    const harness = await started(context, shortTimeout)
    const known = await completeOne(harness)
    await harness.fault({ kind: 'answer', status, endpoint: 'status', pathContains: known })
    await harness.service.setFault({ kind: 'hang-after-request' })
    const lost = Array.from({ length: 8 }, (_, i) => `lost-${i}-`)
    for (const marker of lost) await harness.insert(marker)
    await until(harness.pauses, (reasons) => reasons.includes('unreachable'))
    await harness.insert('later-')
    await harness.service.setFault(null)
    await completed(harness, ['later-'])
    expect(await harness.pauses()).toEqual([])
  },
)

test.concurrent('a service that grants only orders: data is rejected in the end, and orders go on by themselves', {
  timeout: 90_000,
}, async (context) => {
  const harness = await setup()
  context.onTestFinished(() => harness[Symbol.asyncDispose]())
  await harness.fault({ kind: 'answer', status: 403, endpoint: 'submit' })
  await harness.fault({ kind: 'answer', status: 403, endpoint: 'status' })
  const data = Array.from({ length: 3 }, (_, i) => `data-${i}-`)
  const orders = Array.from({ length: 20 }, (_, i) => `order-${i}-`)
  for (const marker of data) await harness.insert(marker)
  await harness.start()
  await until(harness.pauses, (reasons) => reasons.includes('unauthorized'))
  for (const marker of orders) await harness.insert(marker, { type: 'order' })
  await completed(harness, orders)
  // Others have to get through between the refusals.
  for (let i = 0; (await harness.outcome('data-0-')).state !== 'rejected' && i < 20; i++) {
    await harness.insert(`more-${i}-`, { type: 'order' })
    await harness.becomes(`more-${i}-`, 'completed')
  }
  expect((await harness.outcome('data-0-')).state).toBe('rejected')
})

test.concurrent('an outage ends: the first records leave within 2 s, with three daemons', {
  timeout: 90_000,
}, async (context) => {
  const harness = await started(context)
  await harness.start()
  await harness.start()
  await harness.insert('before-')
  await harness.becomes('before-', 'completed')
  await harness.fault({ kind: 'answer', status: 503 })
  const markers = Array.from({ length: 12 }, (_, i) => `after-${i}-`)
  for (const marker of markers) await harness.insert(marker)
  await until(harness.pauses, (reasons) => reasons.includes('unavailable'))
  const { rows: before } = await harness.pool.query<{ at: Date }>('select clock_timestamp() as at')
  await harness.control('DELETE', 'faults')
  await completed(harness, markers)
  // Each claim since then, in the order of their times; the pause has 0.3 s.
  const { rows } = await harness.pool.query<{ ms: number }>(
    `select extract(epoch from min(at) - $1)::float8 * 1000 as ms from outboxd.submission_event e
     where e.to_state in ('accepted', 'completed') and e.from_state = 'sending' and e.at > $1`,
    [before[0]?.at],
  )
  expect(rows[0]?.ms).toBeLessThan(300 + 2_000)
})

test.concurrent('a daemon is killed in the middle of half-open: another begins a trial after its deadline', {
  timeout: 120_000,
}, async (context) => {
  const harness = await setup()
  context.onTestFinished(() => harness[Symbol.asyncDispose]())
  await harness.fault({ kind: 'answer', status: 503, endpoint: 'submit', times: 1 })
  await harness.fault({ kind: 'delay', delayMs: 60_000, endpoint: 'submit', times: 1 })
  const victim = await startDaemonProcess({ ...harness.env, ...shortTimeout })
  await harness.insert('first-')
  // The trial is on the wire.
  await until(
    () => harness.outcome('first-'),
    ({ state, posts }) => state === 'sending' && posts.length === 2,
  )
  victim.signal('SIGKILL')
  await victim.ended()
  const killedMs = performance.now()
  await harness.start(shortTimeout)
  await harness.insert('second-')
  await harness.becomes('second-', 'completed')
  expect((await harness.outcome('first-')).state).toBe('uncertain')
  // The deadline of the trial, a heartbeat that is missed, and a margin for a busy machine.
  expect(performance.now() - killedMs).toBeLessThan(8_000 + 12_000)
  expect(await harness.pauses()).toEqual([])
})

test.concurrent.for([
  { name: '503', fault: { kind: 'answer', status: 503, code: 'E003' }, env: {}, end: 'rejected' },
  { name: '403', fault: { kind: 'answer', status: 403 }, env: {}, end: 'rejected' },
  { name: 'timeout', fault: { kind: 'delay', delayMs: 60_000 }, env: shortTimeout, end: 'uncertain' },
])(
  'one record always gets 503, 403 or a timeout ($name): no other waits for more than one pause, and it ends within five',
  {
    timeout: 120_000,
  },
  async ({ fault, env, end }, context) => {
    const harness = await started(context, { ...onePause, ...env })
    await harness.fault({ endpoint: 'submit', bodyContains: 'poison-', ...fault })
    await harness.insert('poison-')
    expect(await insertUntilEnd(harness)).toBe(end)
    expect(await openings(harness)).toBeLessThanOrEqual(5)
    await until(harness.pauses, (reasons) => reasons.length === 0)
    const { rows: late } = await harness.pool.query(
      `select attempt, waited.pauses from outboxd.submission s, lateral (
         select count(*) as pauses from outboxd.submission_event e where e.from_state = 'sending'
           and e.cause in ('paused', 'rejected') and e.at between s.captured_at and s.sent_at
       ) waited where state = 'completed' and (attempt > 1 or waited.pauses > 1)`,
    )
    expect(late).toEqual([])
  },
)

test.concurrent('the polls of one record always get 403: it is uncertain in the end, and others go on', {
  timeout: 120_000,
}, async (context) => {
  const harness = await started(context, onePause)
  await harness.insert('poison-')
  const { rows } = await until(
    () =>
      harness.pool.query<{ id: string }>(
        'select transaction_id as id from outboxd.submission where transaction_id is not null',
      ),
    (found) => found.rows.length > 0,
  )
  await harness.fault({ kind: 'answer', endpoint: 'status', status: 403, pathContains: rows[0]?.id })
  expect(await insertUntilEnd(harness)).toBe('uncertain')
  expect(await openings(harness)).toBeLessThanOrEqual(5)
})

test.concurrent('a service that is down costs one request a pause, beyond what was on the wire', {
  timeout: 90_000,
}, async (context) => {
  const harness = await setup()
  context.onTestFinished(() => harness[Symbol.asyncDispose]())
  for (let i = 0; i < 30; i++) await harness.insert(`down-${i}-`)
  await harness.fault({ kind: 'answer', status: 503, headers: { 'retry-after': '1' }, endpoint: ['submit', 'status'] })
  await harness.start({ UNAVAILABLE_PAUSE_SECONDS: '600' })
  await harness.start({ UNAVAILABLE_PAUSE_SECONDS: '600' })
  // A Retry-After counts with 503, too: 1, 2, 4 s.
  const level = async () =>
    (await harness.pool.query<{ level: number }>(`select level from outboxd.pause where reason = 'breaker'`)).rows[0]
      ?.level ?? -1
  await until(level, (reached) => reached >= 2)
  const { rows } = (await harness.control('GET', 'ledger?limit=1000')) as { rows: { endpoint: string }[] }
  const made = rows.filter(({ endpoint }) => endpoint === 'submit' || endpoint === 'status').length
  expect(made).toBeLessThanOrEqual(2 * 8 + 3)
})

test.concurrent('only submissions hang, and polls work: three in doubt beyond those on the wire, then a person acts', {
  timeout: 150_000,
}, async (context) => {
  const harness = await started(context, shortTimeout)
  await harness.insert('before-')
  await harness.becomes('before-', 'completed')
  await harness.fault({ kind: 'delay', delayMs: 60_000, when: 'before', endpoint: 'submit' })
  for (let i = 0; i < 30; i++) await harness.insert(`hang-${i}-`)
  const waits = async () =>
    (
      await harness.pool.query(
        `select from outboxd.pause where reason = 'breaker' and state <> 'closed' and until is null`,
      )
    ).rowCount
  await until(waits, (count) => count === 1, 120_000)
  const { rows } = await harness.pool.query<{ n: number }>(
    `select count(*)::int as n from outboxd.submission where state = 'uncertain'`,
  )
  expect(rows[0]?.n).toBeLessThanOrEqual(8 + 3)
})
