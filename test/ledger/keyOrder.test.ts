import { randomUUID } from 'node:crypto'
import { beforeEach, describe, expect, test } from 'vitest'
import { decideClaimLimits } from '../../src/daemon/capture.ts'
import { releaseUnblockedRecords } from '../../src/ledger/keyOrder.ts'
import type { Submission } from '../../src/model/submission.ts'
import type { GivenChange } from '../support/change.ts'
import {
  claim,
  openCaptureLock,
  openLedgerForFile,
  outcomeBatch,
  setKeyOnFailure,
  setLimit,
  type TestDispatch,
  transition,
} from '../support/ledger.ts'
import { record } from '../support/record.ts'

const ledger = openLedgerForFile()
beforeEach(() => setLimit(ledger.pool))

const isHeld = async (id: string | undefined) => (await ledger.row(id ?? '')).held
const line = (length: number, key = 'k') => Array.from({ length }, () => ({ key }))

/** Claims the one record whose turn it is, and writes its outcome. */
async function send(work: TestDispatch, change: GivenChange): Promise<Submission> {
  const { submissions } = await claim(work, { submissions: 10 })
  expect(submissions).toHaveLength(1)
  const sent = submissions[0] as Submission
  await work.writeOutcomes(outcomeBatch({ transitions: [transition(sent, change)] }))
  return sent
}

const accepted = (): GivenChange => ({ state: 'accepted', transactionId: randomUUID(), pollInMs: 1_000 })

test('the first record of a key may be sent and the later ones are held; records without a key are never held', async () => {
  const [first, second] = await ledger.capture(line(2))
  const [third, other, free] = await ledger.capture([{ key: 'k' }, { key: 'other' }, {}])
  expect(await Promise.all([first, second, third, other, free].map(isHeld))).toEqual([false, true, true, false, false])
})

describe.each(['continue', 'block'] as const)('KEY_ON_FAILURE=%s:', (keyOnFailure) => {
  beforeEach(() => setKeyOnFailure(ledger.pool, keyOnFailure))

  const lets = {
    continue: { accepted: true, completed: true, failed: true, rejected: true, discarded: true, uncertain: false },
    block: { accepted: true, completed: true, failed: false, rejected: false, discarded: true, uncertain: false },
  }

  test.each(Object.entries(lets[keyOnFailure]))('a record that is %s lets the next one go: %s', async (state, goes) => {
    const [, second, third] = await ledger.capture(line(3))
    await send(ledger.dispatch(), state === 'accepted' ? accepted() : ({ state } as GivenChange))
    expect(await isHeld(second)).toBe(!goes)
    expect(await isHeld(third)).toBe(true)
  })

  test('a record that waits for another attempt holds back the next', async () => {
    const [, second] = await ledger.capture(line(2))
    await send(ledger.dispatch(), { state: 'queued', dueInMs: 60_000 })
    expect(await isHeld(second)).toBe(true)
  })

  test('records are sent in the order in which they came, one at a time', async () => {
    const ids = await ledger.capture(line(5))
    const work = ledger.dispatch()
    for (const id of ids) expect((await send(work, accepted())).id).toBe(id)
  })

  test('a record that did not map counts as a rejected one', async () => {
    const [, second] = await ledger.capture([{ key: 'k', error: 'no', body: null }, { key: 'k' }])
    expect(await isHeld(second)).toBe(keyOnFailure === 'block')
  })
})

test('a record that is captured behind an accepted one may be sent at once', async () => {
  await ledger.capture(line(1))
  await send(ledger.dispatch(), accepted())
  const [next] = await ledger.capture(line(1))
  expect(await isHeld(next)).toBe(false)
})

