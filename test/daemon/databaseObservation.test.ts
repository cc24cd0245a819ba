import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { InstanceDatabases } from '../../src/daemon/instanceDatabases.ts'
import { backlogCountIntervalMs, createDatabaseObservation, toMetricsSnapshot } from '../../src/daemon/maintenance.ts'
import { writeHeartbeat } from '../../src/ledger/instances.ts'
import type { LedgerSnapshot } from '../../src/ledger/snapshot.ts'
import { type State, states } from '../../src/model/submission.ts'
import type { OpenTable } from '../../src/outbox/openTable.ts'
import { contextOf, openInstance } from '../support/daemonContext.ts'
import { openLedgerForFile, setSettings } from '../support/ledger.ts'

const database = openLedgerForFile()
let databases: InstanceDatabases
beforeAll(async () => {
  databases = await openInstance(database.url, { RATE_LIMIT_REQUESTS: '50' })
})
afterAll(() => databases.close())
beforeEach(() => setSettings(database.pool, databases.ownSettings))

const sql = (text: string) => database.pool.query(text)
const fillOutbox = (rows: number) =>
  sql(`insert into outbox (type, payload) select 'data', '{}' from generate_series(1, ${rows})`)

/** An outbox that says `waiting.rows` rows wait, and counts in `waiting.counts` how often it was asked. */
function saying(
  outbox: InstanceDatabases['outbox'],
  waiting: { rows: number | null; counts: number },
): InstanceDatabases['outbox'] {
  const countingOn = (db: OpenTable['db']) =>
    replaced(db, {
      async query(text: string, values: unknown[]) {
        if (!text.includes('as waiting')) return db.query(text, values)
        waiting.counts += 1
        if (waiting.rows === null) throw new Error('the outbox is away')
        return { rows: [{ waiting: waiting.rows, oldest: null }] }
      },
    })
  return replaced(outbox, {
    queryTable: (question: (table: OpenTable) => Promise<unknown>) =>
      outbox.queryTable((table) => question({ ...table, db: countingOn(table.db) })),
  })
}

