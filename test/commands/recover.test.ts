import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { command as audit } from '../../src/commands/audit.ts'
import { command as discard } from '../../src/commands/discard.ts'
import { command as recover } from '../../src/commands/recover.ts'
import { command as replay } from '../../src/commands/replay.ts'
import { command as resolve } from '../../src/commands/resolve.ts'
import { command as show } from '../../src/commands/show.ts'
import type { OptionsOf } from '../../src/commands/terminal/command.ts'
import { openDatabasesOf } from '../../src/commands/terminal/operator.ts'
import { readDatabaseConfig } from '../../src/config.ts'
import { discardSeenSubmissions } from '../../src/ledger/operator/decisions.ts'
import { readDueReports } from '../../src/ledger/reports.ts'
import { loadMappings } from '../../src/mapping/loadMappings.ts'
import type { CapturedRecord } from '../../src/model.ts'
import { withOutbox } from '../../src/operations/databases.ts'
import { findLedgerLoss, recoverFromLedgerLoss } from '../../src/operations/recover.ts'
import { Outbox } from '../../src/outbox/outbox.ts'
import { findUndatedWaitingRows, readRecordWithoutQueriedContent } from '../../src/outbox/readRows.ts'
import { daemonSessionNames } from '../../src/postgres/sessionSettings.ts'
import { openPool } from '../support/postgres.ts'
import { readOnly } from '../support/readOnly.ts'
import { testActor } from '../support/testActor.ts'
import { until } from '../support/until.ts'
import { dataFile, type Fixture, mappingFiles, openFixture, payloadOf } from './fixture.ts'

/** Only the ledger was restored, so the ERP's rows are ahead of it. */

let fixture: Fixture
beforeAll(async () => {
  fixture = await openFixture()
})
afterAll(() => fixture[Symbol.asyncDispose]())
beforeEach(() => fixture.reset())

const query = (text: string, values: unknown[] = []) => fixture.ledger.pool.query(text, values)
const erin = { by: 'erin', reason: 'restored', yes: true }

/** A row that the ledger has as queued. @param says what the row was changed to since. @returns the submission's id */
async function queued(says = '', record: Partial<CapturedRecord> = {}): Promise<string> {
  const outboxId = await fixture.row(payloadOf())
  const { pool } = fixture.ledger
  const row = await readRecordWithoutQueriedContent(new Outbox(pool, 'outbox', 1_000_000, pool), outboxId)
  if (row === null) throw new Error(`there is no row ${outboxId}`)
  const { createdAt, created } = row
  const [id = ''] = await fixture.ledger.capture([{ outboxId, createdAt, created, payload: payloadOf(), ...record }])
  await query(`update outbox set status = 'queued' where id = $1`, [outboxId])
  if (says !== '') await query(`update outbox set ${says} where id = $1`, [outboxId])
  return id
}

const idOf = async (outboxId: string) =>
  (await query('select id from outboxd.submission where outbox_id = $1', [outboxId])).rows[0].id as string

/** A row that the ledger does not know. */
async function lost(says: string): Promise<string> {
  const outboxId = await fixture.row(payloadOf())
  await query(`update outbox set ${says} where id = $1`, [outboxId])
  return outboxId
}

const find = () =>
  query(`update outboxd.history set found_at = clock_timestamp(), found = 'it was restored', found_by = 'daemon 1'`)
const stateOf = async (id: string) => {
  const { state, transaction_id: transactionId, error } = await fixture.ledger.row(id)
  return [state, transactionId, error]
}

