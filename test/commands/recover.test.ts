import { describe, expect, onTestFinished, test } from 'vitest'
import { command as audit } from '../../src/commands/audit.ts'
import { command as capture } from '../../src/commands/capture.ts'
import { command as discard } from '../../src/commands/discard.ts'
import { command as recover } from '../../src/commands/recover.ts'
import { command as replay } from '../../src/commands/replay.ts'
import { command as resolve } from '../../src/commands/resolve.ts'
import { command as show } from '../../src/commands/show.ts'
import { findHistoryProblem } from '../../src/ledger/history/history.ts'
import { readDueReports } from '../../src/ledger/reports.ts'
import type { CapturedRecord } from '../../src/model/outbox.ts'
import { Outbox } from '../../src/outbox/outbox.ts'
import { readRecordWithoutQueriedContent } from '../../src/outbox/readRows.ts'
import { claim, countFree, outcomeBatch, transition } from '../support/ledger.ts'
import { backUpLedger, restoreLedger } from '../support/ledgerBackup.ts'
import { readOnly } from '../support/readOnly.ts'
import { until } from '../support/until.ts'
import { dataFile, mappingFiles, openFixtureForFile, payloadOf } from './fixture.ts'

const fixture = openFixtureForFile()

const query = (text: string, values: unknown[] = []) => fixture.ledger.pool.query(text, values)
const erin = { as: 'erin', reason: 'restored', yes: true }

/** As a daemon does that finds a loss. */
const lose = () => query(`update outboxd.ledger set timeline = 'earlier', lost_at = clock_timestamp()`)

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

/** A row that the ledger does not know. */
async function lost(says: string): Promise<string> {
  const outboxId = await fixture.row(payloadOf())
  await query(`update outbox set ${says} where id = $1`, [outboxId])
  return outboxId
}

const recordOf = async (outboxId: string) =>
  (await query('select * from outboxd.submission where outbox_id = $1', [outboxId])).rows[0]
const stateOf = async (id: string) => (await fixture.ledger.row(id)).state

async function run(options: Parameters<typeof recover.action>[1] = erin) {
  const context = fixture.context()
  const code = await recover.action(context, options)
  return { code, printed: context.printed(), messages: context.messages() }
}

test('a restore that comes while `recover` reads the outbox is not accepted: nothing is done', async () => {
  const { pool } = fixture.ledger
  const backup = await backUpLedger(pool)
  await lose()
  const outboxId = await lost(`status = 'queued'`)
  const erp = await pool.connect()
  onTestFinished(() => erp.release(true))
  await erp.query('begin; lock table outbox')
  const recovering = run().catch((error: unknown) => error)
  await until(
    () =>
      query(`select from pg_locks where relation = 'outbox'::regclass and not granted
        and database = (select oid from pg_database where datname = current_database())`),
    ({ rowCount }) => rowCount !== 0,
  )
  await restoreLedger(pool, backup)
  await erp.query('rollback')
  expect(await recovering).toMatchObject({ message: expect.stringContaining('restored or changed while') })
  expect(await findHistoryProblem(pool)).not.toBeNull()
  expect(await recordOf(outboxId)).toBeUndefined()
  expect((await run()).code).toBe(0)
  expect(await recordOf(outboxId)).toMatchObject({ state: 'uncertain' })
})

