import { beforeEach, expect, onTestFinished, test } from 'vitest'
import { command as prune } from '../../src/commands/prune.ts'
import type { OptionsOf } from '../../src/commands/terminal/command.ts'
import { setSettings } from '../support/ledger.ts'
import { startProgram } from '../support/program.ts'
import { completeAgo } from '../support/retention.ts'
import { until } from '../support/until.ts'
import { failedE003, openFixtureForFile } from './fixture.ts'

const fixture = openFixtureForFile()
beforeEach(async () => {})

async function run(options: OptionsOf<typeof prune>, env: Record<string, string> = {}) {
  const context = fixture.context(null, env)
  const code = await prune.action(context, options)
  return { code, printed: context.printed(), messages: context.messages() }
}

/** Captures `count` records that were completed `days` days ago. */
async function completed(count: number, days: number): Promise<void> {
  await fixture.ledger.capture(Array.from({ length: count }, () => ({})))
  await completeAgo(fixture.ledger.pool, days)
}

test('--dry-run counts by state and age what would be deleted, and changes nothing', async () => {
  await completed(3, 100)
  await completed(2, 40)
  const { code, printed, messages } = await run({ dryRun: true })
  expect(code).toBe(0)
  expect(printed).toMatch(/^completed +100 d +3 +0\ncompleted +40 d +0 +2\n$/m)
  expect(messages).toBe('Would delete 3 records and empty 2 (delete the contents only).\n')
  expect(await fixture.ledger.countStates()).toEqual({ completed: 5 })
})

test('prune deletes and empties the records that are due, and says how many', async () => {
  await completed(3, 100)
  await completed(2, 40)
  await fixture.end(failedE003)
  const { code, messages } = await run({})
  expect([code, messages]).toEqual([0, 'Deleted 3 records, emptied 2.\n'])
  expect(await run({})).toMatchObject({ code: 3, messages: 'No record is old enough to be pruned.\n' })
  await setSettings(fixture.ledger.pool, { RETENTION_DAYS: '39' })
  expect(await run({})).toMatchObject({ messages: 'Deleted 2 records, emptied 0.\n' })
  expect(await fixture.ledger.countStates()).toEqual({ failed: 1 })
})

test('prune exits with 1 if records are kept because another session has locked them', async () => {
  await completed(2, 100)
  const other = await fixture.ledger.pool.connect()
  onTestFinished(() => other.release())
  await other.query('begin; select from outboxd.submission for update')
  const { code, messages } = await run({})
  await other.query('rollback')
  expect([code, messages]).toEqual([1, expect.stringMatching(/^Deleted 0 records.* The rest is left, because/)])
  expect(await run({})).toMatchObject({ code: 0, messages: expect.stringContaining('Deleted 2 records') })
})

test('records are kept as long as the ledger says, whatever the shell says', async () => {
  await completed(1, 40)
  expect(await run({}, { RETENTION_DAYS: '1', RETENTION_PAYLOAD_DAYS: '1' })).toMatchObject({
    messages: 'Deleted 0 records, emptied 1.\n',
  })
  expect(await fixture.ledger.countStates()).toEqual({ completed: 1 })
})

test('before any daemon ran, prune says that the ledger has no settings', async () => {
  await fixture.ledger.reset()
  await expect(run({})).rejects.toThrow('the ledger has no settings yet, because no daemon has run with it')
})

test('with retention of 0 days prune keeps everything, and says so', async () => {
  await completed(1, 4_000)
  await setSettings(fixture.ledger.pool, { RETENTION_DAYS: '0', RETENTION_PAYLOAD_DAYS: '0' })
  expect(await run({})).toMatchObject({ code: 3, messages: expect.stringContaining('keeps everything') })
})

test('--json prints what was due, what was done, and the retention in days', async () => {
  await completed(2, 100)
  const { printed } = await run({ json: true })
  expect(JSON.parse(printed)).toEqual({
    dryRun: false,
    retentionDays: 90,
    retentionPayloadDays: 30,
    due: [{ state: 'completed', ageDays: 100, submissions: 2, toEmpty: 0 }],
    submissions: 2,
    emptied: 0,
    isComplete: true,
  })
})

const pruneActs = async () =>
  (await fixture.ledger.pool.query(`select detail from outboxd.operator_act where act = 'prune' order by id`)).rows

test('a prune is logged', async () => {
  await completed(2, 100)
  await run({})
  expect(await pruneActs()).toEqual([{ detail: { days: 90, payloadDays: 30 } }])
})

test('SIGKILL during `prune`: each record is whole or deleted, and the act is logged', async () => {
  const { pool, url } = fixture.ledger
  await completed(4_000, 100)
  const count = async (table: string) => (await pool.query(`select from outboxd.${table}`)).rowCount ?? 0
  for (let kills = 0; kills < 2; kills++) {
    const before = await count('submission')
    const program = startProgram({ args: ['prune'], env: { DATABASE_URL: url } })
    await until(
      () => count('submission'),
      (left) => left < before,
    )
    program.signal('SIGKILL')
    await program.ended()
    expect(await count('submission')).toBe(await count('submission_event'))
    const counted = await pool.query<{ n: number }>('select sum(delta)::int as n from outboxd.state_delta')
    expect(counted.rows).toEqual([{ n: await count('submission') }])
    expect(await pruneActs()).toHaveLength(kills + 1)
  }
  expect(await count('submission')).toBeGreaterThan(0) // the kills came before its end
  await run({})
  expect([await count('submission'), await count('submission_event')]).toEqual([0, 0])
})
