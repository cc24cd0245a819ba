import { expect, test } from 'vitest'
import { createSettler } from '../../src/dispatch/settler.ts'
import type { Settlement, SpentSlot } from '../../src/record.ts'
import { submission } from '../support/submission.ts'

const passing = new Error('the database is away')
const refusal = new Error('refused')
const lock = new Error('somebody has it locked')

const work = (id: string | null, given: Partial<Omit<Settlement, 'transitions' | 'slots'>> = {}) => ({
  transition:
    id === null ? null : { submission: submission({ id }), job: null, change: { state: 'failed' as const }, cause: '' },
  pauses: [],
  passages: [],
  refusals: [],
  wayIsClear: false,
  probeOver: false,
  remaining: null,
  ...given,
})

const idsOf = ({ transitions }: Settlement) => transitions.map(({ submission }) => submission.id)

/** A settler whose writes wait until they are let through, or fail as `fate` says. */
function setup({ fate = () => null }: { fate?: (settlement: Settlement, nth: number) => Error | null } = {}) {
  const writes: Settlement[] = []
  const settled: string[] = []
  const gaveUp: string[][] = []
  const waits: number[] = []
  const doors: (() => void)[] = []
  let spent: SpentSlot[] = []
  let open = true
  const settler = createSettler<string[]>({
    nowMs: () => 7,
    async settle(settlement) {
      writes.push(settlement)
      const nth = writes.length
      if (!open) await new Promise<void>((resolve) => doors.push(resolve))
      const error = fate(settlement, nth)
      if (error) throw error
      return idsOf(settlement)
    },
    takeSpent: () => spent.splice(0),
    isRefusal: (error) => error === refusal,
    isLock: (error) => error === lock,
    settled: (ids) => settled.push(...ids),
    failed: () => {},
    gaveUp: (_, settlement) => gaveUp.push(idsOf(settlement)),
    async waitMs(ms) {
      waits.push(ms)
      await new Promise(setImmediate)
    },
  })
  return {
    settler,
    writes,
    settled,
    gaveUp,
    waits,
    spend: (slots: SpentSlot[]) => {
      spent = slots
    },
    shut: () => {
      open = false
    },
    letThrough: () => {
      open = true
      for (const door of doors.splice(0)) door()
    },
  }
}

test('idle, one piece is written at once, with the slots that can go back', async () => {
  const { settler, writes, spend } = setup()
  const slot = { id: 1, lease: '1', permits: 1, used: true, submissions: 1 }
  spend([slot])
  await settler.add(work('a'))
  expect(writes.map(idsOf)).toEqual([['a']])
  expect(writes[0]?.slots).toEqual([slot])
})

test('one write at a time, the next taking all that has gathered in between', async () => {
  const { settler, writes, shut, letThrough } = setup()
  shut()
  const added = ['a', 'b', 'c', 'd'].map((id) => settler.add(work(id)))
  expect(writes.map(idsOf)).toEqual([['a']])
  letThrough()
  await Promise.all(added)
  expect(writes.map(idsOf)).toEqual([['a'], ['b', 'c', 'd']])
})

test('a group carries every pause, the least that remains, and whether the way is clear or a probe is over', async () => {
  const { settler, writes, shut, letThrough } = setup()
  const pause = { reason: 'throttled', askedMs: null, detail: 'x' } as const
  shut()
  const added = [
    settler.add(work('a')),
    settler.add(work('b', { pauses: [pause], remaining: 7 })),
    settler.add(work('c', { pauses: [pause], remaining: 3, wayIsClear: true })),
    settler.add(work(null, { probeOver: true })),
  ]
  letThrough()
  await Promise.all(added)
  expect(writes[0]).toMatchObject({ pauses: [], remaining: null, wayIsClear: false, probeOver: false })
  expect(writes[1]).toMatchObject({ pauses: [pause, pause], remaining: 3, wayIsClear: true, probeOver: true })
})

test('what is added counts as done only when it is written', async () => {
  const { settler, shut, letThrough } = setup()
  shut()
  let done = false
  const added = settler.add(work('a')).then(() => {
    done = true
  })
  await new Promise(setImmediate)
  expect(done).toBe(false)
  letThrough()
  await added
  expect(done).toBe(true)
})