test('no release is lost when a record is captured while the one before it is being accepted', async () => {
  const work = ledger.dispatch()
  for (let round = 0; round < 30; round++) {
    const keys = Array.from({ length: 4 }, (_, i) => `${round}-${i}`)
    const records = (): { key: string }[] => keys.map((key) => ({ key }))
    await ledger.capture(records())
    const { submissions } = await claim(work, { submissions: 10 })
    expect(submissions).toHaveLength(4)
    const writing = submissions.map((each) =>
      work.writeOutcomes(outcomeBatch({ transitions: [transition(each, accepted())] })),
    )
    const [captured] = await Promise.all([ledger.capture(records()), ...writing])
    expect(await Promise.all(captured.map(isHeld))).toEqual([false, false, false, false])
    const { submissions: next } = await claim(work, { submissions: 10 })
    await work.writeOutcomes(outcomeBatch({ transitions: next.map((each) => transition(each, accepted())) }))
  }
})

test('keys that KEY_ON_FAILURE=block held are released under KEY_ON_FAILURE=continue', async () => {
  await setKeyOnFailure(ledger.pool, 'block')
  const [, second, third] = await ledger.capture(line(3))
  await send(ledger.dispatch(), { state: 'failed' })
  expect(await isHeld(second)).toBe(true)
  const release = async () => (await releaseUnblockedRecords(ledger.pool)).released
  expect(await release()).toBe(0)
  await setKeyOnFailure(ledger.pool, 'continue')
  expect(await release()).toBe(1)
  expect(await Promise.all([second, third].map(isHeld))).toEqual([false, true])
})

test('an empty key is released, too', async () => {
  await setKeyOnFailure(ledger.pool, 'block')
  const [, second] = await ledger.capture([{ key: '' }, { key: '' }])
  await send(ledger.dispatch(), { state: 'failed' })
  const release = () => releaseUnblockedRecords(ledger.pool)
  expect(await isHeld(second)).toBe(true)
  await setKeyOnFailure(ledger.pool, 'continue')
  expect((await release()).released).toBe(1)
})

test('a round checks 1,000 keys, and the next round goes on after them', async () => {
  const many = Array.from({ length: 1_001 }, (_, i) => `key ${String(i).padStart(4, '0')}`)
  await ledger.capture(many.flatMap((key) => [{ key }, { key }]))
  await ledger.pool.query(`update outboxd.submission set held = true where key = $1`, [many.at(-1)])
  const release = (after: string) => releaseUnblockedRecords(ledger.pool, after)
  const first = await release('')
  expect(first).toEqual({ released: 0, lastKey: many[999] })
  expect(await release(first.lastKey)).toEqual({ released: 1, lastKey: '' })
})

describe('capture', () => {
  const captureLock = () => openCaptureLock(ledger.pool)
  const room = () => captureLock().withLock(async (turn) => decideClaimLimits(turn, 800))

  test('counts queued records against its window', async () => {
    await ledger.capture([{}, {}, { error: 'no', body: null }])
    expect(await room()).toEqual({ room: 798, keyRowsMax: 20, exceptKeys: [] })
  })

  test('takes no rows of a key with more than 20 queued records', async () => {
    await ledger.capture([...line(21, 'long'), ...line(20, 'short')])
    expect(await room()).toEqual({ room: 759, keyRowsMax: 20, exceptKeys: ['long'] })
  })

  test.each([
    ['uncertain', ['k'], ['k']],
    ['failed', [], ['k']],
    ['accepted', [], []],
  ])('takes no rows of a key that waits for an operator: after %s, %j, or %j under KEY_ON_FAILURE=block', async (state, go, block) => {
    await setKeyOnFailure(ledger.pool, 'block')
    await ledger.capture(line(3))
    await send(ledger.dispatch(), state === 'accepted' ? accepted() : ({ state } as GivenChange))
    expect(await room()).toMatchObject({ exceptKeys: block })
    await setKeyOnFailure(ledger.pool, 'continue')
    expect(await room()).toMatchObject({ exceptKeys: go })
  })

  test('is done by one instance at a time', async () => {
    const both = await captureLock().withLock(() => captureLock().withLock(async () => 'both'))
    expect(both).toBeNull()
    expect(await captureLock().withLock(async () => 'after')).toBe('after')
  })

  test('keeps nothing if its work fails', async () => {
    const failing = captureLock().withLock(async (turn) => {
      await turn.insert([record()], 'once')
      throw new Error('the outbox is away')
    })
    await expect(failing).rejects.toThrow('away')
    expect(await ledger.countStates()).toEqual({})
  })
})
