import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { claimQueuedSubmissions } from '../../src/ledger/claims.ts'
import { lockSubmissionsAndReadKeys } from '../../src/ledger/keyOrder.ts'
import { believeMassRefusals } from '../../src/ledger/refusals.ts'
import type { CapturedRecord } from '../../src/model/outbox.ts'
import {
  claim,
  type Ledger,
  openLedger,
  outcomeBatch,
  setKeyOnFailure,
  setLimit,
  type TestDispatch,
  transition,
} from '../support/ledger.ts'
import { until } from '../support/until.ts'

let ledger: Ledger
let work: TestDispatch
beforeAll(async () => {
  ledger = await openLedger()
})
afterAll(() => ledger[Symbol.asyncDispose]())
beforeEach(async () => {
  await ledger.reset()
  await setLimit(ledger.pool)
  work = ledger.dispatch()
})

/** Captures and claims a record, and writes its refusal in these words. */
async function refuse(message = 'nginx: 400', record: Partial<CapturedRecord> = {}, inDoubt = false): Promise<string> {
  const [id = ''] = await ledger.capture([record])
  await ledger.pool.query('update outboxd.submission set in_doubt = $2 where id = $1', [id, inDoubt])
  const { submissions } = await claim(work, { submissions: 1 })
  const [submission] = submissions
  if (submission === undefined) throw new Error('nothing was claimed')
  const refused = transition(submission, { state: 'rejected', error: message })
  const refusals = [
    { submissionId: submission.id, resource: submission.resource, fingerprint: message, summary: message },
  ]
  await ledger.dispatch().writeOutcomes(outcomeBatch({ transitions: [refused], refusals }))
  return id
}

const times = async (count: number, act: (i: number) => Promise<unknown>) => {
  for (let i = 0; i < count; i++) await act(i)
}
const pauses = async () =>
  (await ledger.pool.query(`select reason from outboxd.pause where cleared_at is null`)).rows.map(
    ({ reason }) => reason,
  )
const problems = async () =>
  (await ledger.pool.query('select kind, subject from outboxd.problem')).rows.map(
    ({ kind, subject }) => `${kind} ${subject}`,
  )
