import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { InstanceDatabases } from '../../src/daemon/instanceDatabases.ts'
import { createMaintenanceLoops, type MaintenanceParts } from '../../src/daemon/maintenance.ts'
import { writeHeartbeat } from '../../src/ledger/instances.ts'
import type { Answer } from '../../src/model/service.ts'
import type { Submission } from '../../src/model/submission.ts'
import { asChange, type GivenChange } from '../support/change.ts'
import { contextOf, openInstance } from '../support/daemonContext.ts'
import { claim, openLedgerForFile, outcomeBatch, setSettings, transition } from '../support/ledger.ts'
import { endAgo } from '../support/retention.ts'

const ledger = openLedgerForFile()
let databases: InstanceDatabases
beforeAll(async () => {
  databases = await openInstance(ledger.url, { RETENTION_DAYS: '30' })
})
afterAll(() => databases.close())
beforeEach(() => setSettings(ledger.pool, databases.ownSettings))

interface Given {
  env?: Record<string, string>
  on?: Partial<InstanceDatabases>
  dispatch?: Partial<MaintenanceParts['dispatch']>
}

/** The maintenance parts of an instance; `dispatch` says what the dispatcher has in hand. */
function setup({ env = {}, on = {}, dispatch = {} }: Given = {}) {
  const { context, ...told } = contextOf({ ...databases, ...on }, env)
  const interpreted: Answer[] = []
  const stopping = new AbortController()
  const backlog: number[] = []
  const heartbeat = { isClockBack: false, hasLedgersSettings: false }
  const services = createMaintenanceLoops(context, {
    dispatch: { holds: () => false, holdsPoll: () => false, ...dispatch },
    attempts: {
      interpretAnswer(_, answer) {
        interpreted.push(answer)
        const change = asChange({ state: 'uncertain', error: 'in doubt', errorCode: null })
        return { step: { change, cause: 'uncertain', message: 'in doubt', pause: null }, answer, breach: null }
      },
    },
    heartbeat,
    planner: { noteOutboxRowsWaiting: (rows) => void backlog.push(rows) },
    onWritten() {},
    stopping: stopping.signal,
  })
  return { ...services, ...told, interpreted, stopping, backlog, heartbeat }
}

const problems = async (kind: string) =>
  (
    await ledger.pool.query<{ subject: string; detail: string }>(
      'select subject, detail from outboxd.problem where kind = $1 order by subject',
      [kind],
    )
  ).rows

const sql = (text: string, values: unknown[] = []) => ledger.pool.query(text, values)

/** Captures records that the given instance is sending. */
async function sendingBy(instanceId: string, count: number): Promise<Submission[]> {
  await ledger.capture(Array.from({ length: count }, () => ({})))
  const dispatch = ledger.dispatch({ instance: { id: instanceId, who: 'test' } })
  return (await claim(dispatch, { submissions: count })).submissions
}

async function end(change: GivenChange): Promise<Submission> {
  const [submission] = await sendingBy(randomUUID(), 1)
  const transitions = [transition(submission as Submission, change)]
  await ledger.dispatch().writeOutcomes(outcomeBatch({ transitions }))
  return submission as Submission
}

/** Gives this instance heartbeats for long enough to judge others. */
async function beAlive(): Promise<void> {
  await writeHeartbeat(ledger.pool, databases.instance)
  await sql(`update outboxd.instance set unbroken_since = unbroken_since - interval '6 s'`)
}

