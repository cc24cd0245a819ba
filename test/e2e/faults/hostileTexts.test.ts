import { randomBytes } from 'node:crypto'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { command as list } from '../../../src/commands/list.ts'
import { command as show } from '../../../src/commands/show.ts'
import { type TestContext, testContext } from '../../support/context.ts'
import { type Daemon, startDaemonProcess } from '../../support/daemon.ts'
import { createDatabase } from '../../support/database.ts'
import { migrateAll } from '../../support/postgres.ts'
import { scrape } from '../../support/scrape.ts'
import { statusSays } from '../../support/statusSays.ts'
import { until } from '../../support/until.ts'
import { type Harness, setup } from './harness.ts'

/**
 * A harmful text of 3,000 characters: too long for an index, with NUL, half a surrogate pair, characters that turn the
 * direction of writing, control characters, and characters beyond the Basic Multilingual Plane and beyond LATIN1.
 */
const harmful = '\0 \ud800 \u202e \u001b[2J \r\n 😀 Ł € … ’ "\\ '
const hostile = harmful + randomBytes(2_240).toString('base64')

/** Characters that move a terminal's cursor, hide a line or turn the direction of writing. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: the test looks for control characters
const unprintable = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/

describe.each(['UTF8', 'LATIN1'])('in a database of encoding %s', (encoding) => {
  let harness: Harness
  let daemon: Daemon
  const stack = new AsyncDisposableStack()
  beforeAll(async () => {
    const database = stack.use(await createDatabase('template0', `encoding '${encoding}' locale 'C'`))
    await migrateAll(database.url)
    harness = stack.use(await setup({}, database.url))
    daemon = await harness.start()
  })
  afterAll(() => stack.disposeAsync())
  afterEach(() => harness.control('DELETE', 'faults'))

  const answers: [name: string, endpoint: string, status: number, body: object, state: string][] = [
    ['failed, its code', 'status', 200, { status: 'failed', errorCode: hostile }, 'failed'],
    ['completed, its result', 'status', 200, { status: 'completed', result: { text: hostile } }, 'completed'],
    ['400, its message', 'submit', 400, { code: 'E001', message: hostile }, 'rejected'],
    ['400, its code', 'submit', 400, { code: hostile }, 'rejected'],
    ['400, its problem', 'submit', 400, { type: hostile, title: hostile, errors: [{ detail: hostile }] }, 'rejected'],
    ['200, its id', 'submit', 200, { transactionId: hostile }, 'uncertain'],
    ['200, an id that LATIN1 lacks', 'submit', 200, { transactionId: 'Łódź-1' }, 'accepted or uncertain'],
  ]
  test.each(
    answers,
  )('3,000 harmful characters (NUL, half surrogates, controls) in an answer (%s, %s %s %s): it counts as usual', async (name, endpoint, status, body, state) => {
    const marker = `${name.replaceAll(/\W+/g, '-')}-`
    await harness.fault({ kind: 'answer', status, body: JSON.stringify(body), endpoint, times: 1 })
    await harness.insert(marker)
    const byEncoding = encoding === 'UTF8' ? 'accepted' : 'uncertain'
    const expected = state.includes(' or ') ? byEncoding : state
    const { code, status: told } = await harness.becomes(marker, expected)
    expect(told).toBe(expected)
    expect((code ?? '').length).toBeLessThanOrEqual(64)
  })

  test('after a status with harmful characters the record is asked for again and completes', async () => {
    const body = JSON.stringify({ status: hostile })
    await harness.fault({ kind: 'answer', status: 200, body, endpoint: 'status', times: 1 })
    await harness.insert('unknown-status-')
    expect(await harness.becomes('unknown-status-', 'completed')).toMatchObject({ effects: 1 })
  })

  test('a record with harmful characters that does not map is rejected with field and reason', async () => {
    const customerId = 'Müller & Söhne, more than ten characters'
    await harness.insert('does-not-map-', { customerId })
    const { error } = await harness.becomes('does-not-map-', 'rejected')
    expect(error).toMatch(/^customer_id \(from customerId\) .*10/)
  })

  test('a 503 with harmful characters pauses, and the record is sent afterwards', async () => {
    const body = JSON.stringify({ code: 'E003', message: hostile })
    await harness.fault({ kind: 'answer', status: 503, body, endpoint: 'submit', times: 1 })
    await harness.insert('paused-')
    expect(await harness.becomes('paused-', 'completed')).toMatchObject({ effects: 1 })
  })

  test('if an ERP trigger raises harmful characters, only that row is written later', async () => {
    const { pool } = harness
    const raised = randomBytes(2_240).toString('base64')
    await pool.query(`create function raise() returns trigger language plpgsql as $$
      begin if new.payload::text like '%raising-%' and new.status = 'completed' then raise exception '${raised}'; end if; return new; end $$;
      create trigger raising before update on outbox for each row execute function raise()`)
    await harness.insert('raising-')
    await harness.insert('not-raising')
    await harness.becomes('not-raising', 'completed')
    const { rows } = await until(
      () => pool.query<{ n: number }>(`select length(detail) as n from outboxd.problem where kind = 'report_refused'`),
      ({ rowCount }) => rowCount === 1,
    )
    expect(rows[0]?.n).toBeLessThan(500)
    await pool.query('drop function raise() cascade')
  })

  test('harmful characters in type or key: rejected', async () => {
    const storable = hostile
      .replaceAll('\0', '')
      .toWellFormed()
      .replaceAll(/[^\x20-\xff]/g, '')
    await harness.insert('hostile-key-', { key: storable })
    await harness.insert('hostile-type-', { type: storable })
    await harness.insert('beside-')
    await harness.becomes('beside-', 'completed')
    await harness.becomes('hostile-type-', 'rejected')
    await harness.becomes('hostile-key-', 'rejected')
  })

  test('`list`, `show`, `status` and metrics print harmful characters safely', async () => {
    const printed = async (run: (context: TestContext) => Promise<number>) => {
      const context = testContext(harness.env)
      await run(context)
      return context.printed()
    }
    const { rows } = await harness.pool.query<{ id: string }>('select id::text from outbox order by id')
    const texts = [
      await printed((context) => list.action(context, {})),
      await printed((context) => list.action(context, { byCause: true })),
      await statusSays(harness.env),
      await scrape(daemon),
    ]
    for (const { id } of rows) texts.push(await printed((context) => show.action(context, `outbox:${id}`, {})))
    expect(texts.length).toBeGreaterThan(10)
    expect(texts.filter((text) => unprintable.test(text) || !text.isWellFormed())).toEqual([])
    expect(Math.max(...texts.flatMap((text) => text.split('\n').map(({ length }) => length)))).toBeLessThan(8_000)
  })
})

test('SIGTERM ends the process after an error code of 3,000 characters', async () => {
  await using harness = await setup()
  await using daemon = await startDaemonProcess(harness.env)
  const body = JSON.stringify({ status: 'failed', errorCode: hostile })
  await harness.fault({ kind: 'answer', status: 200, body, endpoint: 'status' })
  await harness.insert('long-code-')
  await harness.becomes('long-code-', 'failed')
  daemon.signal('SIGTERM')
  expect((await daemon.ended()).code).toBe(0)
})
