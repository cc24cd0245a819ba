import { expect, test } from 'vitest'
import { createCaptureRounds } from '../../../src/daemon/capture/capture.ts'
import type { CaptureSession } from '../../../src/ledger/capture.ts'
import type { OutboxRecord } from '../../../src/model/outbox.ts'
import type { ClaimedRows } from '../../../src/outbox/claimRows.ts'
import type { OpenTable } from '../../../src/outbox/openTable.ts'

const rowOf = (id: number): OutboxRecord => ({
  outboxId: String(id),
  type: 'order',
  key: null,
  payload: '{}',
  unreadable: null,
  createdAt: null,
  created: null,
})

/** An outbox with `rows` rows, and a ledger with room for `windowMax` of them at once. */
function setup(given: {
  rows?: number
  windowMax?: number
  isLocked?: boolean
  isAsleep?: boolean
  mayCapture?: boolean
}) {
  const state = {
    rows: 0,
    windowMax: 100,
    isLocked: false,
    mayCapture: true,
    isAsleep: false,
    ...given,
  }
  const calls: string[] = []
  const session: CaptureSession = {
    db: { query: () => Promise.reject(new Error('no database')) },
    queued: 0,
    waitingKeys: [],
    skipped: [],
    heldTypes: [],
    mayCapture: state.mayCapture,
    insert: async () => ({ leftOutIds: new Set(), discarded: new Map() }),
  }
  const claimed = (count: number): ClaimedRows => {
    const rows = Array.from({ length: count }, (_, i) => rowOf(i))
    return {
      outboxIds: rows.map(({ outboxId }) => outboxId),
      table: { form: 'marked' } as OpenTable,
      stablePosition: null,
    }
  }
  const rounds = createCaptureRounds({
    capture: {
      queuedMax: state.windowMax,
      async claim(_, { limit }) {
        const count = Math.min(limit, state.rows)
        state.rows -= count
        return claimed(count)
      },
      claimOne: async () => ({ ...claimed(0), key: null }),
      readClaimedRows: async (_, { outboxIds }) => outboxIds.map((_, i) => rowOf(i)),
      markRows: async () => [],
      hasToWaitForKey: async () => false,
      readRecordContents: async (records) => [...records],
      withLock: async (work) => (state.isLocked ? null : work(session)),
      readDueCaptureWork: async () => ({ dueId: null, hasHeldTypes: false, hasNewRows: async () => state.rows > 0 }),
      skipRows: async () => {},
      forgetSkippedRow: async () => {},
      stopCaptureOfTypeBriefly: async () => {},
      resumeCaptureOfTypes: async () => {},
      reportLater: async () => {},
      map: () => ({ kind: 'mapped', resource: 'data', tracked: true, sendsOwnId: false, body: '{}', amounts: {} }),
      newId: () => 'id',
      newKey: () => 'key',
      faultOf: () => ({ blame: 'everyone', type: null, message: '', code: '' }),
      onCaptured: ({ length }) => calls.push(`captured ${length}`),
      onBatchFailed: () => {},
      onRowRejected: () => {},
      onRowSkipped: () => {},
    },
    sleepFlagKeeper: {
      isAsleep: () => state.isAsleep,
      stayAwake: () => calls.push('stay awake'),
      fallAsleep: async (took) => void calls.push(`fall asleep after ${took}`),
    },
    random: () => 0.5,
  })
  return { ...rounds, calls, state }
}

test('a round that leaves rows is followed at once, and inserts need not notify', async () => {
  const { runOnce, calls } = setup({ rows: 5, windowMax: 3 })
  expect(await runOnce()).toBe(0)
  expect(calls).toEqual(['captured 3', 'stay awake'])
})

test('after the last rows capture falls asleep with the number of rows it took', async () => {
  const { runOnce, calls, state } = setup({ rows: 2 })
  expect(await runOnce()).toBe(1_000)
  state.rows = 1
  await runOnce()
  expect(calls.filter((call) => call.startsWith('fall'))).toEqual(['fall asleep after 2', 'fall asleep after 1'])
})

test('without new rows capture sleeps, and looks again after a second', async () => {
  const { runOnce, calls } = setup({})
  expect(await runOnce()).toBe(1_000)
  expect(calls).toEqual(['fall asleep after 0'])
})

test('while new rows notify this instance, it looks for others every five seconds', async () => {
  const { runOnce } = setup({ isAsleep: true })
  expect(await runOnce()).toBe(5_000)
})

test('if another instance captures, this one looks again after a short random time', async () => {
  const { runOnce, calls } = setup({ rows: 5, isLocked: true })
  expect(await runOnce()).toBe(60)
  expect(calls).toEqual([])
})

test('while this instance may not capture, nothing is captured, and capture looks again after a second', async () => {
  const { runOnce, calls } = setup({ rows: 5, mayCapture: false })
  expect(await runOnce()).toBe(1_000)
  expect(calls).not.toContain('captured 5')
})