const waiting = async () => {
  const { rows } = await ledger.pool.query(
    `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
  )
  return rows.length
}
const through = () =>
  work.writeOutcomes(outcomeBatch({ answeredRecords: [{ resource: 'data', met: null, hasServiceVerdict: true }] }))

/** A session that holds a record, as an operator's command does before it locks the record's key. */
async function lockedBy(id: string) {
  const client = await ledger.pool.connect()
  const letGo = () => client.query('commit')
  await client.query('begin')
  await lockSubmissionsAndReadKeys(client, [{ id }])
  return {
    letGo,
    async takesLine(key: string): Promise<boolean> {
      const { rows } = await client.query('select pg_try_advisory_xact_lock(7162, hashtext($1)) as taken', [key])
      return rows[0]?.taken
    },
    async [Symbol.asyncDispose]() {
      await letGo()
      client.release()
    },
  }
}

test('a record stays rejected if a later one of its key was sent meanwhile', async () => {
  const first = await refuse('nginx: 400', { key: 'K' })
  await ledger.capture([{ key: 'K', resource: 'orders', type: 'order' }])
  const [order] = (await claim(work, { submissions: 1 })).submissions
  if (order === undefined) throw new Error('nothing was claimed')
  const accepted = transition(order, { state: 'accepted', transactionId: 'order', pollInMs: 1_000 })
  const answeredRecords = [{ resource: 'orders', met: null, hasServiceVerdict: true } as const]
  await work.writeOutcomes(outcomeBatch({ transitions: [accepted], answeredRecords }))
  await times(9, () => refuse())
  expect(await ledger.countStates()).toEqual({ accepted: 1, queued: 9, rejected: 1 })
  expect((await ledger.read(first)).state).toBe('rejected')
})

test('if a record under way at the mass refusal is refused too, it and the earlier one of its key are queued again', async () => {
  const first = await refuse('nginx: 400', { key: 'K' })
  await ledger.capture([{ key: 'K' }])
  const [second] = (await claim(work, { submissions: 1 })).submissions
  if (second === undefined) throw new Error('nothing was claimed')
  await times(9, () => refuse())
  expect((await ledger.read(first)).state).toBe('rejected')
  const { id: submissionId, resource } = second
  const refusals = [{ submissionId, resource, fingerprint: 'nginx: 400', summary: 'nginx: 400' }]
  const transitions = [transition(second, { state: 'rejected', error: 'nginx: 400' })]
  await work.writeOutcomes(outcomeBatch({ transitions, refusals }))
  expect([await ledger.row(first), await ledger.row(submissionId)]).toMatchObject([
    { state: 'queued', held: false },
    { state: 'queued', held: true },
  ])
})

test('a record stays rejected if the claim of a later one of its key commits during the mass refusal', async () => {
  const first = await refuse('nginx: 400', { key: 'K' })
  const [second = ''] = await ledger.capture([{ key: 'K' }])
  const makeDue = (dueAt: string) =>
    ledger.pool.query('update outboxd.submission set due_at = $2 where id = $1', [second, dueAt])
  await makeDue('infinity')
  await times(8, () => refuse())
  const [tenth = ''] = await ledger.capture([{}])
  const { submissions } = await claim(work, { submissions: 1 })
  await makeDue('2020-01-01')
  const claiming = await ledger.pool.connect()
  try {
    await claiming.query('begin')
    await claimQueuedSubmissions(claiming, { id: randomUUID(), instanceId: randomUUID(), limit: 1, who: 'daemon' })
    const transitions = submissions.map((each) => transition(each, { state: 'rejected', error: 'nginx: 400' }))
    const refusals = [{ submissionId: tenth, resource: 'data', fingerprint: 'nginx: 400', summary: '' } as const]
    const massRefusal = work.writeOutcomes(outcomeBatch({ transitions, refusals }))
    await until(waiting, (count) => count > 0)
    await claiming.query('commit')
    await massRefusal
  } finally {
    claiming.release(true)
  }
  expect([(await ledger.read(first)).state, (await ledger.read(second)).state]).toEqual(['rejected', 'sending'])
  expect(await ledger.countStates()).toEqual({ queued: 9, rejected: 1, sending: 1 })
})

test.each([
  { state: 'queued', dueInMs: 3_600_000, inDoubt: true },
  { state: 'rejected', error: '409', mayHaveArrived: true },
] as const)('a record stays rejected if a later one of its key may have arrived: $state', async (change) => {
  const first = await refuse('nginx: 400', { key: 'K' })
  await ledger.capture([{ key: 'K' }])
  const [second] = (await claim(work, { submissions: 1 })).submissions
  if (second === undefined) throw new Error('nothing was claimed')
  await work.writeOutcomes(outcomeBatch({ transitions: [transition(second, change)] }))
  await times(9, () => refuse())
  expect((await ledger.read(first)).state).toBe('rejected')
})

test('a mass refusal does not queue an older version of a document again beside the newer one', async () => {
  const version = { key: '5', document: 'public.sale 5' }
  const first = await refuse('nginx: 400', version)
  const [second = ''] = await ledger.capture([version])
  await ledger.pool.query(`update outboxd.submission set due_at = 'infinity' where id = $1`, [second])
  await times(9, () => refuse())
  expect(await ledger.countStates()).toEqual({ queued: 10, rejected: 1 })
  expect((await ledger.read(first)).state).toBe('rejected')
})

test('KEY_ON_FAILURE=block: an older version of a document is queued again before the newer one that it holds back', async () => {
  await setKeyOnFailure(ledger.pool, 'block')
  const version = { key: '5', document: 'public.sale 5' }
  const first = await refuse('nginx: 400', version)
  const [second = ''] = await ledger.capture([version])
  expect(await ledger.row(second)).toMatchObject({ state: 'queued', held: true })
  await times(9, () => refuse())
  expect([await ledger.row(first), await ledger.row(second)]).toMatchObject([
    { state: 'queued', held: false },
    { state: 'queued', held: true },
  ])
})

test('if two versions of a document are refused, a mass refusal queues only the newer one again', async () => {
  const version = { key: '5', document: 'public.sale 5' }
  const first = await refuse('nginx: 400', version)
  const second = await refuse('nginx: 400', version)
  await times(9, () => refuse())
  expect(await ledger.countStates()).toEqual({ queued: 10, rejected: 1 })
  expect([(await ledger.read(first)).state, (await ledger.read(second)).state]).toEqual(['rejected', 'queued'])
})

test('the tenth refusal in the same words pauses all sending, and all ten records are queued again once', async () => {
  await times(9, () => refuse())
  expect([await ledger.countStates(), await pauses()]).toEqual([{ rejected: 9 }, []])
  const last = await refuse()
  expect(await ledger.countStates()).toEqual({ queued: 10 })
  expect(await pauses()).toEqual(['unauthorized'])
  expect(await problems()).toEqual(['mass_refusal data'])
  expect((await ledger.events(last)).slice(-2)).toEqual([
    'sending -> rejected: asked_again',
    'rejected -> queued: mass refusal: nginx: 400',
  ])
  expect(await ledger.row(last)).toMatchObject({ error: null, ended_at: null, report_due: true })
})

test('a record that gets through, or other words, restart the count; each resource has its own count', async () => {
  await times(9, () => refuse())
  await through()
  await times(9, () => refuse())
  await refuse('other words')
  await times(9, () => refuse())
  await times(9, () => refuse('nginx: 400', { resource: 'orders' }))
  expect([await ledger.countStates(), await pauses()]).toEqual([{ rejected: 37 }, []])
})

test('refused records of one key count as one, because they may be wrong together', async () => {
  await times(20, () => refuse('nginx: 400', { key: 'one customer' }))
  expect([await ledger.countStates(), await pauses()]).toEqual([{ rejected: 20 }, []])
})

test('records that may have arrived or that an operator discarded stay as they are, and keys keep their order', async () => {
  await refuse('nginx: 400', {}, true)
  const touched = await refuse()
  await ledger.pool.query(`update outboxd.submission set state = 'discarded' where id = $1`, [touched])
  const keyed = await refuse('nginx: 400', { key: 'k' })
  await times(6, () => refuse())
  await ledger.pool.query(`update outboxd.submission set due_at = 'infinity' where state = 'queued'`)
  const [successor = ''] = await ledger.capture([{ key: 'k' }])
  await ledger.pool.query(`update outboxd.submission set due_at = 'infinity' where id = $1`, [successor])
  await refuse()
  expect(await ledger.countStates()).toMatchObject({ rejected: 1, discarded: 1, queued: 9 })
  expect(await ledger.row(keyed)).toMatchObject({ state: 'queued', held: false })
  expect(await ledger.row(successor)).toMatchObject({ state: 'queued', held: true })
})

test('a mass refusal locks a record before its key, so that whichever session has the record can still lock the key', async () => {
  const keyed = await refuse('nginx: 400', { key: 'k' })
  await times(8, () => refuse())
  await using person = await lockedBy(keyed)
  const tenth = refuse()
  await until(waiting, (count) => count > 0)
  expect(await person.takesLine('k')).toBe(true)
  await person.letGo()
  await tenth
  expect(await ledger.countStates()).toEqual({ queued: 10 })
})

test('after a mass refusal one more refusal pauses sending, until a record gets through', async () => {
  await times(10, () => refuse())
  await ledger.pool.query('delete from outboxd.pause')
  await ledger.pool.query(`update outboxd.submission set due_at = 'infinity' where state = 'queued'`)
  await refuse()
  expect([(await ledger.countStates()).queued, await pauses()]).toEqual([11, ['unauthorized']])
  await through()
  expect(await problems()).toEqual([])
})

test('after an operator believes the refusal, records with it stay rejected for a day', async () => {
  await times(10, () => refuse())
  const actor = { who: 'operator test', reason: null, account: 'test@test' }
  const operator = { ledger: ledger.pool, url: '', actor } as const
  expect(await believeMassRefusals(operator, 86_400_000)).toEqual(['nginx: 400'])
  expect(await believeMassRefusals(operator, 86_400_000)).toEqual([])
  expect(await problems()).toEqual([])
  await ledger.pool.query('delete from outboxd.pause')
  await ledger.pool.query(`update outboxd.submission set due_at = 'infinity' where state = 'queued'`)
  await times(12, () => refuse())
  expect([(await ledger.countStates()).rejected, await pauses()]).toEqual([12, []])
  await ledger.pool.query(`update outboxd.believed_refusal set until = now()`)
  await times(10, () => refuse())
  expect(await pauses()).toEqual(['unauthorized'])
})

test('a refusal under an outdated claim does not count', async () => {
  await times(9, () => refuse())
  const [id = ''] = await ledger.capture([{}])
  const { submissions } = await claim(work, { submissions: 1 })
  const late = { ...(submissions[0] as (typeof submissions)[0]), claimId: randomUUID() }
  const refusals = [{ submissionId: id, resource: 'data' as const, fingerprint: 'nginx: 400', summary: 'nginx: 400' }]
  await work.writeOutcomes(outcomeBatch({ transitions: [transition(late, { state: 'rejected' })], refusals }))
  expect([await ledger.countStates(), await pauses()]).toEqual([{ rejected: 9, sending: 1 }, []])
})
