import type pg from 'pg'
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { failResubmissionsOfOvertakenDocuments, readNewerVersionsAmong } from '../../../src/ledger/documents.ts'
import { discardSeenSubmissions, eraseRecords } from '../../../src/ledger/operator/decisions.ts'
import { queueReplays, readReplayableSubmissions } from '../../../src/ledger/operator/replaySubmissions.ts'
import { resolveAsNotArrived } from '../../../src/ledger/operator/resolveSubmission.ts'
import { readProblems } from '../../../src/ledger/problems.ts'
import { removeContentsOfOldSubmissions } from '../../../src/ledger/retention.ts'
import type { State, Transition } from '../../../src/model/submission.ts'
import { Outbox } from '../../../src/outbox/outbox.ts'
import { inTransaction } from '../../../src/postgres/database.ts'
import { mappingFrom } from '../../mapping/mappingOf.ts'
import { createRole } from '../../support/changeCapture.ts'
import { type Ledger, openLedger } from '../../support/ledger.ts'
import { pruneAll } from '../../support/retention.ts'
import { submission } from '../../support/submission.ts'
import { testActor } from '../../support/testActor.ts'
import { type CaptureOptions, openCapture } from './setupCapture.ts'

/** Capture of rows that name a document, whose content is read when the row is captured. */

let ledger: Ledger
beforeAll(async () => {
  ledger = await openLedger()
  await ledger.pool.query(`
    create table sale (id int primary key, state text not null, note text, seen int not null default 0);
    create table sale_line (id int generated always as identity primary key, sale int not null references sale, price numeric)`)
})
beforeEach(async () => {
  await ledger.reset()
  await ledger.pool.query('truncate sale, sale_line')
})
afterAll(() => ledger[Symbol.asyncDispose]())

const confirmed = `h.state = 'confirmed' and exists (select from public.sale_line l where l.sale = h.id) -- with lines`

const query =
  'select s.id, (select sum(price) from sale_line l where l.sale = s.id) as total from sale s where s.id = any($1)'

function mappingsOf(condition = confirmed, body = 'ref: "${submission.id}", total: "${total}"') {
  const document = `document: { table: public.sale, key: id, condition: ${JSON.stringify(condition)} }`
  const fields = 'fields: { total: { from: total, type: "decimal(12,2)", required: true } }'
  const lines = ['type: order', 'endpoint: orders', document, `source: ${JSON.stringify(query)}`, fields]
  return new Map([['order', mappingFrom(`${lines.join('\n')}\nbody: { ${body} }`)]])
}

/** Captures until nothing is left to do at once. */
async function captureAll(options: CaptureOptions = {}): Promise<void> {
  await (await openCapture(ledger.pool, { mappings: mappingsOf(), ...options })).captureAll()
}

/** Inserts a row for a changed document, as the trigger does. @returns the row's id */
async function note(id: number | string, db: Pick<pg.Pool, 'query'> = ledger.pool, type = 'order'): Promise<string> {
  const { rows } = await db.query<{ id: string }>(
    `insert into outbox (type, key, payload) values ($3, $1, jsonb_build_object('id', $2::jsonb, 'captured_in', '1')) returning id::text`,
    [String(id), JSON.stringify(id), type],
  )
  return rows[0]?.id ?? ''
}

async function sale(id: number, price = '1.10', state = 'confirmed') {
  await ledger.pool.query('insert into sale values ($1, $2)', [id, state])
  await ledger.pool.query('insert into sale_line (sale, price) values ($1, $2)', [id, price])
}
const setPrice = (id: number, price: string) =>
  ledger.pool.query('update sale_line set price = $2 where sale = $1', [id, price])

/** State, sent total and error of each submission, in the order of the rows. */
async function submissions(): Promise<(string | null)[][]> {
  const { rows } = await ledger.pool.query(
    `select state, body::json ->> 'total' as total, error from outboxd.submission order by outbox_id::int`,
  )
  return rows.map(({ state, total, error }) => [state, total, error])
}