describe('what becomes of records', () => {
  test('queued ones become uncertain, and the row will say so', async () => {
    const id = await queued()
    await lose()
    expect(await run()).toMatchObject({
      code: 0,
      printed: '1 record that waited in the ledger are uncertain\n',
      messages: expect.stringContaining('Sending resumes'),
    })
    expect(await fixture.ledger.row(id)).toMatchObject({
      ...{ state: 'uncertain', in_doubt: true, held: false, report_due: true },
      error: 'the ledger lost data and had this record as unsent. The record may have arrived',
    })
    const { rows } = await query(
      `select cause, actor, who, detail ->> 'reason' as reason from outboxd.submission_event
       where submission_id = $1 order by id desc limit 1`,
      [id],
    )
    expect(rows).toEqual([
      { cause: 'recovered', actor: 'operator', who: expect.stringContaining('erin'), reason: 'restored' },
    ])
  })

  test('one that is being sent becomes uncertain, and its late answer is dropped', async () => {
    const id = await queued()
    const dispatch = fixture.ledger.dispatch()
    const { submissions } = await claim(dispatch, { submissions: 1 })
    await lose()
    expect((await run()).code).toBe(0)
    expect(await stateOf(id)).toBe('uncertain')
    const accepted = { state: 'accepted', transactionId: 'T-1', pollInMs: 0 } as const
    const transitions = submissions.map((each) => transition(each, accepted))
    expect((await dispatch.writeOutcomes(outcomeBatch({ transitions }))).written).toEqual([])
    expect(await stateOf(id)).toBe('uncertain')
  })

  test('an accepted one is polled on with a new job, and the answer to a poll under way is dropped', async () => {
    const id = await fixture.end({ state: 'accepted', transactionId: 'T-1', pollInMs: 0 })
    const dispatch = fixture.ledger.dispatch()
    const { polls } = await claim(dispatch, { polls: 1 })
    await lose()
    expect((await run()).printed).toBe('1 record that the service had accepted are polled on\n')
    expect(await fixture.ledger.row(id)).toMatchObject({ state: 'accepted', in_doubt: true, resubmissions: 3 })
    const again = { state: 'queued', transactionId: null, dueInMs: 0 } as const
    const transitions = polls.map(({ submission, poll }) => transition(submission, again, poll))
    expect((await dispatch.writeOutcomes(outcomeBatch({ transitions }))).written).toEqual([])
    await query('update outboxd.ledger set spent_at = null')
    expect((await claim(dispatch, { polls: 1 })).polls).toMatchObject([{ submission: { id } }])
  })

  test('ended ones may have arrived, so a replay in bulk leaves them alone', async () => {
    const id = await fixture.end({ state: 'failed', errorCode: 'E001', error: 'no' })
    await lose()
    expect((await run()).code).toBe(0)
    expect(await fixture.ledger.row(id)).toMatchObject({ state: 'failed', may_have_arrived: true })
    const context = fixture.context()
    expect(await replay.action(context, [], { yes: true })).toBe(1)
    expect(context.messages()).toContain('may have arrived')
    expect(await stateOf(id)).toBe('failed')
  })

  test('one whose row names its transaction is polled, not sent', async () => {
    const id = await queued(`status = 'completed', transaction_id = 'T-1'`)
    await lose()
    expect((await run()).printed).toBe('1 record whose rows name their transaction are polled\n')
    expect(await fixture.ledger.row(id)).toMatchObject({ state: 'accepted', transaction_id: 'T-1', in_doubt: true })
    expect((await query('select from outboxd.poll where is_due')).rowCount).toBe(1)
  })

  test.each([
    ['of another record', `transaction_id = 'T-of-another'`],
    ['that is none', `transaction_id = 'unknown'`],
  ])('a transaction %s is not believed', async (_, says) => {
    await fixture.end({ state: 'accepted', transactionId: 'T-of-another', pollInMs: 0 }, { outboxId: 'of another day' })
    const id = await queued(says)
    await lose()
    await run()
    expect(await stateOf(id)).toBe('uncertain')
  })

  test('a transaction that two rows name, or that the record had before, is not believed', async () => {
    const ids = [await queued(`transaction_id = 'T-2'`), await queued(`transaction_id = 'T-2'`)]
    const former = await queued(`transaction_id = '9b2e4f60-1c3d-4e5f-8a7b-0c1d2e3f4a5b'`)
    await query(
      `insert into outboxd.submission_event (submission_id, from_state, to_state, attempt, cause, actor, who, detail)
       values ($1, 'failed', 'queued', 1, 'replayed', 'operator', 'x', $2)`,
      [former, { former: { transactionId: '9B2E4F60-1C3D-4E5F-8A7B-0C1D2E3F4A5B' } }],
    )
    await lose()
    await run()
    for (const id of [...ids, former]) expect(await stateOf(id)).toBe('uncertain')
  })
})

