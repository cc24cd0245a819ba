import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { command as audit } from '../../src/commands/audit.ts'
import type { OptionsOf } from '../../src/commands/terminal/command.ts'
import { appendLogsToChain } from '../../src/ledger/audit/chain.ts'
import { type Fixture, openFixture } from './fixture.ts'

let fixture: Fixture
beforeAll(async () => {
  fixture = await openFixture()
})
afterAll(() => fixture[Symbol.asyncDispose]())
beforeEach(() => fixture.reset())

async function run(options: OptionsOf<typeof audit> = {}) {
  const context = fixture.context()
  const code = await audit.action(context, { verify: true, ...options })
  return { code, printed: context.printed(), messages: context.messages() }
}
const chain = () => appendLogsToChain(fixture.ledger.pool, () => true)

test('--verify prints the head of the chain, and --noted reports a chain that no longer contains that head', async () => {
  await fixture.ledger.capture([{}, {}])
  expect(await run()).toMatchObject({
    code: 3,
    printed: '',
    messages: expect.stringContaining('There is no chain yet. 2 newer'),
  })
  await chain()
  const { code, printed, messages } = await run()
  expect(code).toBe(0)
  expect(printed).toMatch(/^1:[0-9a-f]{64}\n$/)
  expect(messages).toContain('The chain is intact: 1 block, 2 unchanged entries.')
  expect(await run({ noted: printed })).toMatchObject({
    code: 0,
    messages: expect.stringContaining('The chain contains the noted head'),
  })
  for (const [noted, why] of [
    [`1:${'0'.repeat(64)}`, 'block 1 differs from the noted one'],
    [printed.replace('1:', '2:'), 'the noted block 2 is missing'],
  ] as const) {
    const differs = await run({ noted })
    expect(differs.code).toBe(1)
    expect(differs.messages).toBe(
      `The chain is broken: ${why}.\nAny entry up to block ${noted[0]} may have been rewritten. Entries after it were not verified.\n`,
    )
  }
})

test('--verify names the first break and exits with 1, also with --json', async () => {
  await fixture.ledger.capture([{}])
  await chain()
  const { pool } = fixture.ledger
  await pool.query('alter table outboxd.submission_event disable trigger user')
  await pool.query(`update outboxd.submission_event set who = 'operator eve'`)
  await pool.query('alter table outboxd.submission_event enable trigger user')
  const { code, messages } = await run()
  expect(code).toBe(1)
  expect(messages).toMatch(
    /The chain is broken: event \d+ of submission \S+ was changed\.\nEntries before it are unchanged\..*\nFind out who may write/,
  )
  expect(JSON.parse((await run({ json: true })).printed)).toMatchObject({
    broken: expect.stringContaining('was changed'),
    brokenBy: 'block',
  })
})

test.each([
  [{ noted: 'abc' }, '--noted needs a head'],
  [{ verify: false, noted: `1:${'0'.repeat(64)}` }, '--noted needs --verify'],
  [{ since: '1h' }, '--verify reads the whole chain'],
])('%j is refused', async (options, message) => {
  expect(await run(options)).toMatchObject({ code: 2, messages: expect.stringContaining(message) })
})