async function rowsSay(): Promise<string[]> {
  const { rows } = await ledger.pool.query(`select concat_ws(': ', status, error) as said from outbox order by id`)
  return rows.map(({ said }) => said)
}

test('the content of a document is read with its lines by the query of the mapping file', async () => {
  await sale(5)
  await ledger.pool.query(`insert into sale_line (sale, price) values (5, 1234567890.00)`)
  await note(5)
  await captureAll()
  const { rows } = await ledger.pool.query('select payload, document, key, state from outboxd.submission')
  expect(rows).toEqual([{ payload: '{"id":5,"total":1234567891.10}', document: '5', key: '5', state: 'queued' }])
  expect(await rowsSay()).toEqual(['queued'])
})

test('a document with two types becomes two records, each by its own query, condition and last record', async () => {
  const mappings = new Map([
    ...mappingsOf(),
    [
      'total',
      mappingFrom(`type: total\nendpoint: data\nsource: ${JSON.stringify('select s.id, 7 as total from sale s where s.id = any($1)')}
document: { table: public.sale, key: id, condition: h.id > 4 }
fields: { total: { from: total, type: "decimal(12,2)", required: true } }\nbody: { total: "\${total}" }`),
    ],
  ])
  let total = ''
  for (const id of [4, 5]) {
    await sale(id)
    await note(id)
    total = await note(id, ledger.pool, 'total')
  }
  const capture = () => captureAll({ mappings })
  await capture()
  await setPrice(5, '2.00')
  await note(5)
  await note(5, ledger.pool, 'total')
  await capture()
  expect(await submissions()).toEqual([
    ['queued', '1.10', null],
    ['discarded', null, 'public.sale 4 does not meet the condition'],
    ['queued', '1.10', null],
    ['queued', '7.00', null],
    ['queued', '2.00', null],
    ['discarded', null, `unchanged since outbox:${total}`],
  ])
})

test('a held type does not hold up rows of other types, in the same batch or later', async () => {
  await ledger.pool.query(`insert into outbox (type, payload) select case n % 2 when 0 then 'good' else 'bad' end, jsonb_build_object('id', n)
    from generate_series(1, 40) n`)
  const mappingOf = (type: string, sql: string) =>
    mappingFrom(
      `type: ${type}\nendpoint: data\nsource: ${JSON.stringify(sql)}\nfields: { total: { from: total, type: integer, required: true } }\nbody: { total: "\${total}" }`,
    )
  const mappings = new Map([
    ['good', mappingOf('good', 'select id, id as total from unnest($1::int[]) id')],
    ['bad', mappingOf('bad', 'select id, 1 as total from nowhere where id = any($1)')],
  ])
  const capture = () => captureAll({ mappings })
  await capture()
  await ledger.pool.query(
    `insert into outbox (type, payload) select 'good', jsonb_build_object('id', n) from generate_series(41, 45) n`,
  )
  await capture()
  expect(await submissions()).toHaveLength(25)
  expect(await readProblems(ledger.pool, 10)).toMatchObject([
    { kind: 'source_failing', subject: 'bad', detail: expect.stringContaining('nowhere') },
  ])
  // Its rows are gone: there is nothing to hold.
  await ledger.pool.query(`delete from outbox where type = 'bad'; update outboxd.problem set retry_at = now()`)
  await capture()
  expect(await readProblems(ledger.pool, 10)).toEqual([])
})

describe('row-level security that hides rows from the daemon', () => {
  test.each(['sale', 'sale_line'])('of %s: documents wait, and are not discarded as deleted', async (table) => {
    await sale(5)
    await note(5)
    await createRole(ledger.pool, 'daemon_of_documents')
    await ledger.pool.query(`alter table ${table} enable row level security;
      grant select on sale, sale_line to daemon_of_documents`)
    onTestFinished(async () => {
      await ledger.pool.query(`alter table ${table} disable row level security;
        revoke select on sale, sale_line from daemon_of_documents`)
    })
    const contentsOutbox = new Outbox(asRole('daemon_of_documents'), 'outbox', 1_000_000, ledger.pool)
    await captureAll({ contentsOutbox })
    expect(await submissions()).toEqual([])
    expect(await readProblems(ledger.pool, 10)).toMatchObject([
      {
        ...{ kind: 'source_failing', subject: 'order' },
        detail: expect.stringContaining(`query would be affected by row-level security policy for table "${table}"`),
      },
    ])
  })
})

