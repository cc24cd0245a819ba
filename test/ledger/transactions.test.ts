import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import type { Submission } from '../../src/model/submission.ts'
import { claim, openLedgerForFile, outcomeBatch, setLimit, transition } from '../support/ledger.ts'

const ledger = openLedgerForFile()
beforeEach(() => setLimit(ledger.pool))

async function sending(count: number, resources: readonly ('data' | 'orders')[] = []): Promise<Submission[]> {
  await ledger.capture(Array.from({ length: count }, (_, i) => ({ resource: resources[i] ?? 'data' })))
  return (await claim(ledger.dispatch(), { submissions: count })).submissions
}

const accepted = (submission: Submission, transactionId = 'tx') =>
  transition(submission, { state: 'accepted', transactionId, pollInMs: 1_000 })

const write = (...transitions: ReturnType<typeof accepted>[]) =>
  ledger.dispatch().writeOutcomes(outcomeBatch({ transitions }))

async function states(submissions: readonly Submission[]): Promise<unknown[]> {
  return Promise.all(submissions.map(async ({ id }) => (await ledger.row(id)).state))
}

describe('an id that another record has already', () => {
  test('leaves the record uncertain, names the other record, and is a breach', async () => {
    const [first, second] = (await sending(2)) as [Submission, Submission]
    await write(accepted(first))
    const { written } = await write(accepted(second))
    expect(written).toMatchObject([{ submissionId: second.id, state: 'uncertain', breach: 'duplicate_id' }])
    const row = await ledger.row(second.id)
    expect(row).toMatchObject({ state: 'uncertain', transaction_id: null, report_due: true })
    expect(row.error).toContain(`the id tx, which outbox:${first.outboxId} already has`)
    expect(await ledger.polled()).toHaveLength(1)
  })

  test('leaves the record uncertain even if the other is completed', async () => {
    const [first, second] = (await sending(2)) as [Submission, Submission]
    await write(transition(first, { state: 'completed', transactionId: 'tx' }) as ReturnType<typeof accepted>)
    await write(accepted(second))
    expect(await states([first, second])).toEqual(['completed', 'uncertain'])
  })

  test('leaves the record uncertain even if it is not tracked', async () => {
    const [first, second] = (await sending(2)) as [Submission, Submission]
    await write(accepted(first))
    await write(transition(second, { state: 'completed', transactionId: 'tx' }) as ReturnType<typeof accepted>)
    expect(await states([first, second])).toEqual(['accepted', 'uncertain'])
  })

  test('is the same id in capitals if it is a UUID, and a different id otherwise', async () => {
    const upper = '0193C1B2-0000-7000-8000-00000000000A'
    const [first, second, third, fourth] = (await sending(4)) as [Submission, Submission, Submission, Submission]
    await write(accepted(first, upper))
    await write(accepted(second, upper.toLowerCase()))
    await write(accepted(third, 'tx'), accepted(fourth, 'TX'))
    expect(await states([first, second, third, fourth])).toEqual(['accepted', 'uncertain', 'accepted', 'accepted'])
  })

  test('leaves the record uncertain even if only the Location header names the id', async () => {
    const [first, second] = (await sending(2)) as [Submission, Submission]
    await write(accepted(first))
    await write(
      transition(second, { state: 'sending', transactionId: 'tx', pollInMs: 0 }) as ReturnType<typeof accepted>,
    )
    expect(await states([first, second])).toEqual(['accepted', 'uncertain'])
  })

  test('in one batch leaves the first record accepted and the others uncertain', async () => {
    const three = await sending(3)
    const { written } = await write(...three.map((each) => accepted(each)))
    expect(await states(three)).toEqual(['accepted', 'uncertain', 'uncertain'])
    expect(written.map(({ breach }) => breach)).toEqual([null, 'duplicate_id', 'duplicate_id'])
  })

  test('two instances get one new id: one accepted, the other uncertain', async () => {
    for (let round = 0; round < 20; round++) {
      const two = (await sending(2)) as [Submission, Submission]
      await Promise.all(two.map((each) => write(accepted(each, `tx ${round}`))))
      expect((await states(two)).sort()).toEqual(['accepted', 'uncertain'])
    }
  })
})

describe('these are no duplicates:', () => {
  test('a transaction and an order with the same id', async () => {
    const both = await sending(2, ['data', 'orders'])
    await write(...both.map((each) => accepted(each)))
    expect(await states(both)).toEqual(['accepted', 'accepted'])
  })

  test('the same record under its former id, from a service that recognises its key', async () => {
    const [first] = (await sending(1)) as [Submission]
    await write(accepted(first))
    await ledger.pool.query(`update outboxd.submission set state = 'queued', due_at = now()`)
    const again = (await claim(ledger.dispatch(), { submissions: 1 })).submissions
    await write(...again.map((each) => accepted(each)))
    expect(await states(again)).toEqual(['accepted'])
  })

  test('a step that is written twice because the answer to its COMMIT was lost', async () => {
    const [first] = (await sending(1)) as [Submission]
    await write(accepted(first))
    expect((await write(accepted(first))).written).toEqual([])
    expect(await states([first])).toEqual(['accepted'])
  })
})

test('an index finds a transaction by its id', async () => {
  const client = await ledger.pool.connect()
  onTestFinished(() => client.release(true))
  // As in the daemon's sessions: the plan must not depend on when the small table was analyzed.
  await client.query('set enable_seqscan = off; set enable_bitmapscan = off')
  const { rows } = await client.query<{ 'QUERY PLAN': string }>(
    `explain select s.id from unnest(array['tx'], array['data']) wanted(id, resource)
     join outboxd.submission s on s.transaction_id = wanted.id and s.resource = wanted.resource`,
  )
  expect(rows.map((row) => row['QUERY PLAN']).join('\n')).toContain('Index Scan using submission_transaction')
})
