import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { type CaptureDeps, createCapture } from '../../src/capture/capture.ts'
import { blameFor } from '../../src/store/database.ts'
import { createCaptureTurns } from '../../src/store/ledger/captureTurn.ts'
import { openOutbox } from '../../src/store/outbox.ts'
import { type Ledger, openLedger } from '../support/ledger.ts'

let ledger: Ledger
beforeAll(async () => {
  ledger = await openLedger()
})
beforeEach(() => ledger.reset())
afterAll(() => ledger[Symbol.asyncDispose]())

function deps(changes: Partial<CaptureDeps> = {}): CaptureDeps {
  const outbox = openOutbox(ledger.pool, 'outbox', 1_000_000, ledger.pool)
  const turns = createCaptureTurns({ pool: ledger.pool, who: 'test', keyOnFailure: 'continue' })
  return {
    windowMax: 1_000,
    knownTypes: () => ['data', 'wrong'],
    hasNew: outbox.hasNew,
    claim: outbox.claim,
    claimOne: outbox.claimOne,
    takeTurn: turns.take,
    readAgenda: turns.readAgenda,
    skip: turns.skip,
    forget: turns.forget,
    async tellLater() {},
    map: ({ type, payload, unreadable }) =>
      type === 'wrong' || unreadable !== null
        ? { kind: 'refused', resource: null, reason: unreadable ?? 'it does not map' }
        : { kind: 'mapped', resource: 'data', tracked: true, sendsOwnId: false, body: payload ?? '{}' },
    newId: randomUUID,
    newKey: randomUUID,
    faultOf: (error, isMark) => ({ blame: blameFor(error, isMark), words: String(error), code: codeOf(error) }),
    onCaptured() {},
    onBatchFailed() {},
    onRowRejected() {},
    onRowSkipped() {},
    ...changes,
  }
}

const codeOf = (error: unknown) => String((error as { code?: unknown }).code)
const captureOnce = (changes: Partial<CaptureDeps> = {}) => createCapture(deps(changes)).runOnce()

/** Until nothing is left to do at once. @returns how many rounds that took */
async function captureAll(changes: Partial<CaptureDeps> = {}): Promise<number> {
  const capture = createCapture(deps(changes))
  let rounds = 1
  while ((await capture.runOnce()) !== 'idle') rounds += 1
  return rounds
}

const insert = (rows: number, type = 'data', key: string | null = null) =>
  ledger.pool.query(`insert into outbox (type, key, payload) select $1, $2, '{}' from generate_series(1, $3)`, [
    type,
    key,
    rows,
  ])

async function statuses(): Promise<Record<string, number>> {
  const { rows } = await ledger.pool.query('select status, count(*)::int as n from outbox group by status')
  return Object.fromEntries(rows.map(({ status, n }) => [status, n]))
}

test('rows become submissions, and say what has become of them', async () => {
  await insert(3)
  await insert(2, 'wrong')
  expect(await captureOnce()).toBe('idle')
  expect(await statuses()).toEqual({ queued: 3, rejected: 2 })
  expect(await ledger.countStates()).toEqual({ queued: 3, rejected: 2 })
})

test('what is beyond the window stays in the outbox', async () => {
  await insert(5)
  expect(await captureOnce({ windowMax: 3 })).toBe('again')
  expect(await captureOnce({ windowMax: 3 })).toBe('idle')
  expect(await statuses()).toEqual({ new: 2, queued: 3 })
})

test('a crash after the ledger was written and before the rows were marked changes nothing but that they are marked later', async () => {
  await insert(2)
  const { claim } = deps()
  const dies: Partial<CaptureDeps> = {
    async claim(request) {
      const rows = await claim(request)
      return { ...rows, mark: () => Promise.reject(new Error('Connection terminated')) }
    },
  }
  await expect(captureOnce(dies)).rejects.toThrow('terminated')
  expect(await statuses()).toEqual({ new: 2 })
  expect(await ledger.countStates()).toEqual({ queued: 2 })

  await captureOnce()
  expect(await statuses()).toEqual({ queued: 2 })
  expect(await ledger.countStates()).toEqual({ queued: 2 })
  const { rows } = await ledger.pool.query('select count(*)::int as due from outboxd.submission where report_due')
  expect(rows).toEqual([{ due: 2 }])
})

test('where the ledger cannot be written the rows stay as new as they were', async () => {
  await insert(2)
  const { takeTurn } = deps()
  const fails: Partial<CaptureDeps> = {
    takeTurn: (work) => takeTurn((turn) => work({ ...turn, keep: () => Promise.reject(new Error('timeout')) })),
  }
  await expect(captureOnce(fails)).rejects.toThrow('timeout')
  expect(await statuses()).toEqual({ new: 2 })
  await captureOnce()
  expect(await statuses()).toEqual({ queued: 2 })
})

test('only one instance captures at a time', async () => {
  await insert(2)
  const other = createCaptureTurns({ pool: ledger.pool, who: 'other', keyOnFailure: 'continue' })
  await other.take(async () => {
    expect(await captureOnce()).toBe('busy')
  })
  expect(await statuses()).toEqual({ new: 2 })
})

test('no key takes more than a small part of the window: the rest of it stays in the outbox, and others pass', async () => {
  await insert(700, 'data', 'crowded')
  await insert(4)
  await captureAll()
  expect(await statuses()).toEqual({ new: 675, queued: 29 })
  await captureAll()
  expect((await statuses()).new).toBe(675 - 25) // 24 of the first wait behind their head, which is fewer than 25
  await captureAll()
  expect((await statuses()).new).toBe(675 - 25)
})

test('what waits behind a record that is held for a person takes no place: healthy rows are captured', async () => {
  const line = (key: string) => Array.from({ length: 500 }, (_, i) => ({ key, outboxId: `${key}${i}` }))
  await ledger.capture([...line('a'), ...line('b')])
  await ledger.pool.query(`update outboxd.submission set state = 'uncertain', held = false, due_at = null, ended_at = now()
    where seq in (select min(seq) from outboxd.submission group by key)`)
  await insert(10)
  await insert(10, 'data', 'a')
  await captureAll()
  expect(await statuses()).toEqual({ queued: 10, new: 10 })
})