test('a document that was deleted or does not meet the condition is discarded with the reason', async () => {
  await sale(1, '1', 'draft')
  await ledger.pool.query(`insert into sale values (2, 'confirmed')`)
  await sale(4)
  for (const id of [1, 2, 3, 4]) await note(id)
  await captureAll()
  const reasons = [
    'public.sale 1 does not meet the condition',
    'public.sale 2 does not meet the condition',
    'public.sale 3 was deleted',
  ]
  expect(await submissions()).toEqual([...reasons.map((why) => ['discarded', null, why]), ['queued', '1.10', null]])
  expect(await rowsSay()).toEqual([...reasons.map((why) => `discarded: ${why}`), 'queued'])
  const { rows } = await ledger.pool.query(
    `select from_state, to_state, attempt, cause, message from outboxd.submission_event order by id limit 1`,
  )
  expect(rows).toEqual([
    { from_state: null, to_state: 'discarded', attempt: 0, cause: 'captured', message: reasons[0] },
  ])
})

test('ten waiting rows of a document become one record, and a change that affects nothing sent becomes none', async () => {
  await sale(5)
  const first = await note(5)
  for (let i = 0; i < 9; i++) await note(5)
  await captureAll()
  const unchanged = ['discarded', null, `unchanged since outbox:${first}`]
  expect(await submissions()).toEqual([['queued', '1.10', null], ...Array(9).fill(unchanged)])
  await ledger.pool.query('update sale set seen = 1')
  await note(5)
  await captureAll()
  expect((await submissions()).at(-1)).toEqual(unchanged)
  await setPrice(5, '2')
  const second = await note(5)
  await note(5)
  await captureAll()
  expect((await submissions()).slice(-2)).toEqual([
    ['queued', '2.00', null],
    ['discarded', null, `unchanged since outbox:${second}`],
  ])
})

test('a document that is changed back is sent again', async () => {
  await sale(5)
  for (const price of ['1.10', '2', '1.10']) {
    await setPrice(5, price)
    await note(5)
    await captureAll()
  }
  expect(await submissions()).toEqual([
    ['queued', '1.10', null],
    ['queued', '2.00', null],
    ['queued', '1.10', null],
  ])
})

describe('the same document again, if its last record is', () => {
  const given: Record<State, string> = {
    queued: `error = null`,
    sending: `claim_id = gen_random_uuid(), instance_id = gen_random_uuid()`,
    accepted: `transaction_id = 't', accepted_at = now()`,
    completed: `ended_at = now()`,
    failed: `ended_at = now()`,
    rejected: `ended_at = now()`,
    uncertain: `ended_at = now()`,
    discarded: `ended_at = now()`,
  }
  const isSent = ['failed', 'rejected']
  test.each(Object.entries(given))('%s', async (state, columns) => {
    await sale(5)
    const first = await note(5)
    await captureAll()
    await ledger.pool.query(
      `update outboxd.submission set held = false, due_at = case when $1 = 'queued' then due_at end, state = $1, ${columns}`,
      [state],
    )
    await note(5)
    await captureAll()
    expect((await submissions()).at(-1)).toEqual(
      isSent.includes(state) ? ['queued', '1.10', null] : ['discarded', null, `unchanged since outbox:${first}`],
    )
  })
})

test('a discarded record is passed over: the record before it is compared', async () => {
  await sale(5)
  const first = await note(5)
  await captureAll()
  await setPrice(5, '2')
  await note(5)
  await captureAll()
  await end('rejected', first)
  await discard()
  await setPrice(5, '1.10')
  await note(5)
  await captureAll()
  expect((await submissions()).at(-1)).toEqual(['discarded', null, `unchanged since outbox:${first}`])
})

