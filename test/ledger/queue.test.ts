import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest'
import { installPollQueue, type NewPollJob, openPollQueue } from '../../src/ledger/queue.ts'
import { inTransaction } from '../../src/postgres/database.ts'
import { type Ledger, openLedger } from '../support/ledger.ts'

let ledger: Ledger
beforeAll(async () => {
  ledger = await openLedger()
})
afterAll(() => ledger[Symbol.asyncDispose]())
beforeEach(() => ledger.reset())

const plan = (inMs: number): NewPollJob => ({ jobId: randomUUID(), submissionId: randomUUID(), inMs, rarely: false })
const insert = (plans: NewPollJob[]) => ledger.queue.insert(ledger.pool, plans)
const fetch = async (limit = 100) => (await ledger.queue.fetch(ledger.pool, limit, false)).map(({ job }) => job)
const column = async (sql: string) =>
  (await ledger.pool.query<{ value: unknown }>(`select ${sql} as value from outboxd_jobs.job`)).rows

test('due jobs are fetched, others are not', async () => {
  const [due, later] = [plan(0), plan(3_600_000)]
  await insert([later, due])
  expect(await fetch()).toEqual([{ id: due.jobId, retryCount: 0 }])
  expect(await fetch()).toEqual([])
})

test('a fetched job names its submission', async () => {
  const due = plan(0)
  await insert([due])
  expect(await ledger.queue.fetch(ledger.pool, 1, false)).toEqual([
    { job: { id: due.jobId, retryCount: 0 }, submissionId: due.submissionId },
  ])
})

test('a job can be moved to another time, unless it is being worked on', async () => {
  const moved = plan(3_600_000)
  await insert([moved])
  await ledger.queue.move(ledger.pool, moved.jobId, 0)
  const [job] = await fetch()
  expect(job?.id).toBe(moved.jobId)
  await ledger.queue.move(ledger.pool, moved.jobId, 3_600_000)
  expect(await ledger.queue.complete(ledger.pool, job ? [job] : [])).toEqual(new Set([moved.jobId]))
})

test.each([0, 1, 250.123456, 1e-9, 90_061_001.5])('a job is due after %d ms, to the millisecond', async (inMs) => {
  await insert([plan(inMs)])
  const [after] = await column(`extract(epoch from start_after - created_on)::float8 * 1000`)
  expect(Math.abs((after?.value as number) - inMs)).toBeLessThan(1)
})

test('completing returns the jobs that were still ours', async () => {
  const plans = [plan(0), plan(0)]
  await insert(plans)
  const jobs = await fetch()
  expect(await ledger.queue.complete(ledger.pool, jobs)).toEqual(new Set(plans.map(({ jobId }) => jobId)))
  expect(await ledger.queue.complete(ledger.pool, jobs)).toEqual(new Set())
  expect(await ledger.queue.complete(ledger.pool, [{ id: randomUUID(), retryCount: 0 }])).toEqual(new Set())
})

test('a worker that lost its job to another cannot complete it', async () => {
  await insert([plan(0)])
  const [mine] = await fetch()
  await silence()
  const [theirs] = await fetch()
  expect(theirs).toEqual({ id: mine?.id, retryCount: 1 })
  expect(await ledger.queue.complete(ledger.pool, mine ? [mine] : [])).toEqual(new Set())
  expect(await ledger.queue.complete(ledger.pool, theirs ? [theirs] : [])).toEqual(new Set([mine?.id]))
})

/** Lets pg-boss take back the jobs whose holder has been silent for 11 s. */
async function silence(): Promise<void> {
  await ledger.pool.query(`update outboxd_jobs.job set heartbeat_on = now() - interval '11 s' where state = 'active'`)
  await ledger.queue.supervise()
  expect(await column('state::text')).toEqual([{ value: 'retry' }])
}

test('a heartbeat keeps a job with its holder', async () => {
  await insert([plan(0)])
  const jobs = await fetch()
  await ledger.pool.query(`update outboxd_jobs.job set heartbeat_on = now() - interval '9 s'`)
  await ledger.queue.touch(jobs)
  expect(await column(`heartbeat_on > now() - interval '5 s'`)).toEqual([{ value: true }])
})

test('jobs outlive every outage: pg-boss neither gives up nor throws them away', async () => {
  await insert([plan(0)])
  const [row] = await column(`json_build_object('retries', retry_limit, 'delay', retry_delay,
    'kept', extract(days from keep_until - start_after), 'heartbeat', heartbeat_seconds)`)
  expect(row?.value).toEqual({ retries: 1_000_000, delay: 0, kept: 3_650, heartbeat: 10 })
})

test('fetching, completing and inserting belong to the caller’s transaction', async () => {
  const [kept, undone] = [plan(0), plan(0)]
  await insert([kept])
  const failing = inTransaction(ledger.pool, async (db) => {
    const due = await ledger.queue.fetch(db, 10, false)
    await ledger.queue.complete(
      db,
      due.map(({ job }) => job),
    )
    await ledger.queue.insert(db, [undone])
    throw new Error('lost')
  })
  await expect(failing).rejects.toThrow('lost')
  expect(await fetch()).toEqual([{ id: kept.jobId, retryCount: 0 }])
})

test('concurrent fetches never get the same job', async () => {
  await insert(Array.from({ length: 60 }, () => plan(0)))
  const fetched = (await Promise.all(Array.from({ length: 10 }, () => fetch(5)))).flat()
  expect(new Set(fetched.map(({ id }) => id)).size).toBe(fetched.length)
})

test('installing again keeps the jobs and the options', async () => {
  await insert([plan(0)])
  await installPollQueue(ledger.url)
  expect(await fetch()).toHaveLength(1)
})

test('rare polls are fetched apart from the others, and do not delay them', async () => {
  await insert([
    { ...plan(0), rarely: true },
    { ...plan(0), rarely: true },
  ])
  const [due, rare] = [plan(0), { ...plan(0), rarely: true }]
  await insert([due, rare])
  expect((await fetch()).map(({ id }) => id)).toEqual([due.jobId])
  expect(await ledger.queue.fetch(ledger.pool, 2, true)).toHaveLength(2)
  expect(await ledger.queue.fetch(ledger.pool, 2, true)).toHaveLength(1)
})

test('a database whose migration ended before the queue was created is refused, with the command to run', async () => {
  await ledger.pool.query(`select outboxd_jobs.delete_queue('outboxd_poll')`)
  onTestFinished(() => installPollQueue(ledger.url))
  const opened = await openPollQueue(ledger.url, () => {}).then(
    (queue) => queue.close(),
    (error: unknown) => error,
  )
  expect(opened).toEqual(expect.objectContaining({ message: expect.stringContaining('run `outboxd migrate`') }))
})
