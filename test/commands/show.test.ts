import { randomUUID } from 'node:crypto'
import { Command } from 'commander'
import { describe, expect, onTestFinished, test } from 'vitest'
import { command as audit } from '../../src/commands/audit.ts'
import { command as discard } from '../../src/commands/discard.ts'
import { command as replay } from '../../src/commands/replay.ts'
import { command as resolve } from '../../src/commands/resolve.ts'
import { command as show } from '../../src/commands/show.ts'
import { type CommandModule, configureCommand } from '../../src/commands/terminal/command.ts'
import { readSubmissionDetail } from '../../src/ledger/operator/readSubmissionDetail.ts'
import { raiseProblems } from '../../src/ledger/problems.ts'
import type { CapturedRecord } from '../../src/model/outbox.ts'
import type { ProblemKind } from '../../src/model/problem.ts'
import type { State } from '../../src/model/submission.ts'
import { explainSubmission } from '../../src/operations/explainSubmission.ts'
import { openBreaker } from '../support/breaker.ts'
import type { GivenChange } from '../support/change.ts'
import { dataFile, failedE003, mappingFiles, openFixtureForFile, payloadOf, uncertain } from './fixture.ts'

const fixture = openFixtureForFile()

async function run(name: string, json = false, env: Record<string, string> = {}) {
  const context = fixture.context(null, env)
  const code = await show.action(context, name, { json })
  return { code, printed: context.printed(), messages: context.messages() }
}

test('show prints the events, the exact bodies, and what to do', async () => {
  const payload = '{"amount": 12.30, "n": 1e2, "big": 12345678901234567890.10}'
  const id = await fixture.end(failedE003, { outboxId: '41', payload, body: '{"total_amount":12.30}' })
  const { code, printed } = await run('outbox:41')
  expect(code).toBe(0)
  expect(printed.split('\n')[0]).toBe('failed: the service was down')
  expect(printed).toContain(`next: needs attention: remove the cause, then\n  outboxd replay ${id}`)
  expect(printed).toContain(`  ${payload}\n`)
  expect(printed).toContain('  {"total_amount":12.30}\n')
  expect(printed).toMatch(/queued +captured {2}\(test, attempt 0\)/)
  expect(printed).toMatch(/queued -> sending +got a request of the budget {2}\(test, attempt 1\)/)
  expect(printed).toMatch(/^state since {6}.*\ncreated {10}/m)
  expect(printed).not.toMatch(/^ended/m) // as in `status`, a failed record has not ended
  expect(printed).toContain('body, as it was sent\n')
  expect(printed).toMatch(
    /sending -> failed +asked again {2}\(test, attempt 1\)\n +code: E003\n +error: the service was down/,
  )
})

test('show finds a record by its id, the beginning of its id, and its outbox row', async () => {
  const id = await fixture.end(uncertain, { id: 'abcdef12-0000-4000-8000-000000000001', outboxId: 'uuid-like-1' })
  for (const name of [id, id.toUpperCase(), id.replaceAll('-', ''), 'abcdef', 'abcdef12-00', 'outbox:uuid-like-1'])
    expect((await run(name)).code, name).toBe(0)
})

test('show finds a record by the id of its row, and a waiting row without a record', async () => {
  const id = await fixture.end(uncertain, { outboxId: '4711' })
  expect(await run('4711')).toMatchObject({ code: 0, printed: expect.stringContaining(id), messages: '' })
  const row = await fixture.row(payloadOf())
  const waiting = await run(String(row))
  expect({ code: waiting.code, messages: waiting.messages }).toEqual({
    code: 3,
    messages: expect.stringContaining(`the row ${row} waits in the outbox`),
  })
})

test('if a word names several records, show lists them and exits with 3', async () => {
  const one = await fixture.end(uncertain, { id: 'abcdef12-0000-4000-8000-000000000001', outboxId: '4711' })
  const two = await fixture.end({ state: 'completed' }, { id: 'abcdef12-0000-4000-8000-000000000002', key: '4711' })
  for (const word of ['abcdef', '4711']) {
    const { code, printed } = await run(word)
    expect({ code, printed }).toEqual({ code: 3, printed: expect.stringMatching(new RegExp(`^${one}.*\n${two}`, 'm')) })
  }
  expect((await run(two)).code).toBe(0)
})