test('an unchanged document is not sent again if its last record was discarded but may have arrived', async () => {
  await sale(5)
  const first = await note(5)
  await captureAll()
  await end('uncertain')
  await discard()
  await note(5)
  await captureAll()
  expect((await submissions()).at(-1)).toEqual(['discarded', null, `unchanged since outbox:${first}`])
})

/** Ends the records of all rows, or of those after the row `behind`. */
async function end(state: State, behind = '0'): Promise<void> {
  await ledger.pool.query(
    `update outboxd.submission set state = $1, held = false, due_at = null, ended_at = now() where outbox_id::int > $2`,
    [state, behind],
  )
}

/** Discards the rejected and uncertain records, as an operator does. */
async function discard(): Promise<void> {
  const { rows } = await ledger.pool.query(
    `select id, revision, state, key from outboxd.submission where state in ('rejected', 'uncertain')`,
  )
  await discardSeenSubmissions(operator(), rows)
}

const operator = () => ({ ledger: ledger.pool, url: ledger.url, actor: testActor }) as const

/** Erases the record of a row, which has been written back. */
async function erase(outboxId: string): Promise<void> {
  const { rows } = await ledger.pool.query(
    'update outboxd.submission set report_due = false where outbox_id = $1 returning id, revision',
    [outboxId],
  )
  expect(await eraseRecords(operator(), rows)).toHaveLength(1)
}

/** As `recover`, or a capture after a loss of data, stores the record of a row. */
const forgetDigest = (outboxId: string) =>
  ledger.pool.query('update outboxd.submission set request_digest = null where outbox_id = $1', [outboxId])

test('an erased record still tells whether its document has changed', async () => {
  await sale(5)
  const first = await note(5)
  await captureAll()
  await end('completed')
  await erase(first)
  await note(5)
  await captureAll()
  expect((await submissions()).at(-1)).toEqual(['discarded', null, `unchanged since outbox:${first}`])
})

test('a record captured as uncertain and discarded hides the record before it, because it may have arrived', async () => {
  await sale(5)
  const first = await note(5)
  await captureAll()
  await end('completed')
  await setPrice(5, '2')
  const doubtful = await note(5)
  await captureAll()
  await forgetDigest(doubtful)
  await end('uncertain', first)
  await discard()
  await setPrice(5, '1.10')
  await note(5)
  await captureAll()
  expect((await submissions()).at(-1)).toEqual(['queued', '1.10', null])
})