describe.each(['uncertain', 'new'] as const)('--as %s', (as) => {
  const open = as === 'new' ? 'queued' : 'uncertain'

  test('a record whose row names a transaction is tracked, with an id in doubt, and not sent again', async () => {
    const id = await queued(`status = 'completed', transaction_id = 'T-1'`)
    await find()
    expect(await recover.action(fixture.context(), { as, ...erin })).toBe(0)
    expect(await fixture.ledger.row(id)).toMatchObject({
      ...{ state: 'accepted', transaction_id: 'T-1', id_by_person: true, in_doubt: true, report_due: true },
      ...{ resubmissions: 3, held: false, due_at: null },
    })
    expect(await fixture.ledger.polled()).toEqual([id])
    const { rows } = await query(
      `select message, who, detail ->> 'reason' as reason, detail ->> 'transactionId' as transaction
       from outboxd.submission_event where submission_id = $1 order by id desc limit 1`,
      [id],
    )
    expect(rows).toEqual([
      { message: 'recovered: arrived as T-1', who: 'operator erin', reason: 'restored', transaction: 'T-1' },
    ])
  })

  test('recover waits for an outcome that an instance is writing back, and reads the row after it', async () => {
    const id = await queued()
    await find()
    const { pool } = fixture.ledger
    const writing = await pool.connect()
    onTestFinished(() => writing.release(true))
    await writing.query(`begin; select pg_advisory_xact_lock(7163, 'outbox'::regclass::oid::int);
      update outbox set status = 'completed', transaction_id = 'T-1'`)
    const recovering = recover.action(fixture.context(), { as, ...erin })
    const waits = `select from pg_locks where locktype = 'advisory' and classid = 7163 and objsubid = 2 and not granted`
    await until(
      () => Promise.race([recovering, query(waits)]),
      (seen) => typeof seen === 'number' || seen.rowCount === 1,
    )
    await writing.query('commit')
    expect(await recovering).toBe(0)
    expect(await stateOf(id)).toEqual(['accepted', 'T-1', null])
  })

  test('an untracked record whose row names a transaction is completed', async () => {
    const id = await queued(`transaction_id = 'T-1'`, { tracked: false })
    await find()
    await recover.action(fixture.context(), { as, ...erin })
    expect(await stateOf(id)).toEqual(['completed', 'T-1', null])
  })

  test('a record is uncertain if its row names an invalid transaction, or one of another record or row', async () => {
    const holder = await fixture.end(
      { state: 'accepted', transactionId: 'T-1', pollInMs: 0 },
      { outboxId: 'of another day' },
    )
    const first = await queued(`transaction_id = 'T-1'`)
    const second = await queued(`transaction_id = 'T-2'`)
    const third = await queued(`transaction_id = 'T-2'`)
    const none = await queued(`transaction_id = 'unknown'`)
    await find()
    await recover.action(fixture.context(), { as, ...erin })
    const outboxIdOf = async (id: string) => (await fixture.ledger.row(id)).outbox_id
    const named = (transaction: string, outboxId: unknown) =>
      expect.stringContaining(`its outbox row names transaction ${transaction}, which outbox:${outboxId} already has`)
    expect(await stateOf(first)).toEqual(['uncertain', null, named('T-1', await outboxIdOf(holder))])
    const shared = expect.stringContaining('its outbox row names transaction T-2, and so does another row')
    for (const id of [second, third]) expect(await stateOf(id)).toEqual(['uncertain', null, shared])
    expect(await stateOf(none)).toEqual(['uncertain', null, expect.stringContaining('unknown is not a transaction')])
  })

  test.each([
    ['in the same letters', 'T-0', 'T-0'],
    [
      'a UUID that the ERP’s column writes in small letters',
      '9B2E4F60-1C3D-4E5F-8A7B-0C1D2E3F4A5B',
      '9b2e4f60-1c3d-4e5f-8a7b-0c1d2e3f4a5b',
    ],
  ])('a transaction that the record had before its replay is ignored: %s', async (_, known, written) => {
    const id = await queued(`status = 'accepted', transaction_id = '${written}'`)
    await query(
      `insert into outboxd.submission_event (submission_id, from_state, to_state, attempt, cause, actor, who, detail)
       values ($1, 'failed', 'queued', 1, 'replayed', 'operator', 'operator', $2)`,
      [id, { former: { transactionId: known } }],
    )
    await find()
    await recover.action(fixture.context(), { as, ...erin })
    expect((await stateOf(id))[0]).toBe(open)
  })

  test('records whose rows name no valid transaction become what --as says', async () => {
    const ended = await queued(`status = 'completed'`)
    const silent = await queued()
    const another = await queued(`transaction_id = 'T-1', created_at = created_at + interval '1 minute'`)
    const gone = await queued()
    await query(`delete from outbox where id = (select outbox_id::bigint from outboxd.submission where id = $1)`, [
      gone,
    ])
    await find()
    expect(await recover.action(fixture.context(), { as, ...erin })).toBe(0)
    const wentBack = 'the ledger lost data and had this record as queued. The record may have arrived'
    for (const id of [ended, silent, another, gone])
      expect(await stateOf(id)).toEqual([open, null, as === 'new' ? null : wentBack])
    expect((await fixture.ledger.row(silent)).in_doubt).toBe(true)
  })

  test('the next record of a key goes on after one that has arrived, and waits behind an uncertain one', async () => {
    const [a1, a2] = [await queued(`transaction_id = 'T-1'`, { key: 'a' }), await queued('', { key: 'a' })]
    const [b1, b2] = [await queued(`transaction_id = 'unknown'`, { key: 'b' }), await queued('', { key: 'b' })]
    await find()
    await recover.action(fixture.context(), { as, ...erin })
    expect([(await stateOf(a1))[0], (await stateOf(b1))[0]]).toEqual(['accepted', 'uncertain'])
    const held = async (id: string) => (await fixture.ledger.row(id)).held
    expect([await held(a2), await held(b2)]).toEqual([false, as === 'new'])
  })

  test('unknown rows that name a transaction are tracked, even if they wait', async () => {
    const taken = await lost(`status = 'accepted', transaction_id = 'T-1'`)
    const waiting = await lost(`transaction_id = 'T-2'`)
    const twice = await lost(`status = 'queued', transaction_id = 'T-4'`)
    const known = await queued(`transaction_id = 'T-4'`)
    const none = await lost(`status = 'queued', transaction_id = 'null'`)
    const uncertain = await queued(`transaction_id = 'T-5'`)
    await query(
      `update outboxd.submission set state = 'uncertain', due_at = null, ended_at = now(), error = 'no answer' where id = $1`,
      [uncertain],
    )
    const ofUncertain = await lost(`status = 'queued', transaction_id = 'T-5'`)
    const silent = await lost(`status = 'queued'`)
    const unmapped = await lost(`status = 'accepted', transaction_id = 'T-3', payload = '{}'`)
    const unmappedSilent = await lost(`status = 'queued', payload = '{}'`)
    await find()
    expect(await recover.action(fixture.context(), { as, ...erin })).toBe(0)
    const { rows } = await query(
      'select outbox_id as id, state, transaction_id as transaction, may_have_arrived as may, error from outboxd.submission where id <> all($1) and outbox_id <> $2 order by seq',
      [[known, uncertain], ofUncertain],
    )
    const lostRow = `the ledger had lost this row`
    expect(rows).toEqual([
      { id: taken, state: 'accepted', transaction: 'T-1', may: false, error: null },
      { id: waiting, state: 'accepted', transaction: 'T-2', may: false, error: null },
      {
        ...{ id: twice, state: 'uncertain', transaction: null, may: false },
        error: `${lostRow}, and its outbox row names transaction T-4, and so does another row. The record may have arrived`,
      },
      {
        ...{ id: none, state: 'uncertain', transaction: null, may: false },
        error: expect.stringContaining(`${lostRow}, and its outbox row names an invalid transaction`),
      },
      {
        ...{ id: silent, state: open, transaction: null, may: false },
        error: as === 'new' ? null : `${lostRow}, which said queued. The record may have arrived`,
      },
      {
        ...{ id: unmapped, state: 'rejected', transaction: null, may: true },
        error: expect.stringContaining('its row said accepted as transaction T-3, so the record has arrived'),
      },
      {
        ...{ id: unmappedSilent, state: 'rejected', transaction: null, may: true },
        error: expect.stringContaining('customerId'),
      },
    ])
    expect((await stateOf(known))[0]).toBe('uncertain')
    expect(await stateOf(uncertain)).toEqual(['uncertain', null, 'no answer'])
    expect((await stateOf(await idOf(ofUncertain)))[0]).toBe('uncertain')
    expect(await fixture.ledger.polled()).toHaveLength(2)
  })
})

