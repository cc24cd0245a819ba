import { describe, expect, test } from 'vitest'
import { command as discard } from '../../src/commands/discard.ts'
import type { OptionsOf } from '../../src/commands/terminal/command.ts'
import { discardSeenSubmissions } from '../../src/ledger/operator/decisions.ts'
import type { GivenChange } from '../support/change.ts'
import { claim, outcomeBatch, setKeyOnFailure, transition } from '../support/ledger.ts'
import { testActor } from '../support/testActor.ts'
import { failedE003, openFixtureForFile, uncertain } from './fixture.ts'

const fixture = openFixtureForFile()

async function run(ids: string[], options: OptionsOf<typeof discard>, env: Record<string, string> = {}) {
  const context = fixture.context(null, env)
  const code = await discard.action(context, ids, options)
  return { code, printed: context.printed(), messages: context.messages() }
}

const reason = 'entered twice'

test('discard gives up one record without asking, logs the reason and keeps the error', async () => {
  const id = await fixture.end(failedE003)
  expect((await run([id], { reason })).code).toBe(0)
  expect(await fixture.ledger.row(id)).toMatchObject({ state: 'discarded', error_code: 'E003', report_due: true })
  expect((await fixture.ledger.events(id)).at(-1)).toBe('failed -> discarded: discarded: entered twice')
})

test('discarding an uncertain record releases the next record of its key', async () => {
  const first = await fixture.end(uncertain, { key: 'k' })
  const second = await fixture.end({ state: 'queued' }, { key: 'k' })
  await run([first], { reason })
  expect((await fixture.ledger.row(second)).held).toBe(false)
})

test('with KEY_ON_FAILURE=block, discarding a failed record releases the next record of its key', async () => {
  const first = await fixture.end(failedE003, { key: 'k' })
  await setKeyOnFailure(fixture.ledger.pool, 'block')
  const [second = ''] = await fixture.ledger.capture([{ key: 'k' }])
  expect((await fixture.ledger.row(second)).held).toBe(true)
  await run([first], { reason }, { KEY_ON_FAILURE: 'continue' })
  expect((await fixture.ledger.row(second)).held).toBe(false)
})

test('without a terminal, discarding in bulk needs --yes', async () => {
  await fixture.end(failedE003, { type: 'order' })
  await fixture.end(uncertain)
  const asked = await run([], { reason, state: 'failed,uncertain' })
  expect(asked.code).toBe(4)
  expect(asked.messages).toContain('This would discard 2 records')
  expect((await run([], { reason, type: 'order', yes: true })).code).toBe(0)
  expect(await fixture.ledger.countStates()).toEqual({ discarded: 1, uncertain: 1 })
})

test('discard takes --containing, --may-have-arrived and --transaction, but not a key as an id', async () => {
  await fixture.end(failedE003, { payload: '{"customer":"C-1"}' })
  const found = await fixture.end(failedE003, { payload: '{"customer":"C-2"}' })
  const arrived = await fixture.end({ ...failedE003, mayHaveArrived: true, transactionId: 'tx-3' })
  const would = async (options: OptionsOf<typeof discard>) =>
    JSON.parse((await run([], { reason, dryRun: true, json: true, ...options })).printed).discarded
  expect(await would({ containing: 'c-2' })).toEqual([found])
  expect(await would({ mayHaveArrived: true })).toEqual([arrived])
  expect(await would({ transaction: 'tx-3' })).toEqual([arrived])
  const several = await run(['key:k'], { reason })
  expect(several.code).toBe(3)
})

test('--dry-run shows and changes nothing', async () => {
  await fixture.end(failedE003)
  const { code, printed } = await run([], { reason, state: 'failed', dryRun: true })
  expect(code).toBe(0)
  expect(printed).toContain('This would discard 1 record')
  expect(await fixture.ledger.countStates()).toEqual({ failed: 1 })
})

