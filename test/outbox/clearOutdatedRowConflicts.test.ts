import { expect, test } from 'vitest'
import { adoptOutbox } from '../../src/ledger/operator/adoptOutbox.ts'
import { readProblems } from '../../src/ledger/problems.ts'
import { type State, states } from '../../src/model.ts'
import { problemMessages } from '../../src/operations/problemMessages.ts'
import { clearOutdatedRowDifferences } from '../../src/outbox/rowDifferences.ts'
import { testActor } from '../support/testActor.ts'
import { type Setup, setup } from './setup.ts'

/** Edited rows: what `outboxd status` says for each form of stamp, state of the record and kind of edit. */

const table = {
  ddl: `create table sales_order (id bigint generated always as identity primary key, customer_no text, net_amount numeric(12,2),
    created_at timestamptz default '2026-11-01', synced_at timestamptz, sync_error text)`,
  // As `describe --write` proposes it.
  yaml: `table: sales_order
id: id
type: { constant: data }
key: customer_no
payload: { columns: { customer_no: customer_no, net_amount: net_amount } }
state: { timestamp: synced_at, set: [completed] }
write: { sync_error: error }`,
}
const marked = table.yaml.replace('[completed]', '[queued, completed]')
const forms = {
  'a hash': table.yaml,
  created_at: `${table.yaml}\ncreated_at: created_at`,
  'a hash, of a row whose mark was removed': marked,
  'created_at, of a row whose mark was removed': `${marked}\ncreated_at: created_at`,
}

/** Sets a captured record to this state. */
const into: Record<State, string> = {
  queued: `state = 'queued'`,
  sending: `state = 'sending', held = false, due_at = null, attempt = 1, claim_id = gen_random_uuid(), instance_id = gen_random_uuid()`,
  accepted: `state = 'accepted', held = false, due_at = null, attempt = 1, job_id = gen_random_uuid(), poll_at = now(), transaction_id = 'T', accepted_at = now()`,
  completed: `state = 'completed', ${ended()}`,
  failed: `state = 'failed', ${ended()}`,
  rejected: `state = 'rejected', ${ended()}`,
  uncertain: `state = 'uncertain', ${ended()}`,
  discarded: `state = 'discarded', ${ended()}`,
}
function ended(): string {
  return 'held = false, due_at = null, job_id = null, poll_at = null, claim_id = null, instance_id = null, ended_at = clock_timestamp()'
}

const edits = {
  contents: 'net_amount = 2',
  'the key': `customer_no = 'C2'`,
  'contents and the key': `net_amount = 2, customer_no = 'C2'`,
  created_at: `created_at = '2026-11-02'`,
  'created_at and contents': `created_at = '2026-11-02', net_amount = 2`,
}
const byKey = /^1 row of the outbox \(1\) differs from what was captured under its id/
const byContents = /^In the outbox 1 row has changed since the capture/

function expected(form: keyof typeof forms, state: State, edit: keyof typeof edits): RegExp | null {
  if (form.startsWith('created_at')) return edit.startsWith('created_at') ? byKey : null
  if (edit === 'created_at') return null
  if (state === 'rejected' || state === 'failed') return null // the edit is the repair that outboxd asked for
  return edit.includes('the key') || form !== 'a hash' ? byKey : byContents
}

const cases = Object.keys(forms).flatMap((form) =>
  states.flatMap((state) =>
    Object.keys(edits).map(
      (edit) => [form as keyof typeof forms, state, edit as keyof typeof edits] satisfies [unknown, State, unknown],
    ),
  ),
)

const insert = `insert into sales_order (customer_no, net_amount) values ('C1', 1)`
const put = ({ pool }: Setup, state: State) => pool.query(`update outboxd.submission set ${into[state]}`)
const said = async ({ pool }: Setup) => problemMessages(await readProblems(pool, 10))

test('the message about an edited row depends on its stamp, the state of its record and the kind of edit', async () => {
  const given = new Map<string, Setup>()
  for (const form of Object.keys(forms) as (keyof typeof forms)[])
    given.set(form, await setup({ ...table, yaml: forms[form] }))
  const found: unknown[] = []
  for (const [form, state, edit] of cases) {
    const own = given.get(form)
    if (own === undefined) throw new Error(form)
    const { pool, capture, describedAs } = own
    await pool.query(`truncate sales_order restart identity; truncate outboxd.submission cascade; ${insert};
      delete from outboxd.problem; delete from outboxd.edited_row; delete from outboxd.outbox_cursor`)
    await capture()
    await put(own, state)
    await pool.query(`update sales_order set ${edits[edit]}, synced_at = null`)
    const anew = describedAs(forms[form]) // an instance that has reported nothing yet
    await anew.capture()
    expect((await pool.query('select from outboxd.submission')).rowCount).toBe(1)
    await clearOutdatedRowDifferences(anew.outbox)
    const words = await said(own)
    const want = expected(form, state, edit)
    const fits = want === null ? words.length === 0 : words.length === 1 && want.test(words[0] ?? '')
    if (!fits) found.push([form, state, edit, words])
    for (const each of words) if (/never used/.test(each)) expect(each).toMatch(/new id is a new record and is sent/)
  }
  expect(found).toEqual([])
})

