import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { deleteInstance, writeHeartbeat } from '../../src/ledger/instances.ts'
import {
  describeDifferences,
  hasSettings,
  readLongestRequestTimeoutMs,
  readOrSetSettings,
  readSettings,
  type Settings,
} from '../../src/ledger/settings.ts'
import { beginTransaction } from '../../src/postgres/database.ts'
import { countFree, type Ledger, openCaptureLock, openLedger } from '../support/ledger.ts'

let ledger: Ledger
beforeAll(async () => {
  ledger = await openLedger()
})
afterAll(() => ledger[Symbol.asyncDispose]())
beforeEach(() => ledger.reset())

const common: Settings = {
  RATE_LIMIT_REQUESTS: '100',
  RATE_LIMIT_WINDOW_SECONDS: '60',
  REQUEST_TIMEOUT_SECONDS: '30',
  KEY_ON_FAILURE: 'continue',
  'outbox.yaml': 'aaaa',
}

function daemon(settings: Settings = {}) {
  const own = { ...common, ...settings }
  const instance = { id: randomUUID(), host: 'erp-1', version: 'test', settings: own }
  return {
    own,
    instance,
    follow: () => readOrSetSettings(ledger.pool, instance, own),
    beat: () => writeHeartbeat(ledger.pool, instance),
    stop: () => deleteInstance(ledger.pool, instance.id),
    fallSilent: () =>
      ledger.pool.query(`update outboxd.instance set beat_at = beat_at - interval '6 s' where id = $1`, [instance.id]),
  }
}

const acts = async () =>
  (await ledger.pool.query('select who, reason, detail from outboxd.operator_act order by id')).rows

test('the first daemon gives the ledger its settings, and the budget its limit', async () => {
  const first = daemon()
  expect(await first.follow()).toEqual(first.own)
  expect(await readSettings(ledger.pool)).toEqual(first.own)
  expect(await countFree(ledger.pool)).toBe(100)
  expect(await acts()).toMatchObject([{ reason: 'the first daemon starts' }])
})

test('a daemon with other settings changes nothing while a living daemon has the ledger’s', async () => {
  const [first, stale] = [daemon(), daemon({ RATE_LIMIT_REQUESTS: '500', 'outbox.yaml': 'old' })]
  await first.follow()
  await first.beat()
  await stale.beat()
  expect(await stale.follow()).toEqual(first.own)
  expect(await countFree(ledger.pool)).toBe(100)
  expect([await hasSettings(ledger.pool, first.own), await hasSettings(ledger.pool, stale.own)]).toEqual([true, false])
})

test.each([
  'stop',
  'fallSilent',
] as const)('a rolling change takes effect when the last old daemon is gone (%s), as an event that names each difference', async (goes) => {
  const [old, another, fresh] = [daemon(), daemon(), daemon({ RATE_LIMIT_REQUESTS: '50', 'mapping of data': 'bbbb' })]
  for (const each of [old, another, fresh]) {
    await each.follow()
    await each.beat()
  }
  await old[goes]()
  expect(await fresh.follow()).toEqual(old.own)
  await another[goes]()
  expect(await fresh.follow()).toEqual(fresh.own)
  expect(await countFree(ledger.pool)).toBe(50)
  expect((await acts()).at(-1)).toEqual({
    who: `daemon ${fresh.instance.id.slice(0, 8)} on erp-1`,
    reason: 'no living daemon has the former settings',
    detail: { RATE_LIMIT_REQUESTS: ['100', '50'], 'mapping of data': [null, 'bbbb'] },
  })
  expect(await old.follow()).toEqual(fresh.own)
})

test('settings do not change while a capture is under way', async () => {
  const [old, fresh] = [daemon(), daemon({ 'outbox.yaml': 'bbbb' })]
  await old.follow()
  await openCaptureLock(ledger.pool).withLock(async () => {
    expect(await fresh.follow()).toEqual(old.own)
  })
  expect(await fresh.follow()).toEqual(fresh.own)
})

test('a capture that began with the former settings sees that it may not go on', async () => {
  const [old, fresh] = [daemon(), daemon({ 'outbox.yaml': 'bbbb' })]
  await old.follow()
  await fresh.follow()
  const withLock = openCaptureLock(ledger.pool, old.own).withLock
  expect(await withLock(async ({ mayCapture }) => mayCapture)).toBe(false)
  expect(await openCaptureLock(ledger.pool).withLock(async ({ mayCapture }) => mayCapture)).toBe(true)
})

test('of two daemons that start at once, one sets its settings', async () => {
  await using held = await beginTransaction(ledger.pool)
  await held.db.query('select from outboxd.ledger for no key update')
  const [one, other] = [daemon(), daemon({ KEY_ON_FAILURE: 'block' })]
  for (const each of [one, other]) await each.beat()
  const both = Promise.all([one.follow(), other.follow()])
  await held.commit()
  await both
  expect(await acts()).toHaveLength(1)
})

test('the longest request timeout is that of any daemon or of the ledger, and null before the first daemon', async () => {
  expect(await readLongestRequestTimeoutMs(ledger.pool)).toBeNull()
  await daemon().follow()
  expect(await readLongestRequestTimeoutMs(ledger.pool)).toBe(30_000)
  await daemon({ REQUEST_TIMEOUT_SECONDS: '45.5' }).beat()
  expect(await readLongestRequestTimeoutMs(ledger.pool)).toBe(45_500)
})

describe('describeDifferences', () => {
  test('names the value of a variable, and of a file only that it differs', () => {
    const own = { KEY_ON_FAILURE: 'block', 'outbox.yaml': 'a', 'mapping of data': 'b', same: 'c' }
    const other = { KEY_ON_FAILURE: 'continue', 'outbox.yaml': 'b', 'mapping of order': 'b', same: 'c' }
    expect(describeDifferences(own, other)).toBe(
      'KEY_ON_FAILURE is block, not continue; mapping of data is not in the ledger; mapping of order is missing; outbox.yaml differs',
    )
    expect(describeDifferences(own, own)).toBe('')
  })
})
