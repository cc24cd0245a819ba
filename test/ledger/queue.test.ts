import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { command as discard } from '../../src/commands/discard.ts'
import { installPollQueue, type NewPoll, PollQueue, readPlannedPolls } from '../../src/ledger/queue.ts'
import { classifyDatabaseError, inTransaction } from '../../src/postgres/database.ts'
import { openFixtureForFile } from '../commands/fixture.ts'
import { claim, type Ledger, outcomeBatch, transition } from '../support/ledger.ts'
import { until } from '../support/until.ts'

const fixture = openFixtureForFile()
let ledger: Ledger
beforeAll(async () => {
  ledger = fixture.ledger
})

const plan = (inMs: number, rarely = false): NewPoll => ({ submissionId: randomUUID(), inMs, rarely })
const idsOf = (polls: readonly NewPoll[]) => polls.map(({ submissionId }) => submissionId)
const insert = (polls: NewPoll[]) => ledger.queue.replace(ledger.pool, idsOf(polls), polls)
const fetch = (limit = 100, rarely = false) => ledger.queue.fetch(ledger.pool, limit, { rarely })
const accepted = (transactionId: string, pollInMs = 50_000) =>
  fixture.end({ state: 'accepted', transactionId, pollInMs }, { outboxId: transactionId })

async function poll<T>(column: string): Promise<T[]> {
  const { rows } = await ledger.pool.query<{ value: T }>(
    `select ${column} as value from outboxd.poll order by priority desc`,
  )
  return rows.map(({ value }) => value)
}

describe('fetch', () => {
  test('returns due polls only, and each of them once', async () => {
    const [due, later] = [plan(0), plan(3_600_000)]
    await insert([later, due])
    expect(await poll('is_due')).toEqual([true, false])
    expect(await fetch()).toEqual([due.submissionId])
    expect(await poll('is_under_way')).toEqual([true, false])
    expect(await fetch()).toEqual([])
  })

  test('returns first what has been due for longest, however it was inserted', async () => {
    const [late, later, latest] = [plan(-9_000), plan(-5_000), plan(-1_000)]
    await insert([latest])
    await insert([late])
    await insert([later])
    expect([await fetch(1), await fetch(1), await fetch(1)].flat()).toEqual(idsOf([late, later, latest]))
  })

  test('returns rare polls apart, and they do not delay the others', async () => {
    const polls = [plan(-60_000, true), plan(-50_000, true), plan(0)]
    await insert(polls)
    expect(await poll('is_due')).toEqual([true, false, false])
    expect(await poll('is_rare_and_due')).toEqual([false, true, true])
    expect(await fetch()).toEqual(idsOf(polls.slice(2)))
    expect(await fetch(1, true)).toEqual(idsOf(polls.slice(0, 1)))
    expect(await fetch(2, true)).toEqual(idsOf(polls.slice(1, 2)))
  })

  test('by several at once never returns the same poll', async () => {
    await insert(Array.from({ length: 60 }, () => plan(0)))
    const fetched = (await Promise.all(Array.from({ length: 10 }, () => fetch(5)))).flat()
    expect(new Set(fetched).size).toBe(fetched.length)
  })
})

describe('replace', () => {
  test.each([0, 1, 250.123456, 1e-9, 90_061_001.5])('plans a poll in %d ms, to the millisecond', async (inMs) => {
    await insert([plan(inMs)])
    const [after] = await poll<number>('extract(epoch from due_at - now())::float8 * 1000')
    expect(Math.abs((after ?? 0) - inMs)).toBeLessThan(1_000)
  })

  test('plans a poll anew that is under way, and removes others', async () => {
    const [again, over] = [plan(0), plan(0)]
    await insert([again, over])
    await fetch()
    await ledger.queue.replace(ledger.pool, idsOf([again, over]), [again])
    expect(await fetch()).toEqual([again.submissionId])
  })

  test('fails if a poll is there already, because its job would not be inserted', async () => {
    const [there, missing] = [plan(0), plan(0)]
    await insert([there])
    const replacing = inTransaction(ledger.pool, (db) => ledger.queue.replace(db, [], [there, missing]))
    const error = await replacing.catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ message: '2 polls were planned, but 1 jobs were inserted' })
    // The record's answer is not the cause: it must not be given up.
    expect(classifyDatabaseError(error, 'outcome')).toBe('everyone')
    expect(await ledger.polled()).toEqual([there.submissionId])
  })

  test('belongs to the caller’s transaction, as fetch does', async () => {
    const [kept, undone] = [plan(0), plan(0)]
    await insert([kept])
    const failing = inTransaction(ledger.pool, async (db) => {
      await ledger.queue.replace(db, await ledger.queue.fetch(db, 10, { rarely: false }), [undone])
      throw new Error('lost')
    })
    await expect(failing).rejects.toThrow('lost')
    expect(await fetch()).toEqual([kept.submissionId])
  })
})

describe('insertMissing', () => {
  const insertMissing = () => inTransaction(ledger.pool, (db) => ledger.queue.insertMissing(db))

  test('plans a poll that is due for each accepted record without one', async () => {
    const [lost, kept] = [await accepted('lost'), await accepted('kept')]
    await fixture.end({ state: 'completed', transactionId: 'ended' }, { outboxId: 'ended' })
    await ledger.pool.query('delete from outboxd.poll where submission_id = $1', [lost])
    expect(await insertMissing()).toBe(1)
    expect(await insertMissing()).toBe(0)
    expect(await fetch()).toEqual([lost])
    expect(await ledger.polled()).toEqual([lost, kept].sort())
  })

  test('leaves a poll that is under way, unless no request is left that makes it', async () => {
    const id = await accepted('tx', 0)
    await claim(ledger.dispatch(), { polls: 1 })
    expect(await insertMissing()).toBe(0)
    await ledger.pool.query('delete from outboxd.request')
    expect(await insertMissing()).toBe(1)
    expect(await fetch()).toEqual([id])
  })
})