describe('an older version of a document is not sent after a newer one:', () => {
  const polled = `transaction_id = 't-1', attempt = 1`
  const olderIs = {
    accepted: `state = 'accepted', accepted_at = now(), ${polled}`,
    probing: `state = 'sending', probing = true, ${polled}`,
    rejected: `state = 'rejected', ended_at = now()`,
    uncertain: `state = 'uncertain', ended_at = now(), in_doubt = true, attempt = 1`,
  }

  /** Two versions: the older one in `state`, the newer one `newer`. @returns the older one's id and the newer one's row */
  async function versions(state: keyof typeof olderIs, newer: State) {
    await sale(5)
    const first = await note(5)
    await captureAll()
    await ledger.pool.query(`update outboxd.submission set held = false, due_at = null, ${olderIs[state]}`)
    await setPrice(5, '2.20')
    const second = await note(5)
    await captureAll()
    if (newer !== 'queued') await end(newer, first)
    const { rows } = await ledger.pool.query<{ id: string; revision: number }>(
      'select id, revision from outboxd.submission where outbox_id = $1',
      [first],
    )
    const [older] = rows
    if (older === undefined) throw new Error('there is no older version')
    return { older, second }
  }

  const resubmit = async ({ id, revision }: { id: string; revision: number }, probing = false) => {
    const state = probing ? 'sending' : 'accepted'
    const older = submission({ id, key: '5', state, probing, transactionId: 't-1', revision })
    const change = {
      state: 'queued',
      dueInMs: 0,
      polls: 1,
      errorCode: 'E002',
      error: 'failed with E002',
    } as const
    const transition: Transition = {
      submission: older,
      change,
      cause: 'resubmitted',
      message: 'failed with E002',
      poll: null,
      request: null,
    }
    const [judged] = await inTransaction(ledger.pool, (db) => failResubmissionsOfOvertakenDocuments(db, [transition]))
    return judged?.change
  }

  test.each([
    'queued',
    'completed',
    'uncertain',
  ] as const)('if its transaction fails with E002 while the newer version is %s', async (newer) => {
    const { older, second } = await versions('accepted', newer)
    expect(await resubmit(older)).toEqual({
      state: 'failed',
      polls: 1,
      doneMs: null,
      errorCode: 'E002',
      error: `failed with E002; not submitted again, because outbox:${second} has a newer version of the document`,
      mayHaveArrived: false,
    })
  })

  test.each(['failed', 'rejected'] as const)('but it is sent if the newer version %s', async (newer) => {
    const { older } = await versions('accepted', newer)
    expect(await resubmit(older)).toMatchObject({ state: 'queued' })
  })

  const replayOf = {
    type: 'order',
    key: '5',
    resource: 'orders',
    payload: '{}',
    body: '{}',
    amounts: {},
    tracked: true,
    sendsOwnId: false,
  } as const

  test('if an operator replays the older version', async () => {
    const { older, second } = await versions('rejected', 'completed')
    const [found] = await readReplayableSubmissions(ledger.pool, [older])
    expect(found?.newer).toBe(second)
    const replay = { ...replayOf, ...older }
    expect(await queueReplays(operator(), [replay], false)).toEqual([])
    await end('rejected')
    expect(await queueReplays(operator(), [replay], false)).toEqual([older.id])
  })

  test('if an operator replays both versions', async () => {
    const { older, second } = await versions('rejected', 'rejected')
    const { rows } = await ledger.pool.query<{ id: string; revision: number }>(
      'select id, revision from outboxd.submission order by seq',
    )
    const newer = await readNewerVersionsAmong(
      ledger.pool,
      rows.map(({ id }) => id),
    )
    expect([...newer]).toEqual([[older.id, second]])
    const replays = rows.map((row) => ({ ...replayOf, ...row }))
    expect(await queueReplays(operator(), replays, false)).toEqual([rows[1]?.id])
  })

  test.each([
    ['completed and was erased', 'completed', erase],
    ['completed, and its digest is unknown', 'completed', forgetDigest],
    [
      'was uncertain, its digest is unknown, and it was discarded',
      'uncertain',
      async (second: string) => {
        await forgetDigest(second)
        const { rows } = await ledger.pool.query(
          `select id, revision, key from outboxd.submission where outbox_id = $1`,
          [second],
        )
        expect(await discardSeenSubmissions(operator(), rows)).toHaveLength(1)
      },
    ],
  ] as const)('if an operator replays the older version, and the newer one %s', async (_, state, change) => {
    const { older, second } = await versions('rejected', state)
    await change(second)
    const newer = async () => (await readReplayableSubmissions(ledger.pool, [older]))[0]?.newer
    expect(await newer()).toBe(second)
    await ledger.pool.query(
      `update outboxd.submission set report_due = false, ended_at = now() - interval '9 days' where outbox_id = $1`,
      [second],
    )
    await ledger.pool.query(`update outbox set status = 'completed' where id::text = $1`, [second])
    expect(await pruneAll(ledger.pool, { days: 1, payloadDays: null })).toMatchObject({ submissions: 1 })
    expect(await newer()).toBe(second)
  })

  test('if an operator says that the older version did not arrive', async () => {
    const { older } = await versions('uncertain', 'completed')
    expect(await resolveAsNotArrived(operator(), [{ ...older, key: '5' }], false)).toEqual([])
  })

  test('but it is sent then if the newer version waits behind it', async () => {
    const { older } = await versions('uncertain', 'queued')
    expect(await resolveAsNotArrived(operator(), [{ ...older, key: '5' }], false)).toMatchObject([{ keptKey: true }])
    const { rows } = await ledger.pool.query('select state, held from outboxd.submission order by seq')
    expect(rows).toEqual([
      { state: 'queued', held: false },
      { state: 'queued', held: true },
    ])
  })

  test('if a probe finds that its transaction failed, and the newer version has another key', async () => {
    const { older, second } = await versions('probing', 'queued')
    expect(await resubmit(older, true)).toMatchObject({ state: 'queued' })
    await ledger.pool.query(`update outboxd.submission set key = '6', held = false where outbox_id = $1`, [second])
    expect(await resubmit(older, true)).toMatchObject({ state: 'failed' })
  })
})