describe('what becomes of rows that the ledger does not know', () => {
  test('rows that wait or are marked become uncertain, and a row that names its transaction is polled', async () => {
    const waiting = await lost(`status = 'new'`)
    const marked = await lost(`status = 'queued'`)
    const named = await lost(`status = 'accepted', transaction_id = 'T-1'`)
    const completed = await lost(`status = 'completed'`)
    await lose()
    expect((await run()).printed).toBe(
      `1 record that waited in the outbox are uncertain, or rejected if they cannot be mapped
2 records that the ledger had lost are uncertain, or rejected if they cannot be mapped
1 record whose rows name their transaction are polled
`,
    )
    expect(await recordOf(waiting)).toMatchObject({ state: 'uncertain', in_doubt: true, report_due: true })
    expect(await recordOf(marked)).toMatchObject({ state: 'uncertain', body: expect.stringContaining('C1') })
    expect(await recordOf(named)).toMatchObject({ state: 'accepted', transaction_id: 'T-1' })
    expect(await recordOf(completed)).toBeUndefined()
  })

  test('a row that is locked by the ERP is settled all the same', async () => {
    const outboxId = await lost(`status = 'new'`)
    const session = await fixture.ledger.pool.connect()
    onTestFinished(() => session.release(true))
    await session.query('begin; select from outbox for update')
    await lose()
    expect((await run()).code).toBe(0)
    expect(await recordOf(outboxId)).toMatchObject({ state: 'uncertain' })
  })

  test('a row that cannot be mapped is rejected, may have arrived, and says what to do', async () => {
    const outboxId = await lost(`status = 'accepted', transaction_id = 'T-3', payload = '{}'`)
    await lose()
    await run()
    expect(await recordOf(outboxId)).toMatchObject({
      ...{ state: 'rejected', may_have_arrived: true },
      error: expect.stringContaining('names transaction T-3. The record may have arrived'),
    })
    const [resolving, showing] = [fixture.context(), fixture.context()]
    expect(await resolve.action(resolving, `outbox:${outboxId}`, { arrived: 'T-3', unchecked: true, yes: true })).toBe(
      1,
    )
    expect(resolving.messages()).toContain('cannot be mapped. If it has arrived, discard it')
    await show.action(showing, `outbox:${outboxId}`, {})
    expect(showing.printed()).toContain('if it arrived: outboxd cannot track it, because it cannot be mapped')
  })

  test('a row whose document was deleted is rejected and may have arrived, because a version may have been sent', async () => {
    const outboxId = await fixture.row('{ "id": 999999 }')
    await query(`update outbox set status = 'accepted' where id = $1`, [outboxId])
    await lose()
    const mapping = `type: data
endpoint: data
document: { table: public.outbox, key: id }
source: select id, 'x' as f from outbox where id = any($1)
fields:
  f: { from: f, type: string, required: true }
body:
  f: \${f}
`
    const context = fixture.context(null, { MAPPINGS_DIR: mappingFiles({ 'data.yaml': mapping }) })
    expect(await recover.action(context, erin)).toBe(0)
    expect(await recordOf(outboxId)).toMatchObject({ state: 'rejected', may_have_arrived: true })
  })

  test('of a table that shows only the end, rows without an end become uncertain', async () => {
    const outboxId = await lost(`status = 'new'`)
    await lose()
    const state = '{ status: status, new: new, completed: done, failed: error, rejected: error }'
    const outbox = `table: outbox\nid: id\ntype: type\npayload: payload\nstate: ${state}\n`
    const context = fixture.context(null, {
      MAPPINGS_DIR: mappingFiles({ 'outbox.yaml': outbox, 'data.yaml': dataFile }),
    })
    expect(await recover.action(context, erin)).toBe(0)
    expect(await recordOf(outboxId)).toMatchObject({ state: 'uncertain' })
  })

  test('hundreds of waiting rows are settled in one run', async () => {
    await query(`insert into outbox (type, payload) select 'data', $1 from generate_series(1, 450)`, [payloadOf()])
    await lose()
    expect((await run()).printed).toContain('450 records that waited in the outbox')
    expect(await fixture.ledger.countStates()).toEqual({ uncertain: 450 })
  })
})