describe('a row that is locked but not marked when the ledger is restored', () => {
  /** Locks a row. @returns a function that marks the row as captured and commits */
  async function claimed(outboxId: string, application: string) {
    const session = await openPool(fixture.ledger.url, { application_name: application }).connect()
    onTestFinished(() => session.release(true))
    await session.query('begin')
    await session.query('select from outbox where id = $1 for no key update', [outboxId])
    return async () => {
      await session.query(`update outbox set status = 'queued' where id = $1`, [outboxId])
      await session.query('commit')
    }
  }

  test.each([
    ['uncertain', 'uncertain'],
    ['new', 'queued'],
  ] as const)('with --as %s, a row locked by a daemon becomes %s', async (as, state) => {
    const outboxId = await lost(`status = 'new'`)
    const mark = await claimed(outboxId, daemonSessionNames.outbox)
    await find()
    const preview = fixture.context()
    expect(await recover.action(preview, { dryRun: true, json: true })).toBe(0)
    expect(JSON.parse(preview.printed()).history.rowsInHand).toEqual([outboxId])
    const context = fixture.context()
    expect(await recover.action(context, { as, ...erin })).toBe(0)
    expect(context.printed()).toContain('locked by a daemon that may have captured them: 1.')
    await mark()
    expect((await stateOf(await idOf(outboxId)))[0]).toBe(state)
    expect(await recover.action(fixture.context(), { dryRun: true })).toBe(3)
  })

  test('a row that the ledger knows or another program has locked is not touched', async () => {
    const known = await queued(`status = 'new'`)
    const knownRow = (await fixture.ledger.row(known)).outbox_id as string
    await claimed(knownRow, daemonSessionNames.outbox)
    const held = await lost(`status = 'new'`)
    await claimed(held, 'order form')
    await find()
    const context = fixture.context()
    expect(await recover.action(context, { as: 'new', ...erin })).toBe(0)
    expect(context.printed()).not.toContain('in hand')
    expect((await query('select id from outboxd.submission')).rows).toEqual([{ id: known }])
  })
})

