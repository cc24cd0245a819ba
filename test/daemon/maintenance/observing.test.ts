import { expect, test } from 'vitest'
import { countEveryMs, createObserving } from '../../../src/daemon/maintenance/observing.ts'

function setup() {
  const agreed = { requests: 50, windowMs: 60_000, before: null as unknown, differences: [] as { detail: string }[] }
  const outbox = { isAway: false, waiting: 7 }
  const clock = { nowMs: 0 }
  const calls: string[] = []
  const warned: string[] = []
  const observing = createObserving({
    watchDatabases: async () => void calls.push('databases'),
    agreeOnSettings: async () => agreed,
    warn: (event) => warned.push(event),
    readLedger: async () => 'ledger',
    elapsedMs: () => clock.nowMs,
    async readBacklog() {
      calls.push('counted')
      if (outbox.isAway) throw new Error('the outbox is away')
      return { waiting: outbox.waiting }
    },
    show: (ledger, backlog) => calls.push(`${ledger} with ${backlog?.waiting ?? 'nothing'}`),
    takeOperatorActs: async () => 'acts',
    onOperatorActs: (acts) => calls.push(acts),
    sawWaiting: async (rows) => void calls.push(`${rows} wait`),
    watchLocks: async () => void calls.push('locks'),
    tellCaptureProblems: async () => void calls.push('capture problems'),
  })
  return { ...observing, outbox, clock, agreed, calls, warned }
}

test('what the databases say now goes to whoever shows it', async () => {
  const { runOnce, calls, warned } = setup()
  expect(await runOnce()).toBe(5_000)
  expect(calls).toEqual([
    'databases',
    'ledger with nothing',
    'acts',
    'counted',
    'ledger with 7',
    '7 wait',
    'locks',
    'capture problems',
  ])
  expect(warned).toEqual([])
})

test('while the outbox is away what the ledger says is shown, with the backlog as it was last seen', async () => {
  const { runOnce, calls, clock, outbox } = setup()
  await runOnce()
  calls.length = 0
  outbox.isAway = true
  clock.nowMs = 5_000
  await expect(runOnce()).rejects.toThrow('away')
  expect(calls).toEqual(['databases', 'ledger with 7', 'acts', 'counted'])
})

test('a million waiting rows are counted once in 250 s, and what was counted is shown meanwhile', async () => {
  const { runOnce, calls, clock, outbox } = setup()
  outbox.waiting = 1_000_000
  for (const nowMs of [0, 5_000, 245_000, 250_000]) {
    clock.nowMs = nowMs
    await runOnce()
  }
  expect(calls.filter((call) => call === 'counted')).toHaveLength(2)
  expect(calls.filter((call) => call === '1000000 wait')).toHaveLength(4)
})

test('the more rows wait, the less often they are counted, so that counting costs no more', () => {
  expect([0, 1, 20_000, 40_000, 1_000_000, 1e9].map(countEveryMs)).toEqual([
    5_000, 5_000, 5_000, 10_000, 250_000, 600_000,
  ])
})

test('a limit that becomes another for all is said once', async () => {
  const { runOnce, agreed, warned } = setup()
  agreed.before = { requests: 100, windowMs: 60_000 }
  await runOnce()
  agreed.before = null
  await runOnce()
  expect(warned).toEqual(['for all instances 50 requests in 60 s hold now'])
})

test('settings that differ are said when they begin to, and when they no longer do', async () => {
  const { runOnce, agreed, warned } = setup()
  agreed.differences = [{ detail: 'RATE_LIMIT_REQUESTS differs' }]
  await runOnce()
  await runOnce()
  agreed.differences = []
  await runOnce()
  expect(warned).toEqual(['RATE_LIMIT_REQUESTS differs', 'the settings of the instances no longer differ'])
})
