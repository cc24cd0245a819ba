import { afterEach, expect, onTestFinished, test } from 'vitest'
import { command as list } from '../../../src/commands/list.ts'
import { command as replay } from '../../../src/commands/replay.ts'
import { command as resolve } from '../../../src/commands/resolve.ts'
import { command as status } from '../../../src/commands/status.ts'
import { testContext } from '../../support/context.ts'
import { scrape } from '../../support/scrape.ts'
import { until } from '../../support/until.ts'
import { type Harness, setup } from './harness.ts'

/** Records that failed but may have arrived, and ids that operators give. */

let harness: Harness
afterEach(() => harness.control('DELETE', 'faults'))

async function started(settings: Parameters<typeof setup>[0] = {}) {
  harness = await setup(settings)
  onTestFinished(() => harness[Symbol.asyncDispose]())
  const daemon = await harness.start()
  return daemon
}

/** Runs an operator's command. @returns its output */
async function output(command: (context: ReturnType<typeof testContext>) => Promise<number>): Promise<string> {
  const context = testContext(harness.env)
  await command(context)
  return context.printed() + context.messages()
}

test('500 four times although it was stored: found by replay, by name only', async () => {
  const daemon = await started({ idempotency: 'replay' })
  await harness.fault({ kind: 'answer', status: 500, when: 'after', endpoint: 'submit', times: 4 })
  const id = await harness.insert('stored-')
  const failed = await harness.becomes('stored-', 'failed')
  expect(failed).toMatchObject({ posts: [500, 500, 500, 500], effects: 1 })
  expect(await output((context) => list.action(context, {}))).toContain('may have arrived')
  expect(await output((context) => status.action(context, {}))).toContain('1 record needs attention (1 failed)')
  await until(
    () => scrape(daemon),
    (text) => text.includes('outboxd_submissions{state="failed"} 1'),
  )

  const message = await output((context) => replay.action(context, [], { state: 'failed', yes: true }))
  expect(message).toContain('Replayed 0 records; 1 record left alone')
  await output((context) => replay.action(context, [`outbox:${id}`], {}))
  const outcome = await harness.becomes('stored-', 'completed')
  expect(outcome).toMatchObject({ effects: 1, attempt: 5 })
  expect(new Set(outcome.keys).size).toBe(1)
})

test('E002 to a replay: uncertain', async () => {
  await started({ idempotency: 'e002' })
  await harness.fault({ kind: 'answer', status: 500, when: 'before', endpoint: 'submit', times: 3 })
  await harness.fault({ kind: 'answer', status: 500, when: 'after', endpoint: 'submit', times: 1 })
  const id = await harness.insert('known-')
  await harness.becomes('known-', 'failed')
  await output((context) => replay.action(context, [`outbox:${id}`], {}))
  expect(await harness.becomes('known-', 'uncertain')).toMatchObject({ code: 'E002', effects: 1 })
})

test('`resolve --arrived` with an unknown id: refused; with `--unchecked`: uncertain again', async () => {
  await started()
  await harness.fault({ kind: 'drop', when: 'after', endpoint: 'submit', times: 1 })
  const id = await harness.insert('mistyped-')
  await harness.becomes('mistyped-', 'uncertain')
  const name = `outbox:${id}`
  expect(await output((context) => resolve.action(context, name, { arrived: 'no-such-id' }))).toContain('does not know')
  await output((context) => resolve.action(context, name, { arrived: 'no-such-id', unchecked: true, yes: true }))
  await until(
    () => harness.pool.query('select from outboxd.submission where unknown_since is not null'),
    ({ rowCount }) => rowCount === 1,
  )
  await harness.pool.query(`update outboxd.submission set unknown_since = clock_timestamp() - interval '11 minutes'`)
  const outcome = await harness.becomes('mistyped-', 'uncertain')
  expect(outcome.error).toContain('does not know no-such-id, the transaction that an operator named')

  const { rows } = (await harness.control('GET', 'transactions?limit=1')) as { rows: { transactionId: string }[] }
  await output((context) => resolve.action(context, name, { arrived: rows[0]?.transactionId ?? '' }))
  expect(await harness.becomes('mistyped-', 'completed')).toMatchObject({ effects: 1, posts: [null] })
})