test('audit does not say that recovered records were never sent', async () => {
  const [arrived, open] = [await queued(`transaction_id = 'T-1'`), await queued()]
  await find()
  await recover.action(fixture.context(), { as: 'uncertain', ...erin })
  const context = fixture.context()
  await audit.action(context, {})
  const lineOf = async (id: string) => {
    const { outbox_id: outboxId } = await fixture.ledger.row(id)
    return context
      .printed()
      .split('\n')
      .find((line) => line.includes(`outbox:${outboxId} `))
  }
  expect(await lineOf(arrived)).toContain('as T-1  sent, time unknown')
  expect(await lineOf(open)).toContain('perhaps sent')
})

test('waiting rows are in doubt up to 5 s after the loss was noticed, but not with --no-waiting', async () => {
  await query(
    `update outboxd.history set found_at = '2026-11-20T10:00:00Z', found = 'it was restored', found_by = 'daemon 1'`,
  )
  const doubted = fixture.context()
  expect(await recover.action(doubted, { dryRun: true })).toBe(0)
  expect(doubted.printed()).toMatch(
    /created before 2026-11-20 10:00:05Z may have been sent.* 5 s between .* give --no-waiting/,
  )
  const lives = fixture.context()
  expect(await recover.action(lives, { dryRun: true, waiting: false })).toBe(0)
  expect(lives.printed()).toContain('Rows that wait in the outbox count as never sent')
  expect(await recover.action(fixture.context(), { ...erin, as: 'uncertain', waiting: false })).toBe(0)
  expect((await query('select doubtful_before from outboxd.history')).rows).toEqual([{ doubtful_before: null }])
})

test('--no-waiting changes nothing if rows are not marked on capture, because sent rows look new', async () => {
  await find()
  const state = '{ status: status, new: new, completed: done, failed: error, rejected: error }'
  const outbox = `table: outbox\nid: id\ntype: type\npayload: payload\nstate: ${state}\n`
  const context = fixture.context(null, {
    MAPPINGS_DIR: mappingFiles({ 'outbox.yaml': outbox, 'data.yaml': dataFile }),
  })
  expect(await recover.action(context, { dryRun: true, waiting: false })).toBe(0)
  expect(context.printed()).toMatch(/may have been sent.*--no-waiting does not change that/)
  expect(context.printed()).not.toContain('give --no-waiting')
})

async function allowRowsWithoutDate(): Promise<void> {
  await query('alter table outbox alter created_at drop not null')
  onTestFinished(async () => {
    await query('truncate outbox')
    await query('alter table outbox alter created_at set not null')
  })
}

test('while waiting rows without a date remain, recover does not finish and the pause stays', async () => {
  await allowRowsWithoutDate()
  await lost('created_at = null')
  await find()
  await using databases = await openDatabasesOf(readDatabaseConfig(fixture.context().env))
  const loss = await findLedgerLoss(databases, { areWaitingRowsDoubtful: true, restoredBy: undefined }, () => true)
  const settle = (areUndatedRowsCut: boolean) =>
    recoverFromLedgerLoss(
      {
        databases,
        operator: { ledger: databases.ledger, keyOnFailure: 'continue', actor: testActor },
        mappings: loadMappings(databases.config.mappingsDir),
        goOn: () => true,
        onTaken() {},
        say() {},
      },
      { ...loss, history: loss.history && { ...loss.history, areUndatedRowsCut } },
      'uncertain',
    )
  expect(await settle(true)).toBe('interrupted')
  expect((await query('select from outboxd.history where found_at is null')).rowCount).toBe(0)
  expect(await settle(false)).toBe('done')
  expect(await fixture.ledger.countStates()).toEqual({ uncertain: 1 })
})

