import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { type ResolveOptions, resolve } from '../../src/commands/resolve.ts'
import { claim } from '../support/ledger.ts'
import { failedE003, openScene, type Scene, uncertain } from './scene.ts'

let scene: Scene
beforeAll(async () => {
  scene = await openScene()
})
afterAll(() => scene[Symbol.asyncDispose]())
beforeEach(() => scene.reset())

async function run(name: string, options: ResolveOptions) {
  const context = scene.context()
  const code = await resolve(context, name, options)
  return { code, said: context.said() }
}

test('--arrived: it is tracked by a poll that is due at once', async () => {
  const id = await scene.end(uncertain, { outboxId: '1' })
  expect((await run('outbox:1', { arrived: 'tx-9' })).code).toBe(0)
  const row = await scene.ledger.row(id)
  expect(row).toMatchObject({
    state: 'accepted',
    transaction_id: 'tx-9',
    error: null,
    ended_at: null,
    report_due: true,
  })
  // It counts from when it was sent: a late poll must not teach that processing is quick.
  expect(row.accepted_at).toEqual(row.sent_at)
  expect(await scene.ledger.liveJobs()).toEqual([row.job_id])
  expect((await scene.ledger.events(id)).at(-1)).toBe('uncertain -> accepted: resolved: arrived as tx-9')
  const { polls } = await claim(scene.ledger.work(), { polls: 1 })
  expect(polls.map(({ submission }) => submission.transactionId)).toEqual(['tx-9'])
})

test('--arrived where the mapping does not track: it is completed', async () => {
  const id = await scene.end(uncertain, { tracked: false })
  expect((await run(id, { arrived: 'tx-9' })).code).toBe(0)
  expect(await scene.ledger.row(id)).toMatchObject({ state: 'completed', transaction_id: 'tx-9', job_id: null })
  expect(await scene.ledger.liveJobs()).toEqual([])
})

test('--not-arrived: it is sent again under a new key', async () => {
  const id = await scene.end({ ...uncertain, inDoubt: true, serverErrors: 2 })
  const before = await scene.ledger.row(id)
  expect((await run(id, { notArrived: true })).code).toBe(0)
  const after = await scene.ledger.row(id)
  expect(after).toMatchObject({
    state: 'queued',
    held: false,
    in_doubt: false,
    server_errors: 0,
    body: before.body,
    report_due: true,
  })
  expect(after.idempotency_key).not.toBe(before.idempotency_key)
  expect((await scene.ledger.events(id)).at(-1)).toBe('uncertain -> queued: resolved: not arrived')
})

test('either way the next of its key goes on when it may', async () => {
  const first = await scene.end(uncertain, { key: 'k' })
  const second = await scene.end({ state: 'queued' }, { key: 'k' })
  expect((await scene.ledger.row(second)).held).toBe(true)
  await run(first, { notArrived: true })
  expect((await scene.ledger.row(second)).held).toBe(true)

  const other = await scene.ledger.capture([{ key: 'l' }, { key: 'l' }])
  await scene.ledger.pool.query(
    `update outboxd.submission set state = 'uncertain', due_at = null, ended_at = now() where id = $1`,
    [other[0]],
  )
  await run(other[0] ?? '', { arrived: 'tx' })
  expect((await scene.ledger.row(other[1] ?? '')).held).toBe(false)
})

test('what is not uncertain is left alone', async () => {
  const id = await scene.end(failedE003)
  const { code, said } = await run(id, { notArrived: true })
  expect(code).toBe(1)
  expect(said).toContain('is failed, not uncertain')
  expect((await run('outbox:none', { notArrived: true })).code).toBe(3)
})

test.each([
  {},
  { arrived: 'tx', notArrived: true },
  { arrived: ' ' },
  { arrived: 'tx 1' },
])('exactly one answer that makes sense: %j leaves with 2', async (options) => {
  const id = await scene.end(uncertain)
  expect((await run(id, options)).code).toBe(2)
  expect((await scene.ledger.row(id)).state).toBe('uncertain')
})