test('show also finds a record by the end of its id, its transaction, its idempotency key and its key', async () => {
  const id = await fixture.end(
    { state: 'completed', transactionId: 'tx:1' },
    {
      id: 'abcdef12-0000-4000-8000-0000f0000001',
      idempotencyKey: '11111111-2222-4333-8444-555555555555',
      key: 'k 1',
      outboxId: '8',
    },
  )
  await fixture.end(failedE003, { id: 'abcdef12-0000-4000-8000-0000e0000001', key: 'k 2', outboxId: '9' })
  const names = ['f0000001', '8000-0000f0000001', 'tx:1', 'transaction:tx:1', '11111111-2222-4333-8444-555555555555']
  for (const name of [...names, 'key:k 1']) expect(JSON.parse((await run(name, true)).printed).id, name).toBe(id)
  expect((await run('000001')).code).toBe(3)
})

test('if several records have the key, show lists them, newest first', async () => {
  await fixture.end(failedE003, { key: 'k', outboxId: '1' })
  await fixture.end({ state: 'completed' }, { key: 'k', outboxId: '2' })
  const { code, printed, messages } = await run('key:k')
  expect(code).toBe(3)
  expect(printed).toMatch(/^ID .*\n\S+ +2 .*completed.*\n\S+ +1 .*failed.*\n$/)
  expect(messages).toBe('Several records match key:k. `outboxd show ID` shows one.\n')
  expect(JSON.parse((await run('key:k', true)).printed)).toMatchObject([{ outboxId: '2' }, { outboxId: '1' }])
})

test('of more than 50 records of a key, show lists the newest and names the command that lists all', async () => {
  await fixture.ledger.capture(Array.from({ length: 51 }, (_, i) => ({ outboxId: String(i + 1), key: 'many' })))
  const { printed, messages } = await run('key:many')
  expect(printed.trim().split('\n')).toHaveLength(51)
  expect(messages).toContain(
    'these are the first 50. `outboxd show ID` shows one, `outboxd audit --key KEY` lists all of a key',
  )
  const context = fixture.context()
  await audit.action(context, { key: 'many', json: true })
  expect(JSON.parse(context.printed())).toHaveLength(51)
})

test.each(['outbox:', ''])('%j is not a valid name of a record: exits with 2', async (name) => {
  expect((await run(name)).code).toBe(2)
})

test('an unknown record exits with 3', async () => {
  for (const name of ['abcdef', 'abcde', 'xyz xyz', 'transaction:tx', 'key:k'])
    expect((await run(name)).code, name).toBe(3)
  const { code, messages } = await run('outbox:999')
  expect(code).toBe(3)
  expect(messages).toBe('outboxd: there is no record outbox:999, and the outbox has no row 999\n')
})

test('for a row that was not captured yet, show says that it waits in the outbox', async () => {
  const row = await fixture.row(payloadOf())
  const { code, messages } = await run(`outbox:${row}`)
  expect(code).toBe(3)
  expect(messages).toContain('waits in the outbox')
  expect(messages).toContain(`outboxd map --outbox ${row}`)
})