test('a waiting row without a date is in doubt, even behind 10,000 other waiting rows', async () => {
  await allowRowsWithoutDate()
  await query(`insert into outbox (type, payload) select 'data', $1 from generate_series(1, 10000)`, [payloadOf()])
  const outboxId = await lost('created_at = null')
  await queued(`status = 'new', created_at = null`) // the ledger knows it
  await find()
  const context = fixture.context()
  expect(await recover.action(context, { ...erin, as: 'uncertain', waiting: true })).toBe(0)
  expect(context.printed()).toContain('Rows that wait, without a date: 1.')
  expect((await stateOf(await idOf(outboxId)))[0]).toBe('uncertain')
  await using databases = await openDatabasesOf(readDatabaseConfig(context.env))
  const cut = { rowsMax: 0, goOn: () => true }
  expect((await withOutbox(databases, (outbox) => findUndatedWaitingRows(outbox, cut))).isCut).toBe(true)
})

test('the preview counts the records that their rows settle and lists the first, also as JSON', async () => {
  for (let i = 1; i <= 7; i++) await queued(`status = 'accepted', transaction_id = 'T-${i}'`)
  await queued(`status = 'discarded', transaction_id = 'unknown'`)
  await queued()
  await find()
  const context = fixture.context()
  expect(await recover.action(context, { dryRun: true })).toBe(0)
  expect(context.printed()).toMatch(
    /Arrived, .* whatever --as says\): 7 records\.\n {2}\d+ {2}accepted {2}T-1\n(.*\n){6}Uncertain, .*\(whatever --as says\): 1 record\.\n {2}\d+ {2}discarded {2}unknown\n/,
  )
  const json = fixture.context()
  expect(await recover.action(json, { dryRun: true, json: true })).toBe(0)
  const { rowsSay } = JSON.parse(json.printed()).history
  expect(rowsSay).toMatchObject({ arrived: 7, uncertain: 1, open: 1 })
  expect(rowsSay.first).toHaveLength(8)
  expect(rowsSay.first[0]).toMatchObject({ becomes: 'arrived', said: 'accepted', transactionId: 'T-1' })
  const asked = fixture.context('n\n')
  expect(await recover.action(asked, { as: 'new' })).toBe(4)
  expect(asked.messages()).toContain(
    'Settle all of these as new, except 8 that name a transaction, and resume sending?',
  )
})

test('if the outbox cannot be read, recover says so and changes nothing', async () => {
  const id = await queued(`transaction_id = 'T-1'`)
  await find()
  const client = await fixture.ledger.pool.connect()
  await client.query('begin; lock table outbox')
  const context = fixture.context()
  await expect(recover.action(context, { as: 'new', ...erin })).rejects.toThrow(/DATABASE_URL.*lock timeout/)
  await client.query('rollback')
  client.release()
  expect(context.messages()).toContain('could not be read. Nothing was changed.')
  expect((await stateOf(id))[0]).toBe('queued')
  expect((await query('select from outboxd.history where found_at is null')).rowCount).toBe(0)
})

test('if it is interrupted while reading, recover changes nothing', async () => {
  const id = await queued(`transaction_id = 'T-1'`)
  await find()
  const context = fixture.context()
  context.abort()
  expect(await recover.action(context, { as: 'new', ...erin })).toBe(1)
  expect(context.messages()).toContain('interrupted before everything was read. Nothing was changed.')
  expect((await stateOf(id))[0]).toBe('queued')
})

test('if a record has arrived but no longer maps, resolve and show say what to do', async () => {
  const outboxId = await lost(`status = 'accepted', transaction_id = 'T-3', payload = '{}'`)
  await find()
  await recover.action(fixture.context(), { as: 'new', ...erin })
  const [resolving, showing] = [fixture.context(), fixture.context()]
  const answer = { arrived: 'T-3', unchecked: true, yes: true }
  expect(await resolve.action(resolving, `outbox:${outboxId}`, answer)).toBe(1)
  expect(resolving.messages()).toContain('cannot be mapped. If it has arrived, discard it')
  await show.action(showing, `outbox:${outboxId}`, {})
  expect(showing.printed()).toContain('if it arrived: outboxd cannot track it, because it cannot be mapped')
})

