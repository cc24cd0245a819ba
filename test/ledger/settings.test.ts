import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { noteInstanceStopped, writeHeartbeat } from '../../src/ledger/instances.ts'
import { tryLockWriteBack } from '../../src/ledger/reports.ts'
import {
  describeDifferences,
  hasSettings,
  lockSettings,
  readOrSetSettings,
  readRequestOverAfterMs,
  readSettings,
  type Settings,
} from '../../src/ledger/settings.ts'
import { beginTransaction } from '../../src/postgres/database.ts'
import { countFree, openCaptureLock, openLedgerForFile } from '../support/ledger.ts'

const ledger = openLedgerForFile()

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
    follow: () => readOrSetSettings(ledger.pool, instance),
    beat: () => writeHeartbeat(ledger.pool, instance),
    stop: () => noteInstanceStopped(ledger.pool, instance.id),
  }
}

/** Makes `seconds` pass. The living daemons go on with their heartbeats meanwhile. */
async function pass(seconds: number, ...living: ReturnType<typeof daemon>[]): Promise<void> {
  await ledger.pool.query(
    `update outboxd.instance set unbroken_since = unbroken_since - $1 * interval '1 s', stopped_at = stopped_at - $1 * interval '1 s',
       beat_at = case when id = any($2) then beat_at else beat_at - $1 * interval '1 s' end`,
    [seconds, living.map(({ instance }) => instance.id)],
  )
  for (const each of living) await each.beat()
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

describe('a rolling change', () => {
  async function begin() {
    const [old, another, fresh] = [daemon(), daemon(), daemon({ RATE_LIMIT_REQUESTS: '50', 'mapping of data': 'bbbb' })]
    for (const each of [old, another, fresh]) {
      await each.follow()
      await each.beat()
    }
    await pass(120, old, another, fresh)
    return { old, another, fresh }
  }

  test('takes effect 20 s after the last old daemon has stopped, as an event that names each difference', async () => {
    const { old, another, fresh } = await begin()
    await old.stop()
    await pass(30, another, fresh)
    expect(await fresh.follow()).toEqual(old.own)
    await another.stop()
    await pass(19, fresh)
    expect(await fresh.follow()).toEqual(old.own)
    await pass(2, fresh)
    expect(await fresh.follow()).toEqual(fresh.own)
    expect(await countFree(ledger.pool)).toBe(50)
    expect((await acts()).at(-1)).toEqual({
      who: `daemon ${fresh.instance.id.slice(0, 8)} on erp-1`,
      reason: 'no daemon has the former settings',
      detail: { RATE_LIMIT_REQUESTS: ['100', '50'], 'mapping of data': [null, 'bbbb'] },
    })
    expect(await old.follow()).toEqual(fresh.own)
  })

  test('takes effect when the last old daemon has been silent for 60 s', async () => {
    const { old, another, fresh } = await begin()
    await old.stop()
    await pass(59, fresh)
    expect(await fresh.follow()).toEqual(another.own)
    await pass(2, fresh)
    expect(await fresh.follow()).toEqual(fresh.own)
  })
})

describe('a daemon with old files', () => {
  const stale = () => daemon({ RATE_LIMIT_REQUESTS: '500', 'outbox.yaml': 'old' })

  test('changes nothing while the last daemon with the right ones restarts', async () => {
    const [first, other, again] = [daemon(), stale(), daemon()]
    await first.follow()
    await first.beat()
    await other.beat()
    await pass(120, first, other)
    await first.stop()
    await pass(10, other)
    expect(await other.follow()).toEqual(first.own)
    await again.follow()
    await again.beat()
    await pass(60, again, other)
    expect(await other.follow()).toEqual(first.own)
  })

  test('changes nothing after the database was away, until it has lived for 60 s again', async () => {
    const [right, other] = [daemon(), stale()]
    await right.follow()
    await right.beat()
    await other.beat()
    await pass(120)
    expect(await other.follow()).toEqual(right.own)
    await other.beat()
    expect(await other.follow()).toEqual(right.own)
    await pass(61, other)
    expect(await other.follow()).toEqual(other.own)
  })

  test('sets them at its start if all daemons with the ledger’s have stopped, but not if one crashed', async () => {
    const [right, another] = [daemon(), daemon()]
    for (const each of [right, another]) {
      await each.follow()
      await each.beat()
    }
    await right.stop()
    await pass(120)
    expect(await stale().follow()).toEqual(right.own)
    await another.stop()
    const last = stale()
    expect(await last.follow()).toEqual(last.own)
  })
})

test('a daemon that has just set its settings has them before its first heartbeat', async () => {
  const [first, second] = [daemon(), daemon({ KEY_ON_FAILURE: 'block' })]
  await first.follow()
  expect(await second.follow()).toEqual(first.own)
})

test('settings do not change while a capture is under way', async () => {
  const [old, fresh] = [daemon(), daemon({ 'outbox.yaml': 'bbbb' })]
  await old.follow()
  await old.stop()
  await openCaptureLock(ledger.pool).withLock(async () => {
    expect(await fresh.follow()).toEqual(old.own)
  })
  expect(await fresh.follow()).toEqual(fresh.own)
})

test('settings do not change while states are written back', async () => {
  const [old, fresh] = [daemon(), daemon({ 'outbox.yaml': 'bbbb' })]
  await old.follow()
  await old.stop()
  await using writing = await beginTransaction(ledger.pool)
  await tryLockWriteBack(writing.db)
  expect(await fresh.follow()).toEqual(old.own)
  await writing.commit()
  expect(await fresh.follow()).toEqual(fresh.own)
})

test('settings do not change while replays are written', async () => {
  const [old, fresh] = [daemon(), daemon({ 'mapping of data': 'bbbb' })]
  await old.follow()
  await old.stop()
  await using replaying = await beginTransaction(ledger.pool)
  await using another = await beginTransaction(ledger.pool)
  for (const { db } of [replaying, another]) await lockSettings(db)
  expect(await fresh.follow()).toEqual(old.own)
  for (const { commit } of [replaying, another]) await commit()
  expect(await fresh.follow()).toEqual(fresh.own)
})

test('a capture that began with the former settings sees that it may not go on', async () => {
  const [old, fresh] = [daemon(), daemon({ 'outbox.yaml': 'bbbb' })]
  await old.follow()
  await old.stop()
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

test('a request may arrive until 3 s after the longest timeout of any daemon, or of 30 s before the first daemon', async () => {
  expect(await readRequestOverAfterMs(ledger.pool)).toBe(33_000)
  await daemon({ REQUEST_TIMEOUT_SECONDS: '20' }).follow()
  expect(await readRequestOverAfterMs(ledger.pool)).toBe(23_000)
  await daemon({ REQUEST_TIMEOUT_SECONDS: '45.5' }).beat()
  expect(await readRequestOverAfterMs(ledger.pool)).toBe(48_500)
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