describe('a queued record', () => {
  test.each([
    ['that was not sent', 'attempt = 0', false],
    ['that waits after E003, so that it may have arrived', 'attempt = 1, answered_unavailable = true', true],
    ['that waits after a 500, so that it may have arrived', 'attempt = 1, in_doubt = true', true],
  ])('%s is discarded, and the next record of its key is sent', async (_, columns, mayHaveArrived) => {
    const first = await fixture.end({ state: 'queued' }, { key: 'k' })
    await fixture.ledger.pool.query(`update outboxd.submission set ${columns}`)
    const second = await fixture.end({ state: 'queued' }, { key: 'k' })
    expect((await run([first], { reason })).code).toBe(0)
    expect(await fixture.ledger.row(first)).toMatchObject({
      ...{ state: 'discarded', due_at: null, may_have_arrived: mayHaveArrived, report_due: true },
    })
    const { submissions } = await claim(fixture.ledger.dispatch(), { submissions: 5 })
    expect(submissions.map(({ id }) => id)).toEqual([second])
  })

  test('is not matched by a filter without --state', async () => {
    const id = await fixture.end({ state: 'queued' }, { type: 'order' })
    await run([], { reason, type: 'order', yes: true })
    expect((await fixture.ledger.row(id)).state).toBe('queued')
  })

  test('whose request is on the way is not discarded', async () => {
    const id = await fixture.end({ state: 'queued' })
    await claim(fixture.ledger.dispatch(), { submissions: 1 })
    const { code, messages } = await run([id], { reason })
    expect(code).toBe(1)
    expect(messages).toContain('it is under way. Wait for its answer')
    expect((await fixture.ledger.row(id)).state).toBe('sending')
  })

  test('that is claimed while the command waits for it is not discarded', async () => {
    const id = await fixture.end({ state: 'queued' })
    const { revision, key } = await fixture.ledger.read(id)
    await claim(fixture.ledger.dispatch(), { submissions: 1 })
    const operator = { ledger: fixture.ledger.pool, url: fixture.ledger.url, actor: testActor }
    expect(await discardSeenSubmissions(operator, [{ id, revision, key }])).toEqual([])
    expect((await fixture.ledger.row(id)).state).toBe('sending')
  })
})

describe('an accepted record', () => {
  const accepted = (): GivenChange => ({ state: 'accepted', pollInMs: 0, transactionId: 'tx-1' })

  test('is discarded only if confirmed, even a single one, and is not polled any more', async () => {
    const id = await fixture.end(accepted())
    const asked = await run([id], { reason })
    expect(asked.code).toBe(4)
    expect(asked.messages).toContain('The service has accepted 1 record of these and may still complete them')
    expect((await fixture.ledger.row(id)).state).toBe('accepted')
    expect((await run([id], { reason, yes: true })).code).toBe(0)
    expect(await fixture.ledger.row(id)).toMatchObject({ state: 'discarded', transaction_id: 'tx-1' })
    expect((await fixture.ledger.events(id)).at(-1)).toBe('accepted -> discarded: discarded: entered twice')
    expect(await fixture.ledger.polled()).toEqual([])
  })

  test('stays discarded if the answer to its poll comes later', async () => {
    const id = await fixture.end(accepted())
    const work = fixture.ledger.dispatch()
    const { polls } = await claim(work, { polls: 1 })
    expect((await run([id], { reason, yes: true })).code).toBe(0)
    const late = polls.map(({ submission, poll }) => transition(submission, { state: 'completed' }, poll))
    expect((await work.writeOutcomes(outcomeBatch({ transitions: late }))).written).toEqual([])
    expect((await fixture.ledger.row(id)).state).toBe('discarded')
  })

  test('is not matched by a filter without --state', async () => {
    await fixture.end({ ...accepted(), transactionId: 'tx-1' })
    await fixture.end(failedE003)
    expect((await run([], { reason, type: 'data', yes: true })).code).toBe(0)
    expect(await fixture.ledger.countStates()).toEqual({ accepted: 1, discarded: 1 })
    expect((await run([], { reason, state: 'accepted', yes: true })).code).toBe(0)
    expect(await fixture.ledger.countStates()).toEqual({ discarded: 2 })
  })
})

test.each([
  [[], { reason }, 'give ids, such as outbox:4711, or a filter'],
  [['outbox:1'], { reason: ' ' }, '--reason must not be empty'],
  [[], { reason, state: 'sending' }, 'it is under way. Wait for its answer'],
])('%j %j exits with 2', async (ids, options, message) => {
  const { code, messages } = await run(ids, options)
  expect(code).toBe(2)
  expect(messages).toContain(message)
})

test('discard exits with 3 if no record matches', async () => {
  expect((await run([], { reason, state: 'failed', yes: true })).code).toBe(3)
})