test('`resolve --not-arrived` after `recover` says that the service has never seen the new key', async () => {
  const outboxId = await lost(`status = 'queued'`)
  await find()
  await recover.action(fixture.context(), { as: 'uncertain', ...erin })
  const context = fixture.context()
  expect(await resolve.action(context, `outbox:${outboxId}`, { notArrived: true, yes: true })).toBe(0)
  expect(context.messages()).toContain('queued again, under an idempotency key that the service has never seen')
})

test('if recover fails halfway, sending stays paused, and a second run settles the rest', async () => {
  const ids: string[] = []
  for (let i = 1; i <= 101; i++) ids.push(await queued(`transaction_id = 'T-${i}'`))
  await find()
  // The 101st record cannot be written, as if the process had died before it.
  await query(`alter table outboxd.submission add constraint stop check (transaction_id <> 'T-101') not valid`)
  await expect(recover.action(fixture.context(), { as: 'new', ...erin })).rejects.toThrow('stop')
  await query('alter table outboxd.submission drop constraint stop')
  expect((await query('select from outboxd.history where found_at is null')).rowCount).toBe(0)
  expect(await fixture.ledger.countStates()).toEqual({ accepted: 100, queued: 1 })
  expect(await recover.action(fixture.context(), { as: 'new', ...erin })).toBe(0)
  expect(await fixture.ledger.countStates()).toEqual({ accepted: 101 })
  expect(await fixture.ledger.polled()).toHaveLength(101)
})

test.each([
  [
    'sending',
    `due_at = null, claim_id = gen_random_uuid(), instance_id = gen_random_uuid(), sent_at = now(), attempt = 1`,
  ],
  ['failed', `due_at = null, ended_at = now(), error_code = 'E001', error = 'no'`],
  ['rejected', `due_at = null, ended_at = now(), error_code = 'E001', error = 'no'`],
])('a record that the ledger has as %s is tracked if its row names a transaction', async (state, columns) => {
  const [told, silent] = [await queued(`status = 'completed', transaction_id = 'T-1'`), await queued()]
  await query(`update outboxd.submission set state = $2, ${columns} where id = any($1)`, [[told, silent], state])
  await find()
  const context = fixture.context()
  expect(await recover.action(context, { as: 'new', ...erin })).toBe(0)
  expect(context.printed()).toMatch(/^Arrived, .*: 1 record\.$/m)
  expect(await stateOf(told)).toEqual(['accepted', 'T-1', null])
  expect((await stateOf(silent))[0]).toBe(state)
})

test('a failed record stays failed if its row names the transaction that failed', async () => {
  const id = await queued(`status = 'failed', transaction_id = 'T-1'`)
  await query(
    `update outboxd.submission set state = 'failed', due_at = null, ended_at = now(), error_code = 'E001', transaction_id = 'T-1' where id = $1`,
    [id],
  )
  await find()
  expect(await recover.action(fixture.context(), { as: 'new', ...erin })).toBe(0)
  expect(await stateOf(id)).toEqual(['failed', 'T-1', null])
})

test('a record that the ledger has as uncertain is tracked if its row names a transaction', async () => {
  const ids = [await queued(`status = 'accepted', transaction_id = 'T-1'`), await queued(`status = 'completed'`)]
  await query(
    `update outboxd.submission set state = 'uncertain', due_at = null, ended_at = now(), error = 'no answer' where id = any($1)`,
    [ids],
  )
  await find()
  const context = fixture.context()
  expect(await recover.action(context, { as: 'new', ...erin })).toBe(0)
  expect(context.printed()).toMatch(/^Arrived, .*: 1 record\.$/m)
  expect(await Promise.all(ids.map(stateOf))).toEqual([
    ['accepted', 'T-1', null],
    ['uncertain', null, 'no answer'],
  ])
})

test('if only the outbox was restored, recover writes outcomes back to rows that say they are under way', async () => {
  const id = await queued(`status = 'accepted'`)
  await query(
    `update outboxd.submission set state = 'completed', due_at = null, ended_at = now(), transaction_id = 'T-1', report_due = false where id = $1`,
    [id],
  )
  const looked = fixture.context()
  expect(await recover.action(looked, { dryRun: true })).toBe(3)
  expect(looked.messages()).toContain('No restore or failover of the ledger was noticed.')
  expect((await fixture.ledger.row(id)).report_due).toBe(false)
  const context = fixture.context()
  expect(await recover.action(context, { as: 'uncertain', ...erin })).toBe(3)
  expect(context.messages()).toContain(
    'Ended records whose rows still say that they are under way, now written back again: 1.',
  )
  expect((await fixture.ledger.row(id)).report_due).toBe(true)
})