describe('orphans', () => {
  test('a record that a dead instance was sending is treated as if its connection was lost after the request left', async () => {
    const [one, other] = await sendingBy(randomUUID(), 2)
    await beAlive()
    const { orphans, interpreted, toldOf } = setup()
    expect(await orphans.runOnce()).toBe(30_000)
    const detail = expect.stringContaining('died, or is suspended: then end its process')
    expect(interpreted).toMatchObject([
      { kind: 'no-answer', sent: true, cause: 'network', detail },
      { kind: 'no-answer', sent: true, cause: 'network', detail },
    ])
    expect(toldOf('telemetry.orphansRescued')).toEqual([['telemetry.orphansRescued', 2]])
    for (const each of [one, other]) expect((await ledger.events(each?.id ?? '')).at(-1)).toContain('in doubt')
    expect(await ledger.countStates()).toEqual({ uncertain: 2 })
  })

  test('a record that this instance no longer has in hand is settled, with the reason', async () => {
    const [held, forgotten] = await sendingBy(databases.instance.id, 2)
    const { orphans, interpreted } = setup({ dispatch: { holds: ({ id }) => id === held?.id } })
    await orphans.runOnce()
    expect(interpreted).toMatchObject([
      { kind: 'no-answer', sent: true, detail: expect.stringContaining('the ledger lost it') },
    ])
    expect((await ledger.read(forgotten?.id ?? '')).state).toBe('uncertain')
    expect((await ledger.read(held?.id ?? '')).state).toBe('sending')
  })

  test('a record whose instance was alive after all and wrote first is not counted', async () => {
    const [first] = await sendingBy(databases.instance.id, 2)
    const late = transition(first as Submission, { state: 'completed', transactionId: 'tx' })
    /** The instance that sent the record writes its outcome just before the rescue does. */
    const writesFirst = new Proxy(databases.ledger, {
      get(target, member) {
        if (member === 'connect')
          return async () => {
            await ledger.dispatch().writeOutcomes(outcomeBatch({ transitions: [late] }))
            return target.connect()
          }
        const value = Reflect.get(target, member)
        return typeof value === 'function' ? value.bind(target) : value
      },
    })
    const { orphans, toldOf } = setup({ on: { ledger: writesFirst } })
    await orphans.runOnce()
    expect(toldOf('telemetry.orphansRescued')).toEqual([['telemetry.orphansRescued', 1]])
    expect(await ledger.countStates()).toEqual({ completed: 1, uncertain: 1 })
  })

  test('a record that the ledger refuses holds up no other, and the round fails', async () => {
    const [, bad] = await sendingBy(databases.instance.id, 3)
    await sql(
      `alter table outboxd.submission add constraint refused check (id <> '${bad?.id}' or state = 'sending') not valid`,
    )
    try {
      await expect(setup().orphans.runOnce()).rejects.toThrow('refused')
    } finally {
      await sql('alter table outboxd.submission drop constraint refused')
    }
    expect(await ledger.countStates()).toEqual({ sending: 1, uncertain: 2 })
  })

  test('if the ledger refuses every record, they are not tried one by one', async () => {
    await sendingBy(databases.instance.id, 2)
    await sql('alter table outboxd.submission_event rename column cause to elsewhere')
    let transactions = 0
    const counting = new Proxy(databases.ledger, {
      get(target, member) {
        if (member === 'connect') transactions += 1
        const value = Reflect.get(target, member)
        return typeof value === 'function' ? value.bind(target) : value
      },
    })
    try {
      await expect(setup({ on: { ledger: counting } }).orphans.runOnce()).rejects.toThrow()
    } finally {
      await sql('alter table outboxd.submission_event rename column elsewhere to cause')
    }
    expect(transactions).toBe(1)
  })
})

describe('polls of others', () => {
  /** Accepts records, and lets an instance fetch their polls. */
  async function pollingBy(instanceId: string, count: number) {
    for (let n = 0; n < count; n++) await end({ state: 'accepted', transactionId: randomUUID(), pollInMs: 0 })
    const dispatch = ledger.dispatch({ instance: { id: instanceId, who: 'test' } })
    return (await claim(dispatch, { polls: count })).polls
  }
  const areDue = async () => (await claim(ledger.dispatch(), { polls: 10 })).polls.length

  test('of a dead instance are due again, and its answer comes too late', async () => {
    const [poll] = await pollingBy(randomUUID(), 1)
    await beAlive()
    const { orphans, toldOf } = setup()
    await orphans.runOnce()
    expect(toldOf('dispatch was woken')).toHaveLength(1)
    if (poll === undefined) throw new Error('nothing was fetched')
    const late = transition(poll.submission, { state: 'completed' }, poll.poll)
    expect((await ledger.dispatch().writeOutcomes(outcomeBatch({ transitions: [late] }))).written).toEqual([])
    expect(await areDue()).toBe(1)
  })

  test('are left to an instance that lives', async () => {
    const instance = { id: randomUUID(), version: 'test', host: 'test', settings: {} }
    await writeHeartbeat(ledger.pool, instance)
    await pollingBy(instance.id, 1)
    await setup().orphans.runOnce()
    expect(await areDue()).toBe(0)
  })

  test('that this instance fetched and does not have in hand are due again', async () => {
    const [held] = await pollingBy(databases.instance.id, 2)
    const holdsPoll = ({ requestId }: { requestId: string }) => requestId === held?.poll.requestId
    await setup({ dispatch: { holdsPoll } }).orphans.runOnce()
    expect(await areDue()).toBe(1)
  })

  test('are due again in the second round, if an orphaned record cannot be settled', async () => {
    await pollingBy(randomUUID(), 1)
    const [bad] = await sendingBy(databases.instance.id, 1)
    await beAlive()
    await sql(
      `alter table outboxd.submission add constraint refused check (id <> '${bad?.id}' or state = 'sending') not valid`,
    )
    const { orphans } = setup()
    try {
      await expect(orphans.runOnce()).rejects.toThrow('refused')
      await expect(orphans.runOnce()).rejects.toThrow('refused')
    } finally {
      await sql('alter table outboxd.submission drop constraint refused')
    }
    expect(await areDue()).toBe(1)
  })

  test('are due again, while the record of another poll is locked: that poll follows when the lock is gone', async () => {
    const [locked] = await pollingBy(randomUUID(), 2)
    await beAlive()
    const { orphans } = setup()
    const other = await ledger.pool.connect()
    try {
      await other.query('begin')
      await other.query('select from outboxd.submission where id = $1 for update', [locked?.submission.id])
      await orphans.runOnce()
      expect(await areDue()).toBe(1)
    } finally {
      await other.query('rollback')
      other.release()
    }
    await orphans.runOnce()
    // With the poll that areDue() has fetched, because no heartbeat says that its instance lives.
    expect(await areDue()).toBe(2)
  })
})