test('an unchanged document is not sent again after its record was emptied or pruned', async () => {
  await sale(5)
  const first = await note(5)
  await captureAll()
  await ledger.pool.query(
    `update outboxd.submission set state = 'completed', held = false, due_at = null, ended_at = now() - interval '9 days'`,
  )
  const old = { olderThanDays: 1, limit: 10 }
  expect(await removeContentsOfOldSubmissions(ledger.pool, old)).toBe(1)
  const unchanged = ['discarded', null, `unchanged since outbox:${first}`]
  await note(5)
  await captureAll()
  expect((await submissions()).at(-1)).toEqual(unchanged)
  await ledger.pool.query(`update outbox set status = 'completed' where id::text = $1`, [first])
  expect(await pruneAll(ledger.pool, { days: 1, payloadDays: null })).toMatchObject({ submissions: 1 })
  await note(5)
  await captureAll()
  expect((await submissions()).at(-1)).toEqual(unchanged)
  // The ERP sets the row back, whose record was deleted.
  await ledger.pool.query(`update outbox set status = 'new' where id = $1`, [first])
  await captureAll()
  await note(5)
  await captureAll()
  expect((await submissions()).at(-1)).toEqual(unchanged)
  await setPrice(5, '2')
  await note(5)
  await captureAll()
  expect((await submissions()).at(-1)).toEqual(['queued', '2.00', null])
})

test('a record that comes back after pruning does not count as the newest of its document', async () => {
  await sale(5)
  const first = await note(5)
  await captureAll()
  await end('completed')
  await ledger.pool.query(`update outboxd.submission set ended_at = now() - interval '9 days'`)
  await ledger.pool.query(`update outbox set status = 'completed' where id::text = $1`, [first])
  expect(await pruneAll(ledger.pool, { days: 1, payloadDays: null })).toMatchObject({ submissions: 1 })
  await setPrice(5, '2')
  const second = await note(5)
  await captureAll()
  await ledger.pool.query(`update outbox set status = 'new' where id = $1`, [first])
  await captureAll()
  await note(5)
  await captureAll()
  expect((await submissions()).at(-1)).toEqual(['discarded', null, `unchanged since outbox:${second}`])
})

test('only the document for which the condition fails is rejected, with its name', async () => {
  for (let id = 1; id <= 20; id++) {
    await sale(id)
    await note(id)
  }
  await captureAll({ mappings: mappingsOf('1 / (h.id - 7) <> 99') })
  expect((await submissions()).filter(([state]) => state !== 'queued')).toEqual([
    ['rejected', null, 'the condition of public.sale failed for the record 7: division by zero'],
  ])
  const { rows } = await ledger.pool.query(`select type, key from outboxd.submission where state = 'rejected'`)
  expect(rows).toEqual([{ type: 'order', key: '7' }])
})

test('a wrong condition holds up its type', async () => {
  await sale(1)
  await note(1)
  await captureAll({ mappings: mappingsOf('h.nothing') })
  expect(await submissions()).toEqual([])
  expect(await readProblems(ledger.pool, 10)).toMatchObject([
    {
      ...{ kind: 'source_failing', subject: 'order' },
      detail: 'the condition of public.sale fails for all rows (42703: column h.nothing does not exist)',
    },
  ])
})