test('a write that fails in passing is repeated as it is until it succeeds', async () => {
  const { settler, writes, settled, waits } = setup({ fate: (_, nth) => (nth <= 5 ? passing : null) })
  await Promise.all([settler.add(work('a')), settler.add(work('b'))])
  expect(writes.map(idsOf)).toEqual([['a'], ['a'], ['a'], ['a'], ['a'], ['a'], ['b']])
  expect(settled).toEqual(['a', 'b'])
  expect(waits).toEqual([500, 500, 500, 500, 500])
})

test('a piece that the database refuses is written apart, and given up alone', async () => {
  const fate = (settlement: Settlement) => (idsOf(settlement).includes('bad') ? refusal : null)
  const { settler, settled, gaveUp, shut, letThrough, spend, writes } = setup({ fate })
  shut()
  const slot = { id: 1, lease: '1', permits: 1, used: true, submissions: 1 }
  const added = ['first', 'a', 'bad', 'b'].map((id) => settler.add(work(id, { remaining: 5 })))
  spend([slot])
  letThrough()
  await Promise.all(added)
  expect(settled).toEqual(['first', 'a', 'b'])
  expect(gaveUp).toEqual([['bad']])
  expect(writes.filter(({ slots }) => slots.length > 0).map(idsOf)).toEqual([['a', 'bad', 'b'], []])
})

test('a piece that somebody’s lock holds up is written when that lets go, and no other waits for it', async () => {
  let isLocked = true
  const fate = (settlement: Settlement) => (isLocked && idsOf(settlement).includes('held') ? lock : null)
  const { settler, settled, shut, letThrough, spend, writes } = setup({ fate })
  shut()
  const slot = { id: 1, lease: '1', permits: 1, used: true, submissions: 1 }
  const added = ['first', 'a', 'held', 'b'].map((id) => settler.add(work(id)))
  spend([slot])
  letThrough()
  await Promise.all([added[0], added[1], added[3]])
  await settler.add(work('later'))
  expect(settled).toEqual(['first', 'a', 'b', 'later'])
  expect(settler.unwritten()).toEqual([{ submissionId: 'held', sinceMs: 7, error: lock }])
  expect(writes.filter(({ slots }) => slots.length > 0).map(idsOf)).toEqual([['a', 'held', 'b'], []])
  isLocked = false
  await Promise.all(added)
  expect(settled.at(-1)).toBe('held')
  expect(settler.unwritten()).toEqual([])
})

test('a single piece that the database refuses keeps nobody waiting (it blocked all later outcomes for ever)', async () => {
  const fate = (settlement: Settlement) => (idsOf(settlement).includes('bad') ? refusal : null)
  const { settler, settled, gaveUp } = setup({ fate })
  await Promise.all([settler.add(work('bad')), settler.add(work('good'))])
  expect(gaveUp).toEqual([['bad']])
  expect(settled).toEqual(['good'])
})

test('a pause that the database refuses keeps no outcome from being written', async () => {
  const { settler, settled, gaveUp } = setup({ fate: ({ pauses }) => (pauses.length > 0 ? refusal : null) })
  await settler.add(work('a', { pauses: [{ reason: 'throttled', askedMs: null, detail: '' }] }))
  expect(settled).toEqual(['a'])
  expect(gaveUp).toEqual([[]])
})

test('of many pieces with failures of both kinds in between, none is forgotten and none is settled twice', async () => {
  let nth = 0
  const fate = (settlement: Settlement) => {
    nth += 1
    if (nth % 3 === 0) return passing
    return idsOf(settlement).includes('17') ? refusal : null
  }
  const { settler, settled, gaveUp } = setup({ fate })
  const ids = Array.from({ length: 50 }, (_, i) => String(i))
  await Promise.all(
    ids.map(async (id, i) => {
      for (let turns = 0; turns < i % 7; turns++) await new Promise(setImmediate)
      await settler.add(work(id))
    }),
  )
  expect(settled.toSorted()).toEqual(ids.filter((id) => id !== '17').toSorted())
  expect(gaveUp).toEqual([['17']])
})