test('the pause ends, the whole limit counts as spent, and the log says who did it', async () => {
  await query(`insert into outboxd.pause (reason, detail) values ('history', 'lost')`)
  await lose()
  await run()
  expect((await query('select reason from outboxd.pause')).rows).toEqual([])
  expect(await countFree(fixture.ledger.pool)).toBe(0)
  expect((await query('select difference, lost_at from outboxd.history(null, null, null)')).rows).toEqual([
    { difference: null, lost_at: null },
  ])
  const { rows } = await query(`select act, reason, detail from outboxd.operator_act`)
  expect(rows).toEqual([{ act: 'recover', reason: 'restored', detail: expect.objectContaining({ queued: 0 }) }])
})

test('--nothing-lost ends the pause and changes no record', async () => {
  const id = await queued()
  const before = await fixture.ledger.row(id)
  await lose()
  expect(await run({ ...erin, nothingLost: true })).toMatchObject({ code: 0 })
  expect(await fixture.ledger.row(id)).toEqual(before)
  expect((await claim(fixture.ledger.dispatch(), { submissions: 1 })).submissions).toMatchObject([{ id }])
})

test('--dry-run shows the same and changes nothing', async () => {
  const [id, outboxId] = [await queued(), await lost(`status = 'new'`)]
  const before = await fixture.ledger.row(id)
  await lose()
  const dry = await run({ dryRun: true })
  expect(dry.code).toBe(0)
  expect(dry.messages).toContain('All is paused since')
  expect(dry.printed).toContain('1 record that waited in the outbox would be uncertain')
  expect(dry.messages).toContain('otherwise `outboxd recover --reason TEXT`')
  expect(JSON.parse((await run({ dryRun: true, json: true })).printed)).toMatchObject({
    queued: 1,
    waiting: 1,
    marked: 0,
  })
  expect(await fixture.ledger.row(id)).toEqual(before)
  expect(await recordOf(outboxId)).toBeUndefined()
  expect((await query('select from outboxd.ledger where lost_at is null')).rowCount).toBe(0)
})

test('if no daemon noticed anything, --dry-run does not advise to recover', async () => {
  const { messages } = await run({ dryRun: true })
  expect(messages).toContain('Only if you know of a restore that daemons cannot notice')
  expect(messages).not.toContain('--nothing-lost')
})

test('without a yes it changes no record, and all stays paused', async () => {
  const id = await queued()
  const context = fixture.context('n\n')
  expect(await recover.action(context, {})).toBe(4)
  expect(await stateOf(id)).toBe('queued')
  expect(context.messages()).toContain('All is paused, and stays so until you confirm')
  expect((await query('select from outboxd.ledger where lost_at is null')).rowCount).toBe(0)
})

test.each([
  { yes: true },
  { yes: true, nothingLost: true },
])('it says that it reaches no daemon: %o', async (options) => {
  expect((await run(options)).messages).toContain('Warning: no daemon runs with this database')
  await query(`insert into outboxd.instance (id, version, host) values (gen_random_uuid(), '1', 'erp-1')`)
  expect((await run(options)).messages).toContain('1 daemon of this database follows within a second.')
})

test('it works without a finding, because not every restore can be noticed', async () => {
  const id = await queued()
  const { code, messages } = await run()
  expect(code).toBe(0)
  expect(messages).toContain('No daemon has noticed a restore or a failover.')
  expect(await stateOf(id)).toBe('uncertain')
  expect((await query('select from outboxd.pause')).rowCount).toBe(0)
})

test('it works if the row of the ledger is gone', async () => {
  const id = await queued()
  await query('delete from outboxd.ledger')
  expect((await run()).code).toBe(0)
  expect(await stateOf(id)).toBe('uncertain')
})

test('a failure halfway changes nothing, and all stays paused', async () => {
  const id = await queued()
  await lose()
  await query(`alter table outboxd.submission add constraint stop check (state <> 'uncertain') not valid`)
  onTestFinished(() => query('alter table outboxd.submission drop constraint if exists stop') as Promise<never>)
  await expect(run()).rejects.toThrow('stop')
  expect(await stateOf(id)).toBe('queued')
  expect((await query('select from outboxd.ledger where lost_at is null')).rowCount).toBe(0)
})