describe('move', () => {
  test('changes when a poll is due, unless the poll is under way', async () => {
    const [id, polled] = [await accepted('one'), await accepted('two', 0)]
    expect(await fetch()).toEqual([polled])
    const moves = [id, polled].map((submissionId) => ({ submissionId, inMs: 0 }))
    await inTransaction(ledger.pool, (db) => ledger.queue.move(db, moves))
    expect(await fetch()).toEqual([id])
  })

  test('skips a record whose outcome is being written, and does not wait for it', async () => {
    const ids = [await accepted('one'), await accepted('two')]
    const planned = await readPlannedPolls(ledger.pool, 10)
    expect(planned.map(({ submissionId }) => submissionId).sort()).toEqual(ids.sort())
    const outcome = await beginOutcome(ids[0] ?? '')
    const moves = ids.map((submissionId) => ({ submissionId, inMs: 5_000 }))
    await inTransaction(ledger.pool, (db) => ledger.queue.move(db, moves))
    await outcome.query('commit')
    const near = await poll(`json_build_array(submission_id, due_at < now() + interval '10 s')`)
    expect(Object.fromEntries(near as [string, boolean][])).toEqual({ [ids[0] ?? '']: false, [ids[1] ?? '']: true })
  })

  test('leaves a poll that another instance fetches meanwhile', async () => {
    const id = await accepted('one')
    await inTransaction(ledger.pool, async (db) => {
      let queries = 0
      const query: typeof db.query = async (...given: Parameters<typeof db.query>) => {
        queries += 1
        if (queries === 2) {
          await ledger.pool.query('update outboxd_jobs.job set start_after = now() where id = $1', [id])
          expect(await ledger.queue.fetch(ledger.pool, 1, { rarely: false })).toEqual([id])
        }
        return db.query(...given)
      }
      await ledger.queue.move({ query } as typeof db, [{ submissionId: id, inMs: 0 }])
    })
    expect(await poll('is_under_way')).toEqual([true])
  })

  test('does nothing while the ledger may have lost data', async () => {
    const id = await accepted('one')
    await ledger.pool.query('update outboxd.ledger set lost_at = now()')
    await inTransaction(ledger.pool, (db) => ledger.queue.move(db, [{ submissionId: id, inMs: 0 }]))
    expect(await poll('is_due')).toEqual([false])
  })

  test('of a thousand polls takes a moment', async () => {
    const polls = Array.from({ length: 1_000 }, () => plan(60_000))
    await insert(polls)
    const beganMs = performance.now()
    await insert(polls)
    expect(performance.now() - beganMs).toBeLessThan(2_000)
  })
})

/** Writes an outcome as the daemon does, up to where it has locked the record. */
async function beginOutcome(id: string) {
  const outcome = await ledger.pool.connect()
  onTestFinished(() => outcome.release())
  await outcome.query(`begin; set local lock_timeout = '10s'`)
  await outcome.query('select from outboxd.submission where id = $1 for update', [id])
  return outcome
}

test('an outcome and a discard of the same record do not deadlock', async () => {
  const id = await accepted('one')
  const outcome = await beginOutcome(id)
  const given = discard.action(fixture.context(), [id], { reason: 'test', yes: true })
  await until(
    () =>
      ledger.pool.query(`select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`),
    ({ rowCount }) => rowCount !== 0,
  )
  await outcome.query('delete from outboxd.poll where submission_id = $1', [id])
  await outcome.query('commit')
  expect(await given).toBe(0)
  expect((await ledger.read(id)).state).toBe('discarded')
  expect(await ledger.polled()).toEqual([])
})

test('the answer to a poll comes too late if a person decided about the record meanwhile', async () => {
  const id = await accepted('one', 0)
  const [polled] = (await claim(ledger.dispatch(), { polls: 1 })).polls
  if (polled === undefined) throw new Error('nothing was fetched')
  expect(await discard.action(fixture.context(), [id], { reason: 'test', yes: true })).toBe(0)
  await ledger.pool.query(
    `update outboxd.submission set state = 'accepted', ended_at = null, may_have_arrived = false where id = $1`,
    [id],
  )
  const late = transition(polled.submission, { state: 'completed' }, polled.poll)
  expect((await ledger.dispatch().writeOutcomes(outcomeBatch({ transitions: [late] }))).written).toEqual([])
})

test('jobs outlive every outage: pg-boss neither gives up nor throws them away', async () => {
  await insert([plan(0)])
  const { rows } = await ledger.pool.query(
    `select retry_limit as retries, retry_delay as delay, extract(days from keep_until - start_after)::int as kept,
       heartbeat_seconds as heartbeat, policy from outboxd_jobs.job`,
  )
  expect(rows).toEqual([{ retries: 1_000_000, delay: 0, kept: 3_650, heartbeat: null, policy: 'standard' }])
})

test('installing again keeps the jobs and the options', async () => {
  await insert([plan(0)])
  await installPollQueue(ledger.url)
  expect(await fetch()).toHaveLength(1)
})

test('a database whose migration ended before the queue was created is refused, with the command to run', async () => {
  await ledger.pool.query(`delete from outboxd_jobs.job; select outboxd_jobs.delete_queue('outboxd_poll')`)
  onTestFinished(() => installPollQueue(ledger.url))
  const opened = await PollQueue.open(ledger.pool).then(
    (queue) => queue[Symbol.asyncDispose](),
    (error: unknown) => error,
  )
  expect(opened).toEqual(expect.objectContaining({ message: expect.stringContaining('run `outboxd migrate`') }))
})
