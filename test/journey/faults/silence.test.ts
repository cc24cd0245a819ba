import { expect, onTestFinished, test } from 'vitest'
import { status } from '../../../src/commands/status.ts'
import { testContext } from '../../support/context.ts'
import type { Fault } from '../../support/faultProxy.ts'
import { until } from '../../support/until.ts'
import { type Rig, setup } from './rig.ts'

/** A service that takes what it is sent and says nothing costs no record but those that were on the wire. */

const maxInFlight = 8
const records = 60

async function started(): Promise<{ rig: Rig; port: number }> {
  const rig = await setup()
  onTestFinished(() => rig[Symbol.asyncDispose]())
  const { port } = await rig.start({ MAX_IN_FLIGHT: String(maxInFlight) })
  // A token and connections are there before the fault, so that it strikes records.
  await rig.insert('before-')
  await rig.becomes('before-', 'completed')
  return { rig, port }
}

async function insertMany(rig: Rig): Promise<string[]> {
  const markers = Array.from({ length: records }, (_, i) => `silence-${i}-`)
  for (const marker of markers) await rig.insert(marker)
  return markers
}

async function count(rig: Rig, state: string): Promise<number> {
  const { rows } = await rig.pool.query<{ n: number }>(
    'select count(*)::int as n from outboxd.submission where state = $1',
    [state],
  )
  return rows[0]?.n ?? 0
}

/** How often the pause was brought back since it began. */
async function level(rig: Rig): Promise<number> {
  const { rows } = await rig.pool.query<{ level: number }>(
    `select level from outboxd.pause where reason = 'unreachable'`,
  )
  return rows[0]?.level ?? -1
}

test.each<Fault>([
  { kind: 'hang' },
  { kind: 'hang-after-request' },
  { kind: 'cut-before-request' }, // what a refused client certificate looks like under TLS 1.3
])('$kind: however long it lasts no more records are in doubt than were on the wire (hundreds were in a night)', async (fault) => {
  const { rig, port } = await started()
  await rig.service.setFault(fault)
  await insertMany(rig)
  await until(
    () => count(rig, 'uncertain'),
    (n) => n > 0,
  )
  await until(
    () => level(rig),
    (n) => n >= 2,
    30_000,
  )
  expect(await count(rig, 'uncertain')).toBeLessThanOrEqual(maxInFlight)
  expect(await count(rig, 'sending')).toBe(0)

  // What is said during it.
  const context = testContext(rig.env)
  await status(context, {})
  expect(context.printed()).toMatch(/Nothing is sent: paused \(unreachable\)/)
  expect(context.printed()).not.toContain('All is well')
  const metrics = () => fetch(`http://127.0.0.1:${port}/metrics`).then((answer) => answer.text())
  await until(metrics, (text) => text.includes('outboxd_paused{reason="unreachable"} 1'))

  await rig.service.setFault(null)
  const doubtful = await count(rig, 'uncertain')
  await until(
    () => count(rig, 'completed'),
    (n) => n === records + 1 - doubtful,
    40_000,
  )
  expect(await count(rig, 'uncertain')).toBe(doubtful)
  expect(await rig.pauses()).toEqual([])
}, 90_000)

test('a service that answers questions and hangs on every record: each try costs one record, and each takes longer', async () => {
  const { rig } = await started()
  await rig.fault({ kind: 'delay', delayMs: 60_000, when: 'before', endpoint: 'submit' })
  await insertMany(rig)
  await until(
    () => level(rig),
    (n) => n >= 2,
    30_000,
  )
  // Those on the wire at first, and one each time that the pause came back.
  expect(await count(rig, 'uncertain')).toBeLessThanOrEqual(maxInFlight + (await level(rig)))
  expect(await count(rig, 'sending')).toBeLessThanOrEqual(1)
}, 60_000)