describe('upkeep', () => {
  /** An accepted submission whose poll the queue has lost. */
  async function loseJob(): Promise<void> {
    await end({ state: 'accepted', transactionId: randomUUID(), pollInMs: 0 })
    await sql('delete from outboxd_jobs.job')
  }

  test('records without a poll get one at the start, and not in each round', async () => {
    const { upkeep } = setup()
    await loseJob()
    expect(await upkeep.runOnce()).toBe(30_000)
    expect(await ledger.polled()).toHaveLength(1)
    await sql('delete from outboxd_jobs.job')
    await upkeep.runOnce()
    expect(await ledger.polled()).toEqual([])
  })

  test('a failing check does not keep the others from running, and its error is thrown', async () => {
    await loseJob()
    await sql(
      `insert into outboxd.instance (id, version, host, beat_at) values ($1, '1', 'old', now() - interval '2 days')`,
      [randomUUID()],
    )
    const queue = Object.create(databases.queue, {
      insertMissing: { value: () => Promise.reject(new Error('lock timeout')) },
    })
    const { upkeep, toldOf } = setup({ on: { queue } })
    await expect(upkeep.runOnce()).rejects.toThrow('lock timeout')
    expect(toldOf('telemetry.missingPollsInserted')).toEqual([])
    const { rowCount } = await sql('select from outboxd.instance')
    expect(rowCount).toBe(0)
  })

  test('operators’ acts are counted from the first round on', async () => {
    const { upkeep, toldOf } = setup()
    await upkeep.runOnce()
    const { id } = await end({ state: 'rejected', error: 'bad', errorCode: null, mayHaveArrived: false })
    await sql(
      `insert into outboxd.submission_event (submission_id, from_state, to_state, attempt, cause, actor, who)
       values ($1, 'rejected', 'queued', 1, 'replayed', 'operator', 'ann')`,
      [id],
    )
    await writeHeartbeat(ledger.pool, databases.instance)
    await upkeep.runOnce()
    expect(toldOf('telemetry.operatorActed').map(([, acts]) => acts)).toEqual([
      { replays: 0, discards: [] },
      { replays: 1, discards: [] },
    ])
  })

  test('the dispatcher is woken if records were released', async () => {
    await ledger.capture([{ key: 'k' }])
    await sql('update outboxd.submission set held = true')
    const { upkeep, toldOf } = setup()
    await upkeep.runOnce()
    expect(toldOf('dispatch was woken')).toHaveLength(1)
    const nothingWaits = setup()
    await nothingWaits.upkeep.runOnce()
    expect(nothingWaits.toldOf('dispatch was woken')).toEqual([])
  })

  test('transactions open for longer than STUCK_AFTER_SECONDS are a problem', async () => {
    await end({ state: 'accepted', transactionId: 'tx-stuck', pollInMs: 60_000 })
    await sql(`update outboxd.submission set accepted_at = now() - interval '3 h'`)
    await setup({ env: { STUCK_AFTER_SECONDS: '7200' } }).upkeep.runOnce()
    expect(await problems('stuck_transaction')).toHaveLength(1)
    await setup({ env: { STUCK_AFTER_SECONDS: '14400' } }).upkeep.runOnce()
    expect(await problems('stuck_transaction')).toEqual([])
  })

  test('a status of transactions that the interface does not have is a problem until a poll brings another answer', async () => {
    const asked = { state: 'accepted', transactionId: 'tx-foreign', pollInMs: 0 } as const
    const { outboxId } = await end({ ...asked, foreignStatus: 'archived' })
    await setup().upkeep.runOnce()
    expect(await problems('foreign_status')).toEqual([
      { subject: '"archived"', detail: `1 record, outbox:${outboxId}` },
    ])
    const [poll] = (await claim(ledger.dispatch(), { polls: 1 })).polls
    if (poll === undefined) throw new Error('no poll is due')
    const transitions = [transition(poll.submission, asked, poll.poll)]
    await ledger.dispatch().writeOutcomes(outcomeBatch({ transitions }))
    await setup().upkeep.runOnce()
    expect(await problems('foreign_status')).toEqual([])
  })
})

