import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { command as audit } from '../../src/commands/audit.ts'
import { command as erase } from '../../src/commands/erase.ts'
import { command as replay } from '../../src/commands/replay.ts'
import { command as resolve } from '../../src/commands/resolve.ts'
import { command as show } from '../../src/commands/show.ts'
import type { OptionsOf } from '../../src/commands/terminal/command.ts'
import { startProgram } from '../support/program.ts'
import { until } from '../support/until.ts'
import { failedE003, openFixtureForFile, payloadOf, uncertain } from './fixture.ts'

const fixture = openFixtureForFile()

const person = 'Erika Mustermann'
const payload = payloadOf({ field2: `"${person}"` })
const given = { key: person, reason: 'request 2026-17', as: 'officer', yes: true }
const sql = (text: string, values: unknown[] = []) => fixture.ledger.pool.query(text, values)

async function run(options: Partial<OptionsOf<typeof erase>> = {}) {
  const context = fixture.context()
  const code = await erase.action(context, { ...given, ...options })
  return { code, printed: context.printed(), messages: context.messages() }
}

/** All contents of our tables, as text. */
async function allText(): Promise<string> {
  const { rows } = await sql(`select string_agg(t, '') as all from (
    select s::text as t from outboxd.submission s union all select e::text from outboxd.submission_event e
    union all select a::text from outboxd.operator_act a union all select p::text from outboxd.problem p) x`)
  return rows[0].all ?? ''
}

const completed = () => ({ state: 'completed', transactionId: randomUUID(), result: `{"for":"${person}"}` }) as const
const ofPerson = (outboxId: string) => ({ outboxId, key: person, payload, body: payload, amounts: { total: '12.30' } })

test('nothing is left of the person, but times, states, ids, amounts and acts are kept', async () => {
  await fixture.end(completed(), ofPerson('1'))
  const id = await fixture.end({ ...failedE003, error: `no customer ${person}` }, ofPerson('2'))
  await replay.action(fixture.context(), [id], { as: 'alice', reason: `${person} called` })
  await sql(
    `update outboxd.submission set state = 'discarded', held = false, due_at = null, ended_at = now(), report_due = false where id = $1`,
    [id],
  )
  const before = (
    await sql(
      `select id, outbox_id, type, state, recorded_at, captured_at, sent_at, ended_at, transaction_id from outboxd.submission order by seq`,
    )
  ).rows
  expect(await allText()).toContain(person)
  const { code, messages } = await run()
  expect({ code, messages }).toEqual({ code: 0, messages: expect.stringContaining('Erased the data of 2 records.') })
  expect(await allText()).not.toMatch(/Erika|Mustermann/)
  expect(
    (
      await sql(
        `select id, outbox_id, type, state, recorded_at, captured_at, sent_at, ended_at, transaction_id from outboxd.submission order by seq`,
      )
    ).rows,
  ).toEqual(before)
  const context = fixture.context()
  await audit.action(context, { json: true })
  expect(JSON.parse(context.printed())).toMatchObject([
    { kind: 'record', key: null, amounts: { total: '12.30' }, erased: expect.any(String) },
    { kind: 'record', hands: [{ who: 'operator alice', cause: 'replayed', reason: null }], erased: expect.any(String) },
    { kind: 'act', act: 'erase', who: 'operator officer', reason: 'request 2026-17' },
  ])
})

test('records that have not ended for good are named and kept, and the others are erased', async () => {
  await fixture.end(completed(), ofPerson('1'))
  await fixture.end(failedE003, ofPerson('2'))
  await fixture.end(uncertain, ofPerson('3'))
  await fixture.ledger.capture([ofPerson('4')])
  const untold = await fixture.ledger.capture([{ ...ofPerson('5'), error: 'x' }])
  await sql(`update outboxd.submission set state = 'discarded', report_due = true where id = $1`, [untold[0]])
  const { code, messages } = await run()
  expect(code).toBe(1)
  expect(messages).toMatch(/outbox:2 .* is failed and needs attention: replay or discard it first/)
  expect(messages).toMatch(/outbox:3 .* is uncertain and needs attention/)
  expect(messages).toMatch(/outbox:4 .* is queued and has not ended/)
  expect(messages).toMatch(/outbox:5 .* is discarded, but its outbox row does not say so yet/)
  const { rows } = await sql('select outbox_id from outboxd.submission where erased_at is not null')
  expect(rows).toEqual([{ outbox_id: '1' }])
  await expect(
    sql(
      `update outboxd.submission set erased_at = now(), emptied_at = now(), key = null, payload = null, body = null where outbox_id = '2'`,
    ),
  ).rejects.toThrow('check')
})

