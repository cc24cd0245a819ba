import type pg from 'pg'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { command as discard } from '../../../src/commands/discard.ts'
import { testContext } from '../../support/context.ts'
import { startDaemonProcess } from '../../support/daemon.ts'
import { type EmbeddedPostgres, migrateAll, openPool, startPostgres } from '../../support/postgres.ts'
import { statusSays } from '../../support/statusSays.ts'
import { until } from '../../support/until.ts'
import { waitForStandby } from '../../support/waitForStandby.ts'
import { type Harness, setup } from './harness.ts'

/** A synchronous standby is away. Every COMMIT hangs, and succeeds when the standby is given up. */

let server: EmbeddedPostgres
let harness: Harness
/** A session whose own COMMITs do not wait for the standby. */
let operator: pg.Pool
beforeAll(async () => {
  server = await startPostgres({ fsync: 'off' })
  await migrateAll(server.url)
  harness = await setup({ idempotency: 'ignore' }, server.url)
  operator = openPool(server.url, { max: 1, options: '-c synchronous_commit=local' })
})
afterAll(async () => {
  await operator.end()
  await harness[Symbol.asyncDispose]()
  await server.stop()
})

async function loseStandby(): Promise<void> {
  await waitForStandby('gone', run)
  onTestFinished(giveStandbyUp)
}

const giveStandbyUp = () => waitForStandby('', run)
const run = (text: string) => operator.query(text)

/** Captures records that wait only for the end of a pause. */
async function captured(markers: string[]): Promise<void> {
  await harness.pool.query(`insert into outboxd.pause (reason, detail) values ('operator', 'test')`)
  for (const marker of markers) await harness.insert(marker)
  for (const marker of markers)
    await until(
      () => harness.outcome(marker),
      ({ status, state }) => status === 'queued' && state === 'queued',
    )
}

const says = () => statusSays(harness.env)

/** Sessions of daemons whose COMMIT hangs. */
const hanging = () =>
  operator.query(`select from pg_stat_activity where wait_event = 'SyncRep' and application_name = 'outboxd'`)

test('SIGTERM while COMMITs hang: waits, nothing in doubt, exit 0', async () => {
  await using daemon = await startDaemonProcess({ ...harness.env, MAX_IN_FLIGHT: '4' })
  const markers = Array.from({ length: 8 }, (_, i) => `leaving-${i}-`)
  await harness.fault({ kind: 'delay', delayMs: 1_500, endpoint: 'submit', bodyContains: 'leaving-' })
  await captured(markers)
  await operator.query('delete from outboxd.pause')
  await until(
    () => Promise.all(markers.map((marker) => harness.outcome(marker))),
    (outcomes) => outcomes.some(({ state, posts }) => state === 'sending' && posts.length === 1),
  )
  await loseStandby()
  // The COMMIT of an outcome or of a claim hangs.
  await until(hanging, ({ rowCount }) => (rowCount ?? 0) >= 1)
  daemon.signal('SIGTERM')
  const notYet = (line: string) => line.includes('stopping takes long')
  expect(JSON.parse(await daemon.line(notYet))).toMatchObject({
    level: 'warn',
    count: expect.any(Number),
    records: expect.any(Array),
  })
  // Longer than the daemon waits for a COMMIT, and than it once waited to stop: 2 s for the request and 10 s more.
  await daemon.line(notYet, { nth: 3 })
  await giveStandbyUp()
  expect((await daemon.ended()).code).toBe(0)
  const next = await harness.start()
  const outcomes = await Promise.all(markers.map((marker) => harness.becomes(marker, 'completed', 'uncertain')))
  for (const outcome of outcomes) {
    expect(outcome).toMatchObject({ state: 'completed', posts: [200], effects: 1 })
    expect(outcome.steps).not.toContain('sending uncertain')
  }
  await next.stop()
})

test('killed while COMMITs of claims hang, against the advice: what was never sent is uncertain', async () => {
  await using daemon = await startDaemonProcess(harness.env)
  await harness.insert('token-') // so that the daemon has a token
  await harness.becomes('token-', 'completed')
  await captured(['killed-'])
  await loseStandby()
  await operator.query('delete from outboxd.pause')
  const said = await until(says, (text) => text.startsWith('COMMITs in the database wait for a synchronous standby'))
  expect(said).toContain('Do not restart a daemon: only it knows what it has claimed')
  await until(hanging, ({ rowCount }) => (rowCount ?? 0) >= 1)
  daemon.signal('SIGKILL')
  await daemon.ended()
  await giveStandbyUp()
  const next = await harness.start()
  expect(await harness.becomes('killed-', 'uncertain')).toMatchObject({ posts: [], effects: 0 })
  await discard.action(testContext(harness.env), [], { state: 'uncertain', reason: 'settled', yes: true })
  await harness.becomes('killed-', 'discarded')
  await next.stop()
})

test("a claim's COMMIT succeeds late: given back, completed", async () => {
  await harness.start()
  await harness.insert('before-') // so that the daemon has a token
  await harness.becomes('before-', 'completed')
  const markers = ['hanging-0-', 'hanging-1-', 'hanging-2-']
  await captured(markers)
  await loseStandby()
  await operator.query('delete from outboxd.pause')
  // The daemon gives the claim up after 25 s. The claim keeps the budget locked, so the next one fails.
  const told = await until(
    says,
    (text) => /claim_lost\s.* claim of [0-9a-f]{8}/.test(text) && /loop_failing dispatch/.test(text),
    80_000,
  )
  expect(told).toContain('does not answer a COMMIT')
  expect(told).not.toContain('All is well')
  await giveStandbyUp()
  const outcomes = await Promise.all(markers.map((marker) => harness.becomes(marker, 'completed', 'uncertain')))
  for (const outcome of outcomes) {
    expect(outcome).toMatchObject({ state: 'completed', posts: [200], effects: 1 })
    expect(outcome.steps).not.toContain('sending uncertain')
  }
  expect(outcomes.flatMap(({ causes }) => causes)).toContain('never sent: the claim was lost')
  await until(says, (text) => text.startsWith('All is well'))
})