test('rows of a document that does not map become one record if they are in one batch', async () => {
  const mappings = mappingsOf('true')
  await ledger.pool.query(`insert into sale values (5, 'confirmed')`)
  const first = await note(5)
  await note(5)
  await note(5)
  await captureAll({ mappings })
  const unchanged = ['discarded', null, `unchanged since outbox:${first}`]
  expect(await submissions()).toEqual([['rejected', null, 'total (from total) is null'], unchanged, unchanged])
  await note(5)
  await captureAll({ mappings })
  expect((await submissions()).at(-1)).toEqual(['rejected', null, 'total (from total) is null'])
})

describe('a document that changes while its row is captured', () => {
  test('a change that commits after the content was read is sent by its own row', async () => {
    await sale(5)
    await note(5)
    const erp = await ledger.pool.connect()
    onTestFinished(() => erp.release())
    await erp.query('begin')
    await erp.query(`update sale_line set price = 2 where sale = 5`)
    await note(5, erp)
    // Uncommitted: neither its row nor its content is seen.
    await captureAll()
    expect(await submissions()).toEqual([['queued', '1.10', null]])
    await erp.query('commit')
    await captureAll()
    expect(await submissions()).toEqual([
      ['queued', '1.10', null],
      ['queued', '2.00', null],
    ])
  })

  test('a change that commits before the content is read is in the first record, and its own row is unchanged', async () => {
    await sale(5)
    const first = await note(5)
    let isChanged = false
    await captureAll({
      async beforeContents() {
        if (isChanged) return
        isChanged = true
        await setPrice(5, '2')
        await note(5)
      },
    })
    await captureAll()
    expect(await submissions()).toEqual([
      ['queued', '2.00', null],
      ['discarded', null, `unchanged since outbox:${first}`],
    ])
  })

  test('condition and content are read from the same state of the database', async () => {
    await sale(5)
    await note(5)
    let isChanged = false
    // The document changes after the condition was asked, and before the content is.
    async function change(): Promise<void> {
      isChanged = true
      await ledger.pool.query(`update sale set state = 'draft'; update sale_line set price = 666`)
      await note(5)
    }
    const pool = {
      query: ledger.pool.query.bind(ledger.pool),
      async connect() {
        const client = await ledger.pool.connect()
        return {
          on: client.on.bind(client),
          off: client.off.bind(client),
          release: client.release.bind(client),
          async query(text: string, values?: unknown[]) {
            const result = await client.query(text, values)
            if (text.includes(' as meets') && !isChanged) await change()
            return result
          },
        }
      },
    } as unknown as pg.Pool
    const changing = new Outbox(pool, 'outbox', 1_000_000, ledger.pool)
    await captureAll({ contentsOutbox: changing })
    await captureAll()
    expect(isChanged).toBe(true)
    expect(await submissions()).toEqual([
      ['queued', '1.10', null],
      ['discarded', null, 'public.sale 5 does not meet the condition'],
    ])
  })

  test('after a crash between insert and mark, the content at the next capture is sent once', async () => {
    await sale(5)
    await note(5)
    await ledger.pool.query(`create function meddle() returns trigger language plpgsql as $$
      begin perform pg_terminate_backend(pg_backend_pid()); return null; end $$;
      create trigger meddle after update on outbox for each statement execute function meddle()`)
    await expect(captureAll()).rejects.toThrow('terminat')
    await ledger.pool.query('drop function meddle() cascade')
    expect(await submissions()).toEqual([])
    await setPrice(5, '2')
    await note(5)
    await captureAll()
    expect((await submissions()).map(([state, total]) => [state, total])).toEqual([
      ['queued', '2.00'],
      ['discarded', null],
    ])
    expect((await rowsSay()).map((said) => said.split(':')[0])).toEqual(['queued', 'discarded'])
  })
})

/** A pool whose transactions run as another role. */
const asRole = (role: string) =>
  ({
    query: ledger.pool.query.bind(ledger.pool),
    async connect() {
      const client = await ledger.pool.connect()
      return {
        on: client.on.bind(client),
        off: client.off.bind(client),
        release: client.release.bind(client),
        async query(text: string, values?: unknown[]) {
          const result = await client.query(text, values)
          if (text.includes('row_security')) await client.query(`set local role ${role}`)
          return result
        },
      }
    },
  }) as unknown as pg.Pool