/** The same object with other members. */
function replaced<T extends object>(object: T, others: Record<string, unknown>): T {
  return new Proxy(object, {
    get(target, member) {
      if (typeof member === 'string' && member in others) return others[member]
      const value = Reflect.get(target, member)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}

/** @param waiting number of rows that the outbox says wait; null: the outbox is away */
function setup(waiting?: { rows: number | null; counts: number }, hasLedgersSettings = false) {
  const outbox = waiting === undefined ? databases.outbox : saying(databases.outbox, waiting)
  const { context, ...told } = contextOf({ ...databases, outbox })
  const backlog: number[] = []
  const observing = createDatabaseObservation(context, {
    heartbeat: { hasLedgersSettings },
    planner: { noteOutboxRowsWaiting: (rows) => void backlog.push(rows) },
  })
  const shown = () =>
    told.toldOf('metrics.setSnapshot').map(([, snapshot]) => (snapshot as { outboxWaiting: number }).outboxWaiting)
  return { ...observing, ...told, backlog, shown, warned: () => told.toldOf('log.warn').map(([, event]) => event) }
}

test('a round shows the ledger’s numbers at once, and the outbox’s backlog after it was counted', async () => {
  await fillOutbox(7)
  const { runOnce, told, toldOf, shown, backlog } = setup()
  expect(await runOnce()).toBe(10_000)
  expect(told[0]).toEqual(['metrics.databaseUp', 1])
  expect([shown(), backlog]).toEqual([[0, 7], [7]])
  expect(toldOf('log.warn')).toEqual([])
})

test('while the outbox is away, the ledger’s numbers are shown with the last known backlog', async () => {
  const outbox = { rows: 7 as number | null, counts: 0 }
  const { runOnce, shown, time } = setup(outbox)
  await runOnce()
  outbox.rows = null
  time.ms = 10_000
  await expect(runOnce()).rejects.toThrow('away')
  expect(shown()).toEqual([0, 7, 7])
})

test('a million waiting rows are counted once in 250 s, and the last count is shown meanwhile', async () => {
  const outbox = { rows: 1_000_000, counts: 0 }
  const { runOnce, backlog, time } = setup(outbox)
  for (time.ms of [0, 10_000, 240_000, 250_000]) await runOnce()
  expect([outbox.counts, backlog]).toEqual([2, Array(4).fill(1_000_000)])
})

test('the more rows wait, the less often they are counted', () => {
  expect([0, 1, 40_000, 80_000, 1_000_000, 1e9].map(backlogCountIntervalMs)).toEqual([
    10_000, 10_000, 10_000, 20_000, 250_000, 600_000,
  ])
})

function observe(on: InstanceDatabases, hasLedgersSettings: boolean) {
  const { context, ...told } = contextOf(on)
  const planner = { noteOutboxRowsWaiting() {} }
  return { observing: createDatabaseObservation(context, { heartbeat: { hasLedgersSettings }, planner }), ...told }
}

test('the daemon begins anew when the ledger gets other settings', async () => {
  const { runOnce, toldOf } = setup()
  await runOnce()
  expect(toldOf('begins anew')).toEqual([])
  const other = randomUUID()
  const settings = { ...databases.ownSettings, KEY_ON_FAILURE: 'block' }
  await writeHeartbeat(database.pool, { id: other, version: 'test', host: 'other', settings })
  await setSettings(database.pool, settings)
  await runOnce()
  expect(toldOf('begins anew')).toHaveLength(1)
  await sql(`delete from outboxd.instance where id = '${other}'`)
  await runOnce() // sets its own again
  expect(toldOf('begins anew')).toHaveLength(1)
})

test('a daemon whose own settings another one has set begins anew, as it still acts on the former', async () => {
  const { ownSettings } = databases
  const former = { ...ownSettings, KEY_ON_FAILURE: 'block' }
  const differing = { ...databases, ledgerSettings: former, differences: 'KEY_ON_FAILURE is continue, not block' }
  const { observing, toldOf } = observe(differing, true)
  await observing.runOnce()
  expect(toldOf('begins anew')).toHaveLength(1)
})

test('a daemon that has the ledger’s settings does not read them again', async () => {
  const { observing, toldOf } = observe({ ...databases, ledgerSettings: {} }, true)
  await observing.runOnce()
  expect(toldOf('begins anew')).toEqual([])
})

test('the daemon begins anew also while the ledger’s numbers cannot be read', async () => {
  const ledger = replaced(databases.ledger, {
    async query(text: string, values: unknown[]) {
      if (text.includes('"daemonConnected"')) throw new Error('canceling statement due to statement timeout')
      return databases.ledger.query(text, values)
    },
  })
  const { context, toldOf } = contextOf({ ...databases, ledger })
  const settings = { ...databases.ownSettings, KEY_ON_FAILURE: 'block' }
  await writeHeartbeat(database.pool, { id: randomUUID(), version: 'test', host: 'other', settings })
  await setSettings(database.pool, settings)
  await expect(
    createDatabaseObservation(context, {
      heartbeat: { hasLedgersSettings: false },
      planner: { noteOutboxRowsWaiting() {} },
    }).runOnce(),
  ).rejects.toThrow('timeout')
  expect(toldOf('begins anew')).toHaveLength(1)
})

const ledger = (oldestUnsentMs: number | null): LedgerSnapshot => ({
  submissions: Object.fromEntries(states.map((state) => [state, 0])) as Record<State, number>,
  nowMs: 10,
  probing: 0,
  oldestUnsentMs,
  oldestAcceptedMs: null,
  changedAfterSent: 0,
  oldestForPersonMs: null,
  pauses: [{ reason: 'throttled', sinceMs: 0, untilMs: null, detail: '' }],
  problems: {},
  rateCapacity: 100,
  rateWindowMs: 60_000,
  rateAvailable: 40,
  rateHeldBack: 0,
  reportsDue: 0,
  oldestReportDueMs: null,
  instances: [],
  lastSilentMs: null,
  daemonConnected: false,
})

test('the oldest unsent row is the older of those in the ledger and the outbox', () => {
  const oldest = (inLedger: number | null, inOutbox: number | null) =>
    toMetricsSnapshot(ledger(inLedger), { waiting: 0, oldestMs: inOutbox }).oldestUnsentMs
  expect([oldest(null, null), oldest(5, null), oldest(null, 7), oldest(5, 7), oldest(9, 7)]).toEqual([null, 5, 7, 5, 7])
})

test('the metrics have the reasons of the pauses, and the backlog of the outbox', () => {
  expect(toMetricsSnapshot(ledger(null), { waiting: 3, oldestMs: null })).toMatchObject({
    pauses: ['throttled'],
    outboxWaiting: 3,
    rateAvailable: 40,
  })
})
