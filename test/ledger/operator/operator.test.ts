import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { readDatabaseConfig } from '../../../src/config.ts'
import { discardSeenSubmissions } from '../../../src/ledger/operator/decisions.ts'
import { logOperatorAct, type Operator } from '../../../src/ledger/operator/operator.ts'
import { queueReplays, type Replay, readReplayableSubmissions } from '../../../src/ledger/operator/replaySubmissions.ts'
import { resolveAsArrived, resolveAsNotArrived } from '../../../src/ledger/operator/resolveSubmission.ts'
import { findSubmissions } from '../../../src/ledger/operator/selectSubmissions.ts'
import { readLedgerSnapshot } from '../../../src/ledger/snapshot.ts'
import { createOperator, type Databases, openDatabases } from '../../../src/operations/databases.ts'
import { failedE003, openFixtureForFile, uncertain } from '../../commands/fixture.ts'
import { createDatabase } from '../../support/database.ts'

const fixture = openFixtureForFile()
let databases: Databases
let operator: Operator
beforeAll(async () => {
  databases = await open(fixture.ledger.url)
  operator = createOperator(databases, { who: 'operator test', reason: 'x' })
})
afterAll(() => databases[Symbol.asyncDispose]())

const open = (url: string) => openDatabases(readDatabaseConfig({ DATABASE_URL: url }), 'test@host', () => 'outbox')

async function seen(id: string) {
  const [found] = await findSubmissions(databases.ledger, { kind: 'ids', value: [id] }, 1)
  if (found === undefined) throw new Error(`there is no ${id}`)
  return found
}

const replayOf = ({ id, revision, key }: { id: string; revision: number; key: string | null }): Replay => ({
  id,
  revision,
  type: 'data',
  key,
  resource: 'data',
  payload: '{}',
  body: '{}',
  amounts: {},
  tracked: true,
  sendsOwnId: false,
})

describe('a record that took a step since the operator saw it is left alone', () => {
  const touch = (id: string) =>
    fixture.ledger.pool.query('update outboxd.submission set revision = revision + 1 where id = $1', [id])

  test('by a replay', async () => {
    const submission = await seen(await fixture.end(failedE003))
    await touch(submission.id)
    expect(await readReplayableSubmissions(databases.ledger, [submission])).toEqual([])
    expect(await queueReplays(operator, [replayOf(submission)], false)).toEqual([])
    expect(await fixture.ledger.countStates()).toEqual({ failed: 1 })
  })

  test('by a discard', async () => {
    const submission = await seen(await fixture.end(failedE003))
    await touch(submission.id)
    expect(await discardSeenSubmissions(operator, [submission])).toEqual([])
    expect(await fixture.ledger.countStates()).toEqual({ failed: 1 })
  })

  test('by both ways to resolve it, and no poll is left behind', async () => {
    const submission = await seen(await fixture.end(uncertain))
    await touch(submission.id)
    expect(await resolveAsArrived(operator, submission, { resource: 'data', transactionId: 'tx' })).toEqual({
      kind: 'changed',
    })
    expect(await resolveAsNotArrived(operator, [submission], false)).toEqual([])
    expect(await fixture.ledger.countStates()).toEqual({ uncertain: 1 })
    expect(await fixture.ledger.polled()).toEqual([])
  })
})

test('if two operators replay the same records at once, only one replay takes effect', async () => {
  const submissions = []
  for (let i = 0; i < 5; i++) submissions.push(await seen(await fixture.end(failedE003, { key: 'k' })))
  const replays = submissions.map(replayOf)
  const both = await Promise.all([
    queueReplays(operator, replays, false),
    queueReplays(operator, replays.toReversed(), false),
  ])
  expect(both.map((ids) => ids.length).sort()).toEqual([0, 5])
  const { rows } = await fixture.ledger.pool.query(
    `select count(*)::int as n from outboxd.submission_event where cause = 'replayed'`,
  )
  expect(rows).toEqual([{ n: 5 }])
})

test('of several replayed records of one key, the first may be sent and the others wait behind it', async () => {
  const ids = []
  for (let i = 0; i < 3; i++) ids.push(await fixture.end(failedE003, { key: 'k' }))
  const submissions = await Promise.all(ids.toReversed().map(seen))
  await queueReplays(operator, submissions.map(replayOf), false)
  const held = await Promise.all(ids.map(async (id) => (await fixture.ledger.row(id)).held))
  expect(held).toEqual([false, true, true])
})

test('the counts by state follow a replay and a discard', async () => {
  const one = await seen(await fixture.end(failedE003))
  const two = await seen(await fixture.end(uncertain))
  await queueReplays(operator, [replayOf(one)], false)
  await discardSeenSubmissions(operator, [two])
  const { submissions } = await readLedgerSnapshot(databases.ledger)
  expect(submissions).toMatchObject({ queued: 1, discarded: 1, failed: 0, uncertain: 0 })
})

test('a record whose status the interface does not have can be discarded', async () => {
  const asked = { state: 'accepted', transactionId: 'tx', pollInMs: 0, foreignStatus: 'archived' } as const
  const submission = await seen(await fixture.end(asked))
  expect(await discardSeenSubmissions(operator, [submission])).toEqual([submission.id])
  expect(await fixture.ledger.countStates()).toEqual({ discarded: 1 })
})

test('a completed record can be neither replayed nor discarded', async () => {
  const submission = await seen(await fixture.end({ state: 'completed' }))
  expect(await queueReplays(operator, [replayOf(submission)], false)).toEqual([])
  expect(await discardSeenSubmissions(operator, [submission])).toEqual([])
})

test.each([
  `update outboxd.operator_act set who = 'another'`,
  'delete from outboxd.operator_act',
])('the log of acts is append-only: %s is refused', async (statement) => {
  await logOperatorAct(databases.ledger, operator.actor, 'pause', null)
  await expect(fixture.ledger.pool.query(statement)).rejects.toThrow('append-only')
})

test('opening a database that was not migrated names the command to run', async () => {
  await using empty = await createDatabase('template0')
  await expect(open(empty.url)).rejects.toThrow('Run `outboxd migrate` first')
})

test('the error about an unreachable database does not contain its password', async () => {
  await expect(open('postgres://user:hunter2@127.0.0.1:1/x')).rejects.toThrow(
    expect.objectContaining({ message: expect.not.stringContaining('hunter2') }),
  )
})