test('recover compares nothing if no daemon has noticed the loss yet or the ledger is read-only', async () => {
  await query('update outboxd.history set timeline = timeline + 1')
  const unseen = fixture.context()
  expect(await recover.action(unseen, { dryRun: true })).toBe(1)
  expect(unseen.messages()).toMatch(
    /no daemon has looked at it yet\. Start a daemon, or give --restored\. Nothing was changed\.$/m,
  )
  await query(`update outboxd.ledger set table_name = 'public.former', id_column = 'id'`)
  const copied = fixture.context()
  expect(await recover.action(copied, { dryRun: true })).toBe(1)
  expect(copied.messages()).toMatch(
    /no daemon has looked at it yet, and none can start: .*`outboxd adopt --same`.* start a daemon\./,
  )
  await query('update outboxd.ledger set table_name = null, id_column = null')
  expect(await recover.action(fixture.context(), { dryRun: true, restored: true })).toBe(0)
  await fixture.reset()
  await using _ = await readOnly(fixture.ledger.pool)
  const standing = fixture.context()
  expect(await recover.action(standing, { as: 'new', ...erin })).toBe(1)
  expect(standing.messages()).toContain('the database is read-only')
})

test('once a loss is noticed, nothing is written back, because the rows may know more', async () => {
  const id = await queued(`transaction_id = 'T-1'`)
  await query('update outboxd.submission set report_due = true where id = $1', [id])
  const due = async () => (await readDueReports(fixture.ledger.pool, { freshMax: 9, againMax: 9 })).fresh.length
  expect(await due()).toBe(1)
  await find()
  expect(await due()).toBe(0)
})

describe('a decision on a ledger that may have lost data is refused, so that `recover` believes the rows', () => {
  const unnoticed = () => query('update outboxd.history set database_oid = 1')

  test('a discard whose records were read before the loss was noted', async () => {
    const id = await queued()
    await query(
      `update outboxd.submission set state = 'uncertain', held = false, due_at = null, ended_at = now() where id = $1`,
      [id],
    )
    const [seen] = (await query('select id, revision, key from outboxd.submission')).rows
    await find()
    const { ledger } = fixture
    const operator = { ledger: ledger.pool, url: ledger.url, keyOnFailure: 'continue' as const, actor: testActor }
    await expect(discardSeenSubmissions(operator, [seen])).rejects.toThrow('Run `outboxd recover` first')
  })
  const decide = {
    discard: (id: string, how: object) => discard.action(fixture.context(), [id], { reason: 'x', ...how }),
    resolve: (id: string, how: object) => resolve.action(fixture.context(), id, { arrived: 'T-2', ...how }),
    replay: (id: string, how: object) => replay.action(fixture.context(), [id], { evenIfArrived: true, ...how }),
  }

  test.each([
    ['noticed', 'discard', 'uncertain', find, 'Run `outboxd recover` first'],
    ['noticed', 'resolve', 'uncertain', find, 'Run `outboxd recover` first'],
    ['noticed', 'replay', 'failed', find, 'Run `outboxd recover` first'],
    ['unnoticed', 'discard', 'uncertain', unnoticed, 'Start a daemon'],
    ['unnoticed', 'resolve', 'uncertain', unnoticed, 'Start a daemon'],
    ['unnoticed', 'replay', 'failed', unnoticed, 'Start a daemon'],
  ] as const)('%s: %s', async (_how, command, state, lose, advice) => {
    const id = await queued(`status = 'completed', transaction_id = 'T-1'`)
    await query(
      `update outboxd.submission set state = $2, held = false, due_at = null, ended_at = clock_timestamp(),
         in_doubt = $2 = 'uncertain', error = 'lost' where id = $1`,
      [id, state],
    )
    await lose()
    for (const how of [{ dryRun: true }, { yes: true }]) await expect(decide[command](id, how)).rejects.toThrow(advice)
    expect(await stateOf(id)).toEqual([state, null, 'lost'])
    await find()
    expect(await recover.action(fixture.context(), { as: 'uncertain', ...erin })).toBe(0)
    expect(await stateOf(id)).toEqual(['accepted', 'T-1', null])
  })
})

