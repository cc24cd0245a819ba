import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { holdBackSurplusPermits, returnSlots, takeSlots } from '../../../src/ledger/budget.ts'
import { type BusySlot, readBudgetSlots } from '../../../src/ledger/snapshot.ts'
import { fitSlotsToBudget, type Ledger, openLedger } from '../../support/ledger.ts'

let ledger: Ledger
beforeAll(async () => {
  ledger = await openLedger()
})
afterAll(() => ledger[Symbol.asyncDispose]())
beforeEach(() => ledger.reset())

const take = (permits: number) => takeSlots(ledger.pool, permits, 36_000, randomUUID())
const seen = ({ isTaken, submissions, polls, others }: BusySlot) => ({ isTaken, submissions, polls, others })
const nothing = { isTaken: false, submissions: 0, polls: 0, others: 0 }

test('without a budget there are no slots', async () => {
  expect(await readBudgetSlots(ledger.pool)).toMatchObject({ capacity: 0, windowMs: 0, busy: [] })
})

test('each busy slot says what its request was for, or that it is in hand', async () => {
  await fitSlotsToBudget(ledger.pool, 10)
  const spent = async (kinds: { submissions?: number; polls?: number; others?: number }) =>
    returnSlots(
      ledger.pool,
      (await take(1)).map((slot) => ({ ...slot, used: true, submissions: 0, polls: 0, others: 0, ...kinds })),
    )
  await spent({ submissions: 1 })
  await spent({ polls: 1 })
  await spent({ others: 1 })
  await take(1)
  await returnSlots(
    ledger.pool,
    (await take(1)).map((slot) => ({ ...slot, used: false, submissions: 0, polls: 0, others: 0 })),
  )
  const { capacity, windowMs, busy, nowMs } = await readBudgetSlots(ledger.pool)
  expect({ capacity, windowMs }).toEqual({ capacity: 10, windowMs: 60_000 })
  expect(busy.map(seen)).toEqual([
    { ...nothing, submissions: 1 },
    { ...nothing, polls: 1 },
    { ...nothing, others: 1 },
    { ...nothing, isTaken: true },
  ])
  expect(nowMs - (busy[0]?.setMs ?? 0)).toBeLessThan(30_000)
  expect((busy[0]?.freeMs ?? 0) - (busy[0]?.setMs ?? 0)).toBeCloseTo(60_000, -2)
})

test('a slot that is held back counts as spent on nothing, whatever it was spent on before', async () => {
  await fitSlotsToBudget(ledger.pool, 10)
  await returnSlots(
    ledger.pool,
    (await take(10)).map((slot) => ({ ...slot, used: true, submissions: 0, polls: 1, others: 0 })),
  )
  await ledger.pool.query(`update outboxd.slot set free_at = now() - interval '1 s'`)
  expect(await holdBackSurplusPermits(ledger.pool, 2, 0)).toBe(8)
  expect((await readBudgetSlots(ledger.pool)).busy.map(seen)).toEqual(Array(8).fill(nothing))
})
