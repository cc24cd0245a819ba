import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { type CaptureDeps, captureOnce } from '../../src/capture/capture.ts'
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
    windowMost: 1_000,
    hasNew: outbox.hasNew,
    claim: outbox.claim,
    takeTurn: turns.take,
    map: ({ type }) =>
      type === 'wrong'
        ? { kind: 'refused', resource: null, reason: 'it does not map' }
        : { kind: 'mapped', resource: 'data', tracked: true, sendsOwnId: false, body: '{}' },
    newId: randomUUID,
    newKey: randomUUID,
    kept() {},
    async unmarked() {},
    ...changes,
  }
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
  expect(await captureOnce(deps())).toBe(false)
  expect(await statuses()).toEqual({ queued: 3, rejected: 2 })
  expect(await ledger.countStates()).toEqual({ queued: 3, rejected: 2 })
})

test('what is beyond the window stays in the outbox', async () => {
  await insert(5)
  expect(await captureOnce(deps({ windowMost: 3 }))).toBe(true)
  expect(await captureOnce(deps({ windowMost: 3 }))).toBe(false)
  expect(await statuses()).toEqual({ new: 2, queued: 3 })
})

test('a crash after the ledger was written and before the rows were marked changes nothing but that they are marked later', async () => {
  await insert(2)
  const { claim } = deps()
  const dies = deps({
    async claim(...asked) {
      const rows = await claim(...asked)
      return { ...rows, mark: () => Promise.reject(new Error('killed')) }
    },
  })
  await expect(captureOnce(dies)).rejects.toThrow('killed')
  expect(await statuses()).toEqual({ new: 2 })
  expect(await ledger.countStates()).toEqual({ queued: 2 })

  await captureOnce(deps())
  expect(await statuses()).toEqual({ queued: 2 })
  expect(await ledger.countStates()).toEqual({ queued: 2 })
  const { rows } = await ledger.pool.query('select count(*)::int as due from outboxd.submission where report_due')
  expect(rows).toEqual([{ due: 2 }])
})

test('where the ledger cannot be written the rows stay as new as they were', async () => {
  await insert(2)
  const { takeTurn } = deps()
  const fails = deps({
    takeTurn: (work) => takeTurn((turn) => work({ ...turn, keep: () => Promise.reject(new Error('away')) })),
  })
  await expect(captureOnce(fails)).rejects.toThrow('away')
  expect(await statuses()).toEqual({ new: 2 })
  await captureOnce(deps())
  expect(await statuses()).toEqual({ queued: 2 })
})

test('only one instance captures at a time', async () => {
  await insert(2)
  const other = createCaptureTurns({ pool: ledger.pool, who: 'other', keyOnFailure: 'continue' })
  await other.take(async () => {
    expect(await captureOnce(deps())).toBe(false)
  })
  expect(await statuses()).toEqual({ new: 2 })
})

test('a long line of one key does not fill the window: the rest of it stays in the outbox, and others pass', async () => {
  await insert(30, 'data', 'crowded')
  await captureOnce(deps())
  await insert(10, 'data', 'crowded')
  await insert(4)
  await captureOnce(deps())
  expect(await statuses()).toEqual({ new: 10, queued: 34 })
})