test('a second recover names the operator who was faster, and a later one says that it was done', async () => {
  await queued()
  await find()
  const slow = fixture.context()
  slow.stdin.isTTY = true
  const late = recover.action(slow, { as: 'new', by: 'erin' })
  await expect.poll(() => slow.messages()).toContain('Settle all of these as new')
  expect(await recover.action(fixture.context(), { as: 'uncertain', by: 'frank', yes: true })).toBe(0)
  slow.stdin.end('y\n')
  expect(await late).toBe(1)
  expect(slow.messages()).toMatch(
    /have changed, so nothing more was done\. Run the command again\. operator frank recovered as uncertain at /,
  )
  const after = fixture.context()
  expect(await recover.action(after, { as: 'new', ...erin })).toBe(3)
  expect(after.messages()).toMatch(/operator frank recovered as uncertain at .*\. `outboxd audit` shows it\./)
  const json = fixture.context()
  expect(await recover.action(json, { dryRun: true, json: true })).toBe(3)
  expect(JSON.parse(json.printed()).lastRecovery).toMatchObject({ who: 'operator frank', as: 'uncertain' })
})

describe('--restored', () => {
  test('pauses all daemons before it asks, keeps the pause without a yes, and goes on when given again', async () => {
    const id = await queued(`transaction_id = 'T-1'`)
    const asked = fixture.context('n\n')
    expect(await recover.action(asked, { as: 'new', by: 'erin', restored: true })).toBe(4)
    expect(asked.messages()).toContain('All daemons are paused (history) now, and the whole budget counts as spent.')
    expect(asked.messages()).toContain(
      'Nothing was settled. All daemons stay paused (history) until you run the command again and confirm it.',
    )
    expect(asked.printed()).toContain('operator erin says that the ledger was restored from a backup')
    expect((await query(`select reason from outboxd.pause`)).rows).toEqual([{ reason: 'history' }])
    expect((await query(`select free from outboxd.budget`)).rows).toEqual([{ free: 0 }])
    const again = fixture.context()
    expect(await recover.action(again, { as: 'new', ...erin, restored: true })).toBe(0)
    expect(again.messages()).toContain('Sending resumes. `outboxd status` says when a request is free.')
    expect(await stateOf(id)).toEqual(['accepted', 'T-1', null])
    expect((await query(`select reason from outboxd.pause`)).rows).toEqual([])
    const { rows } = await query('select act, who from outboxd.operator_act order by id')
    expect(rows).toEqual([
      { act: 'recover --restored', who: 'operator erin' },
      { act: 'recover', who: 'operator erin' },
    ])
  })

  test('works even if the row of outboxd.history is gone', async () => {
    const id = await queued()
    await query('delete from outboxd.history')
    expect(await recover.action(fixture.context(), { as: 'uncertain', ...erin, restored: true })).toBe(0)
    expect((await stateOf(id))[0]).toBe('uncertain')
    expect((await query('select from outboxd.history where found_at is null')).rowCount).toBe(1)
  })

  test('with --dry-run shows what it would do, and pauses nothing', async () => {
    await queued(`transaction_id = 'T-1'`)
    const context = fixture.context()
    expect(await recover.action(context, { restored: true, dryRun: true })).toBe(0)
    expect(context.printed()).toMatch(/^Arrived, .*: 1 record\.$/m)
    expect((await query(`select from outboxd.pause`)).rowCount).toBe(0)
    expect((await query('select from outboxd.history where found_at is null')).rowCount).toBe(1)
  })
})

test('--as takes the state and the operator’s name, and --by is the older option for the name', async () => {
  const run = async (options: OptionsOf<typeof recover>) => {
    const context = fixture.context()
    return { code: await recover.action(context, options), messages: context.messages() }
  }
  // Nothing is lost, so the exit code 3 shows that the options were understood.
  for (const as of ['uncertain', ['uncertain', 'erin'], ['erin', 'new'], ['new', 'new']])
    expect((await run({ as, yes: true })).code).toBe(3)
  expect((await run({ as: 'uncertain', by: 'erin', yes: true })).code).toBe(3)
  expect(await run({ as: ['uncertain', 'new'] })).toMatchObject({
    code: 2,
    messages: expect.stringContaining('give --as uncertain or --as new, not both'),
  })
  expect(await run({ as: ['new', 'erin'], by: 'frank' })).toMatchObject({
    code: 2,
    messages: expect.stringContaining('erin and frank: give one name'),
  })
  expect(await run({ as: 'uncertian', yes: true })).toMatchObject({
    code: 2,
    messages: expect.stringContaining('give --as uncertain, --as new or --dry-run'),
  })
})