describe('survey', () => {
  test('the table is surveyed at the start, then once an hour', async () => {
    await sql('alter table outbox drop constraint outboxd_knows_status')
    const { survey } = setup()
    const find = async () => {
      await sql(`delete from outboxd.problem`)
      expect(await survey.runOnce()).toBe(30_000)
      return (await problems('unknown_status')).length
    }
    await sql(`insert into outbox (type, payload, status) values ('data', '{}', 'NEW')`)
    expect([await find(), await find()]).toEqual([1, 0])
  })

  test('nothing is surveyed while the ledger has the settings of another daemon', async () => {
    await sql(`insert into outbox (type, payload, status) values ('data', '{}', 'NEW')`)
    const { survey } = setup({ on: { hasOwnSettings: async () => false } })
    expect(await survey.runOnce()).toBe(30_000)
    expect(await problems('unknown_status')).toEqual([])
  })

  test('a long survey goes on at once, and ends when the daemon stops', async () => {
    await sql(`insert into outbox (type, payload) select 'data', '{}' from generate_series(1, 25000)`)
    const { survey, stopping } = setup()
    stopping.abort()
    expect(await survey.runOnce()).toBe(0)
  })
})

describe('prune', () => {
  async function oldOnes(days: number): Promise<void> {
    for (let i = 0; i < 3; i++) await end({ state: 'completed', transactionId: randomUUID(), result: '{}' })
    await endAgo(ledger.pool, days)
  }

  test('a round reports what it pruned, and the next comes after five minutes', async () => {
    await oldOnes(30.5)
    const { prune, told } = setup()
    expect(await prune.runOnce()).toBe(300_000)
    expect(told).toEqual([
      ['telemetry.pruned', { submissions: 3, emptied: 0 }],
      ['metrics.pruneOverdue', 0],
    ])
  })

  test('a round ends after 20 s and the next follows at once; no batch begins while the daemon stops', async () => {
    await oldOnes(30.5)
    const { context, time } = contextOf(databases)
    const stopwatch = context.clock.stopwatch
    context.clock.stopwatch = () => {
      const elapsedMs = stopwatch()
      time.ms += 20_000
      return elapsedMs
    }
    const stopping = new AbortController()
    const slow = createMaintenanceLoops(context, {
      dispatch: { holds: () => false, holdsPoll: () => false },
      attempts: {} as MaintenanceParts['attempts'],
      heartbeat: { isClockBack: false, hasLedgersSettings: false },
      planner: { noteOutboxRowsWaiting() {} },
      onWritten() {},
      stopping: stopping.signal,
    })
    expect(await slow.prune.runOnce()).toBe(0)
    const stopped = setup()
    stopped.stopping.abort()
    expect(await stopped.prune.runOnce()).toBe(0)
    expect(await ledger.countStates()).toEqual({ completed: 3 })
  })

  test('records that have been due for more than a day are a problem until they are pruned', async () => {
    await oldOnes(33.5)
    const { prune, stopping, toldOf } = setup()
    stopping.abort()
    await prune.runOnce()
    expect(toldOf('metrics.pruneOverdue')[0]?.[1]).toBeGreaterThan(3 * 86_400_000)
    expect(await problems('prune_behind')).toMatchObject([
      { detail: expect.stringContaining('should have been deleted or emptied 3 days ago') },
    ])
    await setup().prune.runOnce()
    expect(await problems('prune_behind')).toEqual([])
  })
})