describe('for a row that is not captured, show says why:', () => {
  const table = 'table: outbox\nid: id\ntype: { column: type }\nkey: key\npayload: payload\n'
  const appendOnly = `${table}state: none\nsequence: id\n`
  const filtered = (filter: string) =>
    `${table}state: { status: status, new: [new], queued: queued, completed: completed }\nfilter: ${filter}\n`
  const problem = (kind: ProblemKind, subject: string) =>
    raiseProblems(fixture.ledger.pool, [{ kind, subject, detail: 'it fails so', retryInMs: 60_000 }])
  const sql = (text: string) => fixture.ledger.pool.query(text)

  interface Case {
    says: string
    yaml?: string
    /** @param row of the key k, behind the row `earlier` of the key j */
    given?: (row: string, earlier: string) => Promise<unknown>
  }
  const cases: Readonly<Record<string, Case>> = {
    'no cause': { says: 'a daemon captures it in its turn. `outboxd status` says whether one runs' },
    skipped: { says: ': it fails so', given: (row) => problem('row_skipped', row) },
    locked: { says: ': it fails so', given: (row) => problem('row_locked', row) },
    'in conflict': { says: ': it fails so', given: (row) => problem('row_conflict', row) },
    'of a type whose query fails': {
      says: 'no row of the type data is captured: it fails so',
      given: () => problem('source_failing', 'data'),
    },
    'behind an earlier row of its key': {
      says: 'it waits behind the row EARLIER of its key. `outboxd show outbox:EARLIER` says why that row is not captured',
      given: () => sql(`update outbox set key = 'k'`),
    },
    'behind a captured record of its key': {
      says: 'a daemon captures it in its turn, perhaps after captured records of its key (`outboxd show key:k`)',
      async given() {
        await fixture.end(uncertain, { key: 'k' })
        await fixture.ledger.capture([{ key: 'k' }])
      },
    },
    'one for which the filter fails': {
      says: 'the filter in outbox.yaml raises an error for this row',
      yaml: filtered('key::int > 0'),
      given: (_, earlier) => sql(`update outbox set key = '1' where id = ${earlier}`),
    },
    'left out by the filter': { says: 'the filter in outbox.yaml leaves it out', yaml: filtered("key = 'j'") },
    'before the start position': {
      says: 'lies before the start position, so it is not sent\n',
      given: (row) => sql(`update outboxd.ledger set start_id = '${Number(row) + 1}'`),
    },
    'behind the position of an append-only table': {
      says: 'lies behind the position up to which the table was read, so it is not sent. `outboxd capture --dry-run`',
      yaml: appendOnly,
      given: (row) => sql(`insert into outboxd.outbox_cursor (position) values (${row})`),
    },
    'behind the position, and tried in vain': {
      says: 'is not captured yet: it fails so',
      yaml: appendOnly,
      async given(row) {
        await sql(`insert into outboxd.outbox_cursor (position) values (${row})`)
        await problem('row_skipped', row)
      },
    },
    'as old as records that were deleted': {
      says: 'its record was deleted after RETENTION_DAYS',
      yaml: appendOnly,
      given: (row) => sql(`insert into outboxd.outbox_cursor (position, pruned_number) values (${row}, ${row})`),
    },
  }

  test.each(Object.entries(cases))('%s', async (_, { says, yaml, given }) => {
    onTestFinished(async () => void (await sql('update outboxd.ledger set start_id = null')))
    const earlier = await fixture.row(payloadOf())
    const row = await fixture.row(payloadOf())
    await sql(`update outbox set key = case id when ${row} then 'k' else 'j' end`)
    await given?.(row, earlier)
    const env = yaml === undefined ? {} : { MAPPINGS_DIR: mappingFiles({ 'outbox.yaml': yaml, 'data.yaml': dataFile }) }
    const { code, messages } = await run(`outbox:${row}`, false, env)
    expect({ code, messages }).toEqual({
      code: 3,
      messages: expect.stringContaining(says.replaceAll('EARLIER', earlier)),
    })
  })
})

test('for an ended row that the ledger has lost, show does not say that it waits', async () => {
  const row = await fixture.row(payloadOf())
  await fixture.ledger.pool.query(`update outbox set status = 'completed', transaction_id = 'tx-9' where id = $1`, [
    row,
  ])
  const { code, messages } = await run(`outbox:${row}`)
  expect(code).toBe(3)
  expect(messages).toContain(`the ledger has no record of the row ${row}`)
  expect(messages).not.toContain('waits in the outbox')
})