test('an end that the restored row does not say is written back, or nothing is recovered', async () => {
  const id = await queued()
  const dispatch = fixture.ledger.dispatch()
  const [sending] = (await claim(dispatch, { submissions: 1 })).submissions
  if (sending === undefined) throw new Error('nothing was claimed')
  await dispatch.writeOutcomes(outcomeBatch({ transitions: [transition(sending, { state: 'completed' })] }))
  await query('update outboxd.submission set report_due = false')
  await lose()
  const session = await fixture.ledger.pool.connect()
  onTestFinished(() => session.release(true))
  await session.query('begin; select from outboxd.submission for update')
  await expect(run()).rejects.toThrow()
  expect((await query('select from outboxd.ledger where lost_at is null')).rowCount).toBe(0)
  await session.query('rollback')
  await run({ dryRun: true })
  expect(await fixture.ledger.row(id)).toMatchObject({ report_due: false })
  expect((await run()).code).toBe(0)
  expect(await fixture.ledger.row(id)).toMatchObject({ state: 'completed', report_due: true })
})

test('a record that a poll’s answer queues while recover runs becomes uncertain', async () => {
  const id = await fixture.end({ state: 'accepted', transactionId: 'T-1', pollInMs: 0 })
  await lose()
  const answer = await fixture.ledger.pool.connect()
  onTestFinished(() => answer.release())
  await answer.query('begin')
  await answer.query('select from outboxd.submission where id = $1 for update', [id])
  const recovering = run()
  await until(
    () => query(`select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`),
    ({ rowCount }) => rowCount !== 0,
  )
  await answer.query(
    `update outboxd.submission set state = 'queued', revision = revision + 1, due_at = now(),
       transaction_id = null, accepted_at = null where id = $1`,
    [id],
  )
  await answer.query('commit')
  await recovering
  expect(await stateOf(id)).toBe('uncertain')
})

test('a read-only database is refused', async () => {
  await using _ = await readOnly(fixture.ledger.pool)
  const { code, messages } = await run()
  expect(code).toBe(1)
  expect(messages).toContain('the database is read-only')
})

test('audit does not say that recovered records were never sent', async () => {
  const [arrived, open] = [await queued(`transaction_id = 'T-1'`), await queued()]
  await lose()
  await run()
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

test('while a loss is noted, nothing is written back, because the rows may know more', async () => {
  const id = await queued(`transaction_id = 'T-1'`)
  await query('update outboxd.submission set report_due = true where id = $1', [id])
  const due = async () => (await readDueReports(fixture.ledger.pool, { freshMax: 9, aloneMax: 9 })).fresh.length
  expect(await due()).toBe(1)
  await lose()
  expect(await due()).toBe(0)
})

describe('a decision on a ledger that may have lost data is refused', () => {
  const unnoticed = () => query('update outboxd.ledger set database_oid = 1')
  const decide = {
    capture: (_id: string, how: object) => capture.action(fixture.context(), how),
    discard: (id: string, how: object) => discard.action(fixture.context(), [id], { reason: 'x', ...how }),
    resolve: (id: string, how: object) => resolve.action(fixture.context(), id, { arrived: 'T-2', ...how }),
    replay: (id: string, how: object) => replay.action(fixture.context(), [id], { evenIfArrived: true, ...how }),
  }

  test.each([
    ['noticed', 'discard', 'uncertain', lose],
    ['noticed', 'resolve', 'uncertain', lose],
    ['noticed', 'replay', 'failed', lose],
    ['unnoticed', 'discard', 'uncertain', unnoticed],
    ['unnoticed', 'resolve', 'uncertain', unnoticed],
    ['unnoticed', 'replay', 'failed', unnoticed],
    ['noticed', 'capture', 'failed', lose],
    ['unnoticed', 'capture', 'failed', unnoticed],
  ] as const)('%s: %s', async (_how, command, state, loseIt) => {
    const id = await queued()
    await query(
      `update outboxd.submission set state = $2, held = false, due_at = null, ended_at = clock_timestamp(),
         in_doubt = $2 = 'uncertain', error = 'lost' where id = $1`,
      [id, state],
    )
    await loseIt()
    for (const how of [{ dryRun: true }, { yes: true }])
      await expect(decide[command](id, how)).rejects.toThrow('Run `outboxd recover` first')
    expect(await stateOf(id)).toBe(state)
  })
})
