import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest'
import { command as status } from '../../src/commands/status.ts'
import { startProgram } from '../support/program.ts'
import { until } from '../support/until.ts'
import { type Fixture, openFixture, payloadOf } from './fixture.ts'

let fixture: Fixture
beforeAll(async () => {
  fixture = await openFixture()
})
afterAll(() => fixture[Symbol.asyncDispose]())
beforeEach(() => fixture.reset())

/** Replaces the escape character by a visible text. */
const shown = (text: string) => text.replaceAll('\x1b', 'ESC')
const lines = (text: string) => text.split('\n').slice(0, -1)

test('without a terminal, each refresh prints one line, and SIGINT exits with 0', async () => {
  await using program = startProgram({
    args: ['status', '--watch', '--every', '1s'],
    env: { DATABASE_URL: fixture.ledger.url },
  })
  await program.line((line) => line.includes('to send 0 in the outbox and 0 captured'))
  await fixture.row(payloadOf())
  const line = await program.line((text) => text.includes('to send 1 in the outbox and 0 captured'))
  expect(line).toMatch(
    /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ No daemon is running, .* \| to send 1 in the outbox and 0 captured, at the service 0, need attention 0, 100 of 100 requests free$/,
  )
  program.signal('SIGINT')
  expect(await program.ended()).toMatchObject({ code: 0, signal: null, stderr: '' })
})

test('--json prints one document on each line', async () => {
  const context = fixture.context()
  const ended = status.action(context, { watch: true, every: '1s', json: true })
  const printed = await until(context.printed, (text) => lines(text).length >= 2)
  context.abort()
  expect(await ended).toBe(0)
  const documents = lines(printed).map((line) => JSON.parse(line))
  for (const document of documents) expect(document).toMatchObject({ well: false, outboxWaiting: 0 })
  expect(Date.parse(documents[1].at)).toBeGreaterThan(Date.parse(documents[0].at))
})

test('a terminal is redrawn, shows when the ledger cannot be read, and recovers', async () => {
  const context = fixture.context()
  Object.assign(context.stdout, { isTTY: true, columns: 200, rows: 60 })
  const ended = status.action(context, { watch: true, every: '1s' })
  const first = await until(context.printed, (text) => text.includes('instances'))
  expect(shown(first)).toMatch(/^ESC\[2JESC\[Houtboxd status at .*Z, every 1 s; Ctrl-C ends it\n\nNo daemon is running/)
  const { pool } = fixture.ledger
  await pool.query('alter table outboxd.pause rename to pause_away')
  const restore = () => pool.query('alter table if exists outboxd.pause_away rename to pause')
  onTestFinished(() => void restore())
  const second = await until(
    () => context.printed().slice(first.length),
    (text) => text.includes('The ledger cannot be read'),
  )
  expect(shown(second)).toMatch(
    /ESC\[Houtboxd status at .*\n[\s\S]*The ledger cannot be read, and will be read again: .*pause/,
  )
  await restore()
  const before = context.printed().length
  await until(
    () => context.printed().slice(before),
    (text) => text.includes('instances'),
  )
  context.abort()
  expect(await ended).toBe(0)
})