test.each([
  'contents',
  'the key',
] as const)('a conflict by an edit of %s while the record is open ends once the record is rejected', async (edit) => {
  const given = await setup(table)
  await given.pool.query(insert)
  await given.capture()
  await given.pool.query(`update sales_order set ${edits[edit]}`)
  await given.capture()
  expect(await said(given)).toHaveLength(1)
  await clearOutdatedRowDifferences(given.outbox)
  expect(await said(given)).toHaveLength(1)
  await put(given, 'rejected')
  await clearOutdatedRowDifferences(given.outbox)
  expect(await said(given)).toEqual([])
  await given.report({
    outboxId: '1',
    state: 'rejected',
    transactionId: null,
    errorCode: null,
    error: 'no',
    ...(await stamp(given)),
  })
  expect(await row(given)).toEqual({ synced: false, sync_error: 'no' })
})

test('a conflict by edited contents ends once the record is completed, and the outcome is written back', async () => {
  const given = await setup(table)
  await given.pool.query(insert)
  await given.capture()
  await given.pool.query(`update sales_order set ${edits.contents}`)
  await given.capture()
  expect(await said(given)).toEqual([expect.stringMatching(byContents)])
  await put(given, 'completed')
  const status = { outboxId: '1', state: 'completed' as const, transactionId: 'T', errorCode: null, error: null }
  expect(await given.report({ ...status, ...(await stamp(given)) })).toMatchObject({ rows: [{ kind: 'differs' }] })
  await clearOutdatedRowDifferences(given.outbox)
  expect(await said(given)).toEqual([])
  expect(await given.report({ ...status, ...(await stamp(given)) })).toMatchObject({ rows: [{ kind: 'written' }] })
  expect(await row(given)).toEqual({ synced: true, sync_error: null })
})

test('contents edited while the record was open are no conflict if they are noticed only after its end', async () => {
  const given = await setup(table)
  await given.pool.query(insert)
  await given.capture()
  await given.pool.query(`update sales_order set ${edits.contents}`)
  await put(given, 'completed')
  await given.pool.query('update outboxd.submission set report_due = true') // as every change of state does
  await given.capture()
  await clearOutdatedRowDifferences(given.outbox)
  expect(await said(given)).toEqual([])
  const status = { outboxId: '1', state: 'completed' as const, transactionId: 'T', errorCode: null, error: null }
  expect(await given.report({ ...status, ...(await stamp(given)) })).toMatchObject({ rows: [{ kind: 'written' }] })
})

test('after adopt --same, a row with an edited key gets the outcome of its record', async () => {
  const given = await setup(table)
  await given.pool.query(insert)
  await given.capture()
  await put(given, 'completed')
  await given.pool.query(`update sales_order set ${edits['the key']}`)
  await given.capture()
  expect(await said(given)).toEqual([expect.stringMatching(byKey)])
  const identity = await given.outbox.readIdentity()
  await adoptOutbox({ ledger: given.pool, actor: testActor }, { identity, rows: 'same', start: null })
  await clearOutdatedRowDifferences(given.outbox)
  expect(await said(given)).toEqual([])
  const status = { outboxId: '1', state: 'completed' as const, transactionId: 'T', errorCode: null, error: null }
  expect(await given.report({ ...status, ...(await stamp(given)) })).toMatchObject({ rows: [{ kind: 'written' }] })
})

test('a different row with the id of a completed record stays a conflict', async () => {
  const given = await setup(table)
  await given.pool.query(insert)
  await given.capture()
  await put(given, 'completed')
  await given.pool.query('update outboxd.submission set report_due = false') // the outcome was written back
  await given.pool.query(
    `delete from sales_order; alter sequence sales_order_id_seq restart; insert into sales_order (customer_no, net_amount) values ('C1', 7)`,
  )
  await given.capture()
  await clearOutdatedRowDifferences(given.outbox)
  expect(await said(given)).toEqual([expect.stringMatching(byContents)])
  expect((await given.pool.query('select from outboxd.submission')).rowCount).toBe(1)
})

const stamp = async ({ pool }: Setup) =>
  (await pool.query<{ stamp: string }>('select row_stamp as stamp from outboxd.submission')).rows[0]
const row = async ({ pool }: Setup) =>
  (await pool.query('select synced_at is not null as synced, sync_error from sales_order')).rows[0]