test('show says behind which record a record is held, and until when sending is paused', async () => {
  const pool = fixture.ledger.pool
  await fixture.end(uncertain, { outboxId: '1', key: 'k' })
  await fixture.end({ state: 'queued' }, { outboxId: '2', key: 'k' })
  expect((await run('outbox:2')).printed).toMatch(
    /^queued: held behind outbox:1, which is uncertain.*\nnext: settle that record/,
  )
  await fixture.end({ state: 'queued' }, { outboxId: '3' })
  await openBreaker(pool)
  expect((await run('outbox:3')).printed).toMatch(
    /^queued: paused \(unavailable\) until .*\(in [34] min.*\): E003\nnext: sent after the pause/,
  )
})

test('--json prints bodies as text, so that no digit is lost, and times in ISO form', async () => {
  await fixture.end(
    { state: 'accepted', pollInMs: 60_000, transactionId: 'tx-1' },
    { outboxId: '5', body: '{"a":1.10}' },
  )
  const shown = JSON.parse((await run('outbox:5', true)).printed)
  expect(shown).toMatchObject({ state: 'accepted', transactionId: 'tx-1', body: '{"a":1.10}', polls: 0, blocker: null })
  expect(shown.why).toContain('the service accepted it as tx-1')
  expect(shown.next).toMatch(/^the service is asked again at .*\(in (1 min|5\d s)/)
  expect(shown.poll).toMatch(/^\d{4}-.*Z$/)
  expect(shown.events.map(({ to }: { to: string }) => to)).toEqual(['queued', 'sending', 'accepted'])
  expect(Object.keys(shown).filter((name) => name.endsWith('Ms'))).toEqual([])
})

test('control characters from the service do not reach the terminal', async () => {
  await fixture.end({ state: 'failed', errorCode: null, error: 'bad\u001b[2K\rgood' }, { outboxId: '6' })
  expect((await run('outbox:6')).printed).not.toContain('\u001b')
})

test('if an outcome cannot be written back, show says why and when it is tried again', async () => {
  const id = await fixture.end(failedE003, { outboxId: '7' })
  await fixture.ledger.pool.query(
    `update outboxd.submission set report_due = true, report_put_off = revision,
       report_not_before = now() + interval '4 min' where id = $1`,
    [id],
  )
  await fixture.ledger.pool.query(
    `insert into outboxd.problem (kind, subject, detail) values ('report_refused', '7', 'SQLSTATE P0001: period is closed')`,
  )
  const { printed } = await run('outbox:7')
  expect(printed).toMatch(/outbox row says +not yet this state: SQLSTATE P0001: period is closed/)
  expect(printed).toMatch(/write back again +.*\(in [34] min/)
})

describe('each command that show advises does what it says:', () => {
  /** What the words beside a command promise. */
  const promised: Readonly<Record<string, State>> = {
    'if it arrived: outboxd tracks it to its end': 'accepted',
    'it has another id': 'accepted',
    'if you know the right id': 'accepted',
    'if you do not': 'uncertain',
    'if it did not arrive: send it again': 'queued',
    'map it and send it again; --refresh reads the row again': 'queued',
    'send it again': 'queued',
    'if it no longer matters': 'discarded',
    'stop asking': 'discarded',
  }
  const modules: Readonly<Record<string, CommandModule>> = { resolve, replay, discard }

  const rarely = { transactionId: 'tx-1', pollInMs: 60_000, polledRarely: true }
  const resolved = async (state: 'completed' | 'failed') => {
    const id = await fixture.end(uncertain)
    await follow(`outboxd resolve ${id} --arrived TRANSACTION_ID`)
    await fixture.ledger.pool.query(
      `update outboxd.submission set state = $2, error = case when $2 = 'failed' then '404' end, ended_at = now() where id = $1`,
      [id, state],
    )
    return id
  }
  const discarded = async () => {
    const id = await fixture.end(failedE003)
    await follow(`outboxd discard ${id} --reason TEXT`)
    return id
  }

  const records: Readonly<Record<string, () => Promise<string>>> = {
    uncertain: () => fixture.end(uncertain),
    failed: () => fixture.end(failedE003),
    rejected: () => fixture.end({ state: 'rejected', error: 'the service answered 400' }),
    'failed, and may have arrived': () => fixture.end({ state: 'failed', error: '500', mayHaveArrived: true }),
    'rejected, and may have arrived': () => fixture.end({ state: 'rejected', error: '408', mayHaveArrived: true }),
    'completed under an operator’s id': () => resolved('completed'),
    'failed under an operator’s id': () => resolved('failed'),
    discarded,
    'asked for, for long': () => fixture.end({ state: 'sending', ...rarely }),
    'accepted, and without a usable answer for long': () => fixture.end({ state: 'accepted', ...rarely }),
  }

  /** Runs a command as an operator does who fills in the words in capitals and answers each question with yes. */
  async function follow(text: string): Promise<void> {
    const words = text.replace(/(OTHER|TRANSACTION)_ID/, `tx-${randomUUID()} --unchecked`).split(' ')
    const [, name = '', ...rest] = words
    const module = modules[name]
    if (module === undefined) throw new Error(`${text} is not among the commands of this test`)
    const context = fixture.context('y\n')
    const command = configureCommand(new Command(name), module)
    let code = -1
    command.action(async (...given) => {
      code = await module.action(context, ...(given as never[]))
    })
    await command.parseAsync(rest, { from: 'user' })
    expect(code, context.messages()).toBe(0)
  }

  const adviceOf = async (id: string) => {
    const detail = await readSubmissionDetail(fixture.ledger.pool, id)
    return detail === null ? [] : explainSubmission(detail).advice.flatMap(({ ways }) => ways)
  }

  test.each(Object.entries(records))('%s', async (_, make) => {
    const count = (await adviceOf(await make())).length
    expect(count).toBeGreaterThan(0)
    for (let nth = 0; nth < count; nth++) {
      await fixture.reset()
      const id = await make()
      const { command = '', means = '' } = (await adviceOf(id))[nth] ?? {}
      await follow(command)
      expect((await fixture.ledger.row(id)).state, `${command} ${means}`).toBe(promised[means])
    }
  })

  const version = { document: '5', key: '5' }
  const older: Readonly<Record<string, GivenChange>> = {
    uncertain,
    'failed, and may have arrived': { state: 'failed', error: '500', mayHaveArrived: true },
    'asked for, for long': { state: 'sending', ...rarely },
    'accepted, and without a usable answer for long': { state: 'accepted', ...rarely },
  }
  const change = { ...version, outboxId: '2', payload: payloadOf({ field2: '"y"' }), body: '{}' }
  const capture = async (record: Partial<CapturedRecord>) => (await fixture.ledger.capture([record], 'once'))[0] ?? ''
  const newer: Readonly<Record<string, () => Promise<string>>> = {
    'is listed': () => capture(change),
    'is listed as deleted': () =>
      capture({ ...change, resource: null, payload: null, body: null, discarded: '5 was deleted' }),
    'was given up': async () => {
      const id = await capture(change)
      await follow(`outboxd discard ${id} --reason TEXT`)
      return id
    },
  }
  const pairs = Object.entries(older).flatMap(([is, first]) =>
    Object.entries(newer).map(([how, second]) => [is, how, first, second] as const),
  )
  test.each(pairs)('a version that is %s, and its document’s next one, which %s', async (_, how, first, second) => {
    const make = async () => {
      await fixture.reset()
      return [await fixture.end(first, { ...version, outboxId: '1' }), await second()] as const
    }
    const ids = await make()
    for (const nth of [0, 1] as const) {
      const ways = await adviceOf(ids[nth])
      for (const [at, { means }] of ways.entries()) {
        const made = await make()
        await follow((await adviceOf(made[nth]))[at]?.command ?? '')
        if (means.includes('send the newest version')) expect((await fixture.ledger.row(made[1])).state).toBe('queued')
      }
      const sends = ways.some(({ means }) => means.includes('send the newest version'))
      expect(sends).toBe(nth === 0 && how !== 'is listed as deleted')
    }
  })
})