test('erase affects only the given key, asks without --yes, and changes nothing with --dry-run', async () => {
  await fixture.end(completed(), ofPerson('1'))
  await fixture.end(completed(), { ...ofPerson('2'), key: 'another' })
  expect(await run({ dryRun: true })).toMatchObject({
    code: 0,
    messages: expect.stringContaining('Would erase the data of 1 record'),
  })
  expect((await run({ yes: false })).code).toBe(4)
  const refused = fixture.context('n\n')
  expect(await erase.action(refused, { ...given, yes: false })).toBe(4)
  expect((await sql('select from outboxd.submission where erased_at is not null')).rowCount).toBe(0)
  const { code, printed } = await run({ json: true })
  expect({ code, erased: JSON.parse(printed).erased }).toEqual({ code: 0, erased: [expect.any(String)] })
  expect((await sql('select outbox_id from outboxd.submission where key is not null')).rows).toEqual([
    { outbox_id: '2' },
  ])
  expect((await run()).code).toBe(3)
})

test('show says that a record was erased, and resolve --take-back refuses it', async () => {
  const id = await fixture.end(uncertain, ofPerson('1'))
  await resolve.action(fixture.context(), id, { arrived: 'tx-1', unchecked: true, yes: true })
  await sql(`update outboxd.submission set state = 'completed', ended_at = now(), report_due = false`)
  await run()
  const context = fixture.context()
  await show.action(context, id, {})
  expect(context.printed()).toMatch(/payload, as the ERP wrote it\n {2}\(erased /)
  expect(await resolve.action(fixture.context(), id, { takeBack: true, yes: true })).toBe(1)
  expect(await fixture.ledger.countStates()).toEqual({ completed: 1 })
})

test('beside captures of the same key and a second erasure, each ended record is erased once', async () => {
  await Promise.all(
    Array.from({ length: 30 }, (_, i) => fixture.ledger.capture([{ ...ofPerson(`e${i}`), error: 'x' }])),
  )
  await sql(`update outboxd.submission set state = 'discarded', report_due = false`)
  await fixture.ledger.capture([ofPerson('n')]) // so that each erasure sees a record that has not ended
  let isErasing = true
  const writing = (async () => {
    for (let i = 0; isErasing; i++) await fixture.ledger.capture([ofPerson(`n${i}`)])
  })()
  const codes = await Promise.all([run(), run()])
  isErasing = false
  await writing
  expect(codes.map(({ code }) => code)).toEqual([1, 1])
  const { rows } = await sql(
    `select jsonb_array_length(detail -> 'submissions') as n from outboxd.operator_act where act = 'erase'`,
  )
  expect(rows.reduce((sum, { n }) => sum + n, 0)).toBe(30)
  expect((await sql('select from outboxd.submission where erased_at is not null')).rowCount).toBe(30)
})

test('SIGKILL during `erase`: each record is either erased together with its log, or untouched', async () => {
  const total = 1_500
  await fixture.ledger.capture(
    Array.from({ length: total }, (_, i) => ({ ...ofPerson(String(i)), error: `no ${person}` })),
  )
  await sql(`update outboxd.submission set state = 'discarded', report_due = false`)
  await sql(`insert into outboxd.submission_event (submission_id, to_state, attempt, cause, message, actor, who)
    select id, 'discarded', 0, 'discarded', 'discarded: twice', 'operator', 'operator zoe' from outboxd.submission`)
  const erasedCount = async () =>
    (await sql('select from outboxd.submission where erased_at is not null')).rowCount ?? 0
  const args = ['erase', '--key', person, '--reason', 'x', '--yes']
  const program = startProgram({ args, env: { DATABASE_URL: fixture.ledger.url } })
  await until(erasedCount, (n) => n > 0)
  program.signal('SIGKILL')
  await program.ended()
  const half = await sql(`select from outboxd.submission s join outboxd.submission_event e on e.submission_id = s.id
    where (s.erased_at is not null) <> (e.message is null) and e.cause = 'discarded'`)
  expect(half.rowCount).toBe(0)
  expect((await run()).code).toBe(0)
  expect(await erasedCount()).toBe(total)
})

test.each([
  [{ key: '' }, '--key needs a key, such as --key K-4711'],
  [{ reason: ' ' }, '--reason must not be empty'],
  [{ reason: `for ${person}` }, '--reason contains the key'],
])('%j is refused', async (options, message) => {
  expect(await run(options)).toMatchObject({ code: 2, messages: expect.stringContaining(message) })
})
