import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import { beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { lockTrialSubmission } from '../../../src/ledger/breaker.ts'
import { readRequestDemand } from '../../../src/ledger/budget.ts'
import { claimQueuedSubmissions } from '../../../src/ledger/claims.ts'
import { lockDocumentsOf, supersedeOlderVersions } from '../../../src/ledger/documents.ts'
import { discardSeenSubmissions, eraseRecords } from '../../../src/ledger/operator/decisions.ts'
import { readSubmissionDetail } from '../../../src/ledger/operator/readSubmissionDetail.ts'
import { settleRecordsInDoubt } from '../../../src/ledger/operator/recover.ts'
import { queueReplays, readReplayableSubmissions } from '../../../src/ledger/operator/replaySubmissions.ts'
import { resolveAsNotArrived } from '../../../src/ledger/operator/resolveSubmission.ts'
import { writeTransitions } from '../../../src/ledger/outcomes.ts'
import { readProblems } from '../../../src/ledger/problems.ts'
import { removeContentsOfOldSubmissions } from '../../../src/ledger/retention.ts'
import { readDaemonActivity, readLedgerSnapshot } from '../../../src/ledger/snapshot.ts'
import type { Changes } from '../../../src/model/outbox.ts'
import type { State, Transition } from '../../../src/model/submission.ts'
import { Outbox } from '../../../src/outbox/outbox.ts'
import { standardOutboxTable } from '../../../src/outbox/outboxTable.ts'
import { beginTransaction, inTransaction } from '../../../src/postgres/database.ts'
import { isLockTimeout } from '../../../src/postgres/sqlState.ts'
import { mappingFrom } from '../../mapping/mappingOf.ts'
import { createRole } from '../../support/changeCapture.ts'
import { openLedgerForFile, outcomeBatch } from '../../support/ledger.ts'
import { pruneAll } from '../../support/retention.ts'
import { submission } from '../../support/submission.ts'
import { testActor } from '../../support/testActor.ts'
import { type CaptureOptions, openCapture } from './setupCapture.ts'

/** Capture of rows that name a document, whose content is read when the row is captured. */

const ledger = openLedgerForFile()
beforeAll(async () => {
  await ledger.pool.query(`
    create table sale (id int primary key, state text not null, note text, seen int not null default 0);
    create table sale_line (id int generated always as identity primary key, sale int not null references sale, price numeric)`)
})
beforeEach(() => ledger.pool.query('truncate sale, sale_line'))

const confirmed = `h.state = 'confirmed' and exists (select from public.sale_line l where l.sale = h.id) -- with lines`

const uuidKey = 'aaaaaaaa-0000-4000-8000-000000000001'

const query =
  'select s.id, (select sum(price) from sale_line l where l.sale = s.id) as total from sale s where s.id = any($1)'

function mappingsOf(condition = confirmed, body = 'ref: "${submission.id}", total: "${total}"') {
  const document = `document: { table: public.sale, key: id, condition: ${JSON.stringify(condition)} }`
  const fields = 'fields: { total: { from: total, type: "decimal(12,2)", required: true } }'
  const lines = ['type: order', 'endpoint: orders', document, `source: ${JSON.stringify(query)}`, fields]
  return new Map([['order', mappingFrom(`${lines.join('\n')}\nbody: { ${body} }`)]])
}

/** Captures until nothing is left to do at once. */
async function captureAll({
  changes = 'once',
  ...options
}: CaptureOptions & { changes?: Changes } = {}): Promise<void> {
  const outbox = new Outbox(ledger.pool, { ...standardOutboxTable('outbox'), changes }, 1_000_000, ledger.pool)
  await (await openCapture(ledger.pool, { outbox, mappings: mappingsOf(), ...options })).captureAll()
}

/** The price that the document has from now on, its row and its capture. @returns the row's id */
async function changeTo(price: string, options?: Parameters<typeof captureAll>[0]): Promise<string> {
  await setPrice(5, price)
  const row = await note(5)
  await captureAll(options)
  return row
}

/** Inserts a row for a changed document, as the trigger does. @returns the row's id */
async function note(id: unknown, db: Pick<pg.Pool, 'query'> = ledger.pool, type = 'order'): Promise<string> {
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
  const { rows } = await ledger.pool.query('select payload, key, state from outboxd.submission')
  expect(rows).toEqual([{ payload: '{"id":5,"total":1234567891.10}', key: '5', state: 'queued' }])
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
  const changed = await note(5)
  await note(5, ledger.pool, 'total')
  await capture()
  expect(await submissions()).toEqual([
    ['queued', '1.10', null],
    ['discarded', null, 'public.sale 4 does not meet the condition'],
    ['discarded', '1.10', `superseded by outbox:${changed}`],
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

test.each([
  ['a number with and without decimals', 'no numeric(10,2)', '7.5', ['7.50', 7.5, '7.5', '07.500'], 'abc'],
  ['a character with and without blanks', 'no char(8)', 'A-7', ['A-7', 'A-7  ', 'A-7     '], null],
  ['a uuid in capitals', 'no uuid', uuidKey, [uuidKey, uuidKey.toUpperCase()], 'abc'],
  [
    'a key of two columns',
    'tenant int, no char(8)',
    `3', 'A-7`,
    [
      { tenant: 3, no: 'A-7' },
      { tenant: '3', no: 'A-7 ' },
    ],
    null,
  ],
])('spellings of one key name one document: %s', async (_, columns, values, spellings, wrong) => {
  const names = columns.split(', ').map((column) => column.split(' ')[0])
  await ledger.pool.query(
    `drop table if exists paper; create table paper (${columns}, total numeric, primary key (${names}))`,
  )
  await ledger.pool.query(`insert into paper values ('${values}', 1)`)
  const isPair = names.length > 1
  const source = isPair
    ? `select jsonb_build_object('tenant', h.tenant, 'no', h.no::text) as id, h.total from jsonb_populate_recordset(null::paper, $1) k join paper h on h.tenant = k.tenant and h.no = k.no`
    : 'select h.no as id, h.total from paper h where h.no = any($1)'
  const document = `document: { table: public.paper, key: [${names}] }`
  const fields = 'fields: { total: { from: total, type: "decimal(12,2)", required: true } }'
  const file = `type: order\nendpoint: orders\n${document}\nsource: ${JSON.stringify(source)}\n${fields}\nbody: { total: "\${total}" }`
  const mappings = new Map([['order', mappingFrom(file)]])
  const rows: string[] = []
  for (const id of [...spellings, ...(wrong === null ? [] : [wrong])]) rows.push(await note(id))
  await captureAll({ mappings })
  const unchanged = ['discarded', null, `unchanged since outbox:${rows[0]}`]
  const all = await submissions()
  expect(all.slice(0, spellings.length)).toEqual([['queued', '1.00', null], ...spellings.slice(1).map(() => unchanged)])
  expect(all.slice(spellings.length).map(([state]) => state)).toEqual(wrong === null ? [] : ['rejected'])

  // It is known by any spelling after it was deleted, too.
  await ledger.pool.query(
    `update outboxd.submission set state = 'completed', due_at = null, ended_at = now() where state = 'queued'; delete from paper`,
  )
  for (const id of spellings) await note(id)
  await captureAll({ mappings })
  const [gone, ...again] = (await submissions()).slice(all.length)
  expect(gone).toEqual([
    'rejected',
    null,
    expect.stringMatching(`^changed after it was sent as outbox:${rows[0]}: public.paper .* was deleted$`),
  ])
  for (const each of again) expect(each).toEqual(['discarded', null, expect.stringContaining('unchanged since')])
})

test('a key that the domain of its column refuses names no document, and others of its type are captured', async () => {
  await ledger.pool.query(
    `create domain paper_no as text check (value ~ '^[A-Z]-[0-9]+$'); create table numbered (no paper_no primary key, total numeric)`,
  )
  await ledger.pool.query(`insert into numbered values ('A-7', 1)`)
  const source = 'select h.no as id, h.total from numbered h where h.no = any($1)'
  const fields = 'fields: { total: { from: total, type: "decimal(12,2)", required: true } }'
  const file = `type: order\nendpoint: orders\ndocument: { table: public.numbered, key: [no] }\nsource: ${source}\n${fields}\nbody: { total: "\${total}" }`
  for (const id of ['A-7', 'x']) await note(id)
  await captureAll({ mappings: new Map([['order', mappingFrom(file)]]) })
  expect((await submissions()).map(([state, total]) => [state, total])).toEqual([
    ['queued', '1.00'],
    ['discarded', null],
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
    discarded: `ended_at = now(), may_have_arrived = true`,
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
    const second = await note(5)
    await captureAll()
    expect((await submissions()).map(([is, , error]) => [is, error])).toEqual(
      isSent.includes(state)
        ? [
            ['discarded', `superseded by outbox:${second}`],
            ['queued', null],
          ]
        : [
            [state, null],
            ['discarded', `unchanged since outbox:${first}`],
          ],
    )
  })
})

describe('versions that were not sent', () => {
  test('are superseded by the newest, which is sent', async () => {
    await sale(5)
    await note(5)
    await captureAll()
    const second = await changeTo('2')
    const third = await changeTo('1.10')
    expect(await submissions()).toEqual([
      ['discarded', '1.10', `superseded by outbox:${second}`],
      ['discarded', '2.00', `superseded by outbox:${third}`],
      ['queued', '1.10', null],
    ])
    const { rows } = await ledger.pool.query(
      `select from_state, to_state, cause, message, actor, who, s.report_due from outboxd.submission_event e
         join outboxd.submission s on s.id = e.submission_id where cause = 'superseded' order by e.id limit 1`,
    )
    expect(rows).toEqual([
      {
        ...{
          from_state: 'queued',
          to_state: 'discarded',
          cause: 'superseded',
          message: `superseded by outbox:${second}`,
        },
        ...{ actor: 'outboxd', who: 'test', report_due: true },
      },
    ])
  })

  test('wait behind an uncertain one: only the newest is left of them', async () => {
    await sale(5)
    const first = await note(5)
    await captureAll({ changes: 'each' })
    await end('uncertain')
    const second = await changeTo('2', { changes: 'each' })
    const third = await changeTo('3', { changes: 'each' })
    expect(await submissions()).toEqual([
      ['uncertain', '1.10', null],
      ['discarded', '2.00', `superseded by outbox:${third}`],
      ['queued', '3.00', null],
    ])
    expect(await held()).toEqual([third])
    expect([first, second]).toHaveLength(2)
  })

  test('need no attention once a later version is captured, sent or not', async () => {
    await sale(5)
    await note(5)
    await captureAll()
    await end('rejected')
    const second = await changeTo('2')
    await end('failed', String(Number(second) - 1))
    await ledger.pool.query(`update sale set state = 'draft'`)
    const third = await note(5)
    await captureAll()
    expect((await submissions()).map(([state, , error]) => [state, error])).toEqual([
      ['discarded', `superseded by outbox:${second}`],
      ['discarded', `superseded by outbox:${third}`],
      ['discarded', 'public.sale 5 does not meet the condition'],
    ])
  })

  test('let the next record of their key go', async () => {
    await sale(5)
    const first = await note(5)
    await captureAll()
    await ledger.pool.query(`insert into outbox (type, key, payload) values ('plain', '5', '{"total": 1}')`)
    const plain = mappingFrom(
      'type: plain\nendpoint: data\nfields: { total: { from: total, type: integer, required: true } }\nbody: { total: "${total}" }',
    )
    const mappings = new Map([...mappingsOf(), ['plain', plain]])
    await captureAll({ mappings })
    const waiting = await held()
    await ledger.pool.query(`update sale set state = 'draft'`)
    await note(5)
    await captureAll({ mappings })
    expect(waiting).toHaveLength(1)
    expect(await held()).toEqual([])
    expect((await submissions()).map(([state]) => state)).toEqual(['discarded', 'queued', 'discarded'])
    expect(first).toBeTruthy()
  })

  test('are not superseded while a request of theirs may be on the way', async () => {
    await sale(5)
    await note(5)
    await captureAll()
    await ledger.pool.query('update outboxd.submission set attempt = 1, answered_unavailable = true') // by a 503
    await changeTo('2')
    expect((await submissions()).map(([state]) => state)).toEqual(['queued', 'rejected'])
  })

  test('cannot be discarded while the document is as they have it, because a later row may rely on that', async () => {
    await sale(5)
    await note(5)
    await captureAll()
    await ledger.pool.query('update outboxd.submission set attempt = 1, answered_unavailable = true') // by a 503
    const read = async () =>
      (
        await ledger.pool.query<{ id: string; revision: number; key: string }>(
          `select id, revision, key from outboxd.submission where state = 'queued'`,
        )
      ).rows
    const states = async () => (await submissions()).map(([state]) => state)
    expect(await discardSeenSubmissions(operator(), await read())).toEqual([])
    await ledger.pool.query(`update sale set state = 'cancelled'`)
    await note(5)
    await captureAll()
    await ledger.pool.query(`update sale set state = 'confirmed'`)
    await note(5)
    await captureAll()
    expect(await states()).toEqual(['queued', 'discarded', 'discarded'])
    expect(await discardSeenSubmissions(operator(), await read())).toEqual([])
    await ledger.pool.query(`update sale set state = 'cancelled'`)
    await note(5)
    await captureAll()
    expect(await discardSeenSubmissions(operator(), await read())).toHaveLength(1)
    expect(await states()).toEqual(['discarded', 'discarded', 'discarded', 'rejected'])
  })

  test('count as little after `recover` if they had no request', async () => {
    await sale(5)
    const first = await note(5)
    await captureAll()
    await end('completed')
    for (const state of ['cancelled', 'confirmed']) {
      await ledger.pool.query('update sale set state = $1', [state])
      await note(5)
      await captureAll()
    }
    await inTransaction(ledger.pool, (db) => settleRecordsInDoubt(db, testActor))
    await note(5)
    await captureAll()
    expect((await submissions()).at(-1)?.[2]).toBe(`unchanged since outbox:${first}`)
  })

  test('are superseded if their request certainly did not arrive, such as one that no connection took', async () => {
    await sale(5)
    await note(5)
    await captureAll()
    await ledger.pool.query('update outboxd.submission set attempt = 1')
    await changeTo('2')
    expect((await submissions()).map(([state]) => state)).toEqual(['discarded', 'queued'])
  })
})

describe('a document that changes after it was sent', () => {
  async function sent() {
    await sale(5)
    const first = await note(5)
    await captureAll()
    await end('completed')
    return first
  }
  const listed = async () =>
    (
      await ledger.pool.query(
        `select outbox_id as row, state, error, may_have_arrived as "mayHaveArrived" from outboxd.submission where changed_after_sent`,
      )
    ).rows
  const counted = async () => (await readLedgerSnapshot(ledger.pool)).changedAfterSent

  test('with `changes: once` it is listed for a person, and not sent', async () => {
    const first = await sent()
    const second = await changeTo('2')
    const error = `changed after it was sent as outbox:${first}`
    expect(await listed()).toEqual([{ row: second, state: 'rejected', error, mayHaveArrived: true }])
    expect(await counted()).toBe(1)
    expect(await rowsSay()).toEqual(['queued', `rejected: ${error}`])
    const third = await changeTo('3')
    expect((await listed()).map(({ row }) => row)).toEqual([third])
    expect((await submissions())[1]).toEqual(['discarded', '2.00', `superseded by outbox:${third}`])
  })

  test.each([
    ['is deleted', 'delete from sale_line; delete from sale', 'public.sale 5 was deleted'],
    ['is cancelled', `update sale set state = 'cancelled'`, 'public.sale 5 does not meet the condition'],
  ])('if it %s, it is listed with either setting, once', async (_, statement, why) => {
    for (const changes of ['once', 'each'] as const) {
      await ledger.reset()
      await ledger.pool.query('truncate sale, sale_line')
      const first = await sent()
      await ledger.pool.query(statement)
      for (let i = 0; i < 2; i++) {
        await note(5)
        await captureAll({ changes })
      }
      expect((await listed()).map(({ error }) => error)).toEqual([
        `changed after it was sent as outbox:${first}: ${why}`,
      ])
    }
  })

  test('if it is again as it was sent, nothing is listed any more', async () => {
    const first = await sent()
    await changeTo('2')
    await changeTo('1.10')
    expect(await listed()).toEqual([])
    expect((await submissions()).at(-1)).toEqual(['discarded', null, `unchanged since outbox:${first}`])
  })

  test('a change whose former version did not arrive is sent when it comes again, although it was discarded', async () => {
    await sale(5)
    await note(5)
    await captureAll()
    await ledger.pool.query(
      `update outboxd.submission set state = 'sending', due_at = null, claim_id = gen_random_uuid(), instance_id = gen_random_uuid()`,
    )
    const second = await changeTo('2')
    expect((await listed()).map(({ row }) => row)).toEqual([second])
    await ledger.pool.query(
      `update outboxd.submission set state = 'rejected', claim_id = null, instance_id = null, ended_at = now() where state = 'sending'`,
    )
    await discard()
    await note(5)
    await captureAll()
    expect((await submissions()).at(-1)).toEqual(['queued', '2.00', null])
  })

  test('after an operator discarded the change, only another change is listed', async () => {
    await sent()
    const second = await changeTo('2')
    await discard()
    expect(await counted()).toBe(0)
    await note(5)
    await captureAll()
    expect((await submissions()).at(-1)).toEqual(['discarded', null, `unchanged since outbox:${second}`])
    const third = await changeTo('1.10')
    expect((await listed()).map(({ row }) => row)).toEqual([third])
  })

  test('an operator may send the change, too; it counts as sent from then on', async () => {
    await sent()
    const second = await changeTo('2')
    const { rows } = await ledger.pool.query('select id, revision from outboxd.submission where outbox_id = $1', [
      second,
    ])
    expect(await queueReplays(operator(), [{ ...replayOf, ...rows[0], body: '{"total":2.00}' }], false)).toHaveLength(1)
    expect(await counted()).toBe(0)
    await changeTo('3')
    expect((await listed()).map(({ error }) => error)).toEqual([`changed after it was sent as outbox:${second}`])
  })

  test('with `changes: each` each version is sent', async () => {
    const first = await sent()
    await changeTo('2', { changes: 'each' })
    await end('completed', first)
    await changeTo('1.10', { changes: 'each' })
    expect(await submissions()).toEqual([
      ['completed', '1.10', null],
      ['completed', '2.00', null],
      ['queued', '1.10', null],
    ])
    expect(await counted()).toBe(0)
  })

  test('an uncertain version counts as sent', async () => {
    const first = await sent()
    await end('uncertain')
    await changeTo('2')
    expect((await listed()).map(({ error }) => error)).toEqual([`changed after it was sent as outbox:${first}`])
  })

  test('a version that failed or was rejected does not count as sent', async () => {
    await sale(5)
    await note(5)
    await captureAll()
    await end('failed')
    await changeTo('2')
    expect(await listed()).toEqual([])
    expect((await submissions()).at(-1)).toEqual(['queued', '2.00', null])
  })
})

describe('two transactions that change different lines, with two daemons', () => {
  test.each([
    'in the order of their rows',
    'in the other order',
  ])('that commit %s: both changes arrive', async (order) => {
    await sale(5, '1')
    await ledger.pool.query('insert into sale_line (sale, price) values (5, 10)')
    const sessions = await Promise.all([ledger.pool.connect(), ledger.pool.connect()])
    onTestFinished(() => {
      for (const session of sessions) session.release()
    })
    for (const [i, session] of sessions.entries()) {
      await session.query('begin')
      await session.query('update sale_line set price = price + $1 where price = $2', [i + 1, i === 0 ? 1 : 10])
      await note(5, session)
    }
    for (const session of order === 'in the other order' ? sessions.toReversed() : sessions) {
      await session.query('commit')
      await Promise.all([captureAll({ changes: 'each' }), captureAll({ changes: 'each' })])
    }
    const totals = (await submissions()).filter(([state]) => state !== 'discarded').map(([, total]) => total)
    expect(totals).toEqual(['14.00'])
  })
})

/** The rows whose records wait for an earlier record of their key. */
async function held(): Promise<string[]> {
  const { rows } = await ledger.pool.query('select outbox_id as id from outboxd.submission where held order by seq')
  return rows.map(({ id }) => id)
}

test('a record that an operator gave up is passed over: the record before it is compared', async () => {
  await sale(5)
  const first = await note(5)
  await captureAll({ changes: 'each' })
  await end('completed')
  await changeTo('2', { changes: 'each' })
  await end('rejected', first)
  await discard()
  await changeTo('1.10', { changes: 'each' })
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
  await captureAll({ changes: 'each' })
  await end('completed')
  const doubtful = await changeTo('2', { changes: 'each' })
  await forgetDigest(doubtful)
  await end('uncertain', first)
  await discard()
  await changeTo('1.10', { changes: 'each' })
  expect((await submissions()).at(-1)).toEqual(['queued', '1.10', null])
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

describe('an older version of a document is not sent after a newer one:', () => {
  const polled = `transaction_id = 't-1', attempt = 1`
  const olderIs = {
    accepted: `state = 'accepted', accepted_at = now(), ${polled}`,
    probing: `state = 'sending', probing = true, ${polled}`,
    uncertain: `state = 'uncertain', ended_at = now(), in_doubt = true, attempt = 1`,
  }

  /** Two versions: the older one in `state`, the newer one `newer`. @returns the older one and the newer one's row */
  async function versions(state: keyof typeof olderIs, newer: State, changes: Changes = 'each') {
    await sale(5)
    const first = await note(5)
    await captureAll({ changes })
    await ledger.pool.query(`update outboxd.submission set held = false, due_at = null, ${olderIs[state]}`)
    const second = await changeTo('2.20', { changes })
    if (newer !== 'queued' && changes === 'each') await end(newer, first)
    const { rows } = await ledger.pool.query<{ id: string; revision: number }>(
      'select id, revision from outboxd.submission where outbox_id = $1',
      [first],
    )
    const [older] = rows
    if (older === undefined) throw new Error('there is no older version')
    return { older, first, second }
  }

  const resubmitted = {
    state: 'queued',
    dueInMs: 0,
    polls: 1,
    resubmissions: 1,
    errorCode: 'E002',
    error: 'failed with E002',
  } as const
  const hadNotArrived = { state: 'queued', dueInMs: 0, polls: 1, transactionId: null } as const
  const failed = { state: 'failed', doneMs: null, errorCode: 'X', error: 'no', mayHaveArrived: false } as const

  const judge = async (
    { id, revision }: { id: string; revision: number },
    change: Transition['change'] = resubmitted,
    probing = false,
  ) => {
    const state = probing ? 'sending' : 'accepted'
    const older = submission({ id, key: '5', state, probing, transactionId: 't-1', revision })
    const transition: Transition = {
      submission: older,
      change,
      cause: 'resubmitted',
      message: 'failed with E002',
      poll: null,
      request: null,
    }
    const [judged] = await inTransaction(ledger.pool, (db) => supersedeOlderVersions(db, [transition]))
    return judged?.change
  }

  const waitingKeys = async () => {
    const claim = { id: randomUUID(), instanceId: randomUUID(), limit: 9, who: 'test' }
    return (await claimQueuedSubmissions(ledger.pool, claim)).map(({ key }) => key)
  }

  test.each([
    ['6', `state = 'queued', due_at = now() + interval '1 h', answered_unavailable = true, attempt = 1`],
    [
      '6',
      `state = 'sending', due_at = null, claim_id = gen_random_uuid(), instance_id = gen_random_uuid(), attempt = 1`,
    ],
    [null, `state = 'queued', due_at = now() + interval '1 h', answered_unavailable = true, attempt = 1`],
  ])('also if its key has become %s and the older one is %s', async (key, columns) => {
    await sale(5)
    const first = await note(5)
    await captureAll({ changes: 'each' })
    await ledger.pool.query(`update outboxd.submission set held = false, ${columns}`)
    await changeTo('2.20', { changes: 'each' })
    // As the ERP's key is captured.
    await ledger.pool.query('update outboxd.submission set key = $2, held = false where outbox_id <> $1', [first, key])
    expect((await readRequestDemand(ledger.pool, 9)).submissionsReady).toBe(0)
    const { firstDueMs } = await readDaemonActivity(ledger.pool)
    expect(firstDueMs ?? Number.POSITIVE_INFINITY).toBeGreaterThan(Date.now() + 600_000)
    const { rows } = await ledger.pool.query('select id from outboxd.submission where outbox_id <> $1', [first])
    const detail = await readSubmissionDetail(ledger.pool, rows[0].id)
    expect(detail?.blocker).toMatchObject({ outboxId: first, isOwnVersion: true })
    expect(await inTransaction(ledger.pool, (db) => lockTrialSubmission(db, null))).toBe(null)
    expect(await waitingKeys()).toEqual([])
    await ledger.pool.query(
      `update outboxd.submission set state = 'accepted', due_at = null, claim_id = null, instance_id = null,
         transaction_id = 't', accepted_at = now() where outbox_id = $1`,
      [first],
    )
    expect((await readRequestDemand(ledger.pool, 9)).submissionsReady).toBe(1)
    expect(await waitingKeys()).toEqual([key])
  })

  test.each([
    ['failed with E002 or E003', resubmitted, false],
    ['had not arrived, by the service', hadNotArrived, true],
  ])('but one whose request %s is sent if the ERP returns to it before the newer version', async (_, change, probing) => {
    const { older } = await versions(probing ? 'probing' : 'accepted', 'queued')
    const step = { change, cause: 'resubmitted', message: null, poll: null } as const
    const state = probing ? 'sending' : 'accepted'
    const doubt = { transactionId: 't-1', inDoubt: probing }
    const before = submission({ ...older, ...doubt, key: '5', state, probing, claimId: null })
    await inTransaction(ledger.pool, async (db) => {
      const judged = await supersedeOlderVersions(db, [{ submission: before, ...step, request: null }])
      await writeTransitions(db, judged, 'test')
    })
    await changeTo('1.10', { changes: 'each' })
    expect((await submissions()).map(([is, total]) => [is, total])).toEqual([
      ['discarded', '1.10'],
      ['discarded', '2.20'],
      ['queued', '1.10'],
    ])
  })

  test.each([
    'queued',
    'completed',
    'uncertain',
    'rejected',
  ] as const)('if its transaction fails with E002 while the newer version is %s', async (newer) => {
    const { older, second } = await versions('accepted', newer)
    expect(await judge(older)).toEqual({
      state: 'discarded',
      polls: 1,
      errorCode: 'E002',
      error: `failed with E002; superseded by outbox:${second}`,
      mayHaveArrived: true,
    })
    expect(await judge(older, failed)).toMatchObject({ state: 'discarded', errorCode: 'X' })
    expect(await judge(older, hadNotArrived, true)).toMatchObject({
      state: 'discarded',
      transactionId: null,
      mayHaveArrived: false,
    })
  })

  test('but it is submitted again if the newer version only waits for a person, or was given up', async () => {
    const { older, first } = await versions('accepted', 'queued', 'once')
    expect(await judge(older)).toBe(resubmitted)
    await ledger.pool.query('update outboxd.submission set changed_after_sent = false, may_have_arrived = false')
    expect(await judge(older)).toMatchObject({ state: 'discarded' })
    await end('discarded', first)
    expect(await judge(older)).toBe(resubmitted)
  })

  test('but it stays failed if an operator has discarded the change that was listed, which was never sent', async () => {
    const { older, second } = await versions('accepted', 'queued', 'once')
    const { rows } = await ledger.pool.query<{ id: string; revision: number; key: string }>(
      'select id, revision, key from outboxd.submission where outbox_id = $1',
      [second],
    )
    expect(await discardSeenSubmissions(operator(), rows)).toHaveLength(1)
    expect(await judge(older, failed)).toBe(failed)
  })

  test('if an operator replays the older version', async () => {
    const { older, first, second } = await versions('accepted', 'completed')
    await ledger.pool.query(`update outboxd.submission set state = 'failed', ended_at = now() where outbox_id = $1`, [
      first,
    ])
    const [found] = await readReplayableSubmissions(ledger.pool, [older])
    expect(found?.newer?.outboxId).toBe(second)
    expect(await queueReplays(operator(), [{ ...replayOf, ...older }], false)).toEqual([])
  })

  test('if it is captured, with another key, while the answer is written that has the older one sent again', async () => {
    await sale(5)
    await note(5)
    await captureAll({ changes: 'each' })
    await ledger.pool.query(`update outboxd.submission set held = false, due_at = null, key = '6', ${olderIs.accepted}`)
    const { rows } = await ledger.pool.query<{ id: string; revision: number }>(
      'select id, revision from outboxd.submission',
    )
    const older = submission({ ...rows[0], key: '6', state: 'accepted', transactionId: 't-1', claimId: null })
    const step = { change: resubmitted, cause: 'resubmitted', message: null, poll: null, request: null } as const
    const write = async () =>
      (await ledger.dispatch().writeOutcomes(outcomeBatch({ transitions: [{ submission: older, ...step }] }))).written

    await using capture = await beginTransaction(ledger.pool)
    await lockDocumentsOf(capture.db, [older.id])
    await expect(write()).rejects.toSatisfy(isLockTimeout)
    await capture.commit()
    await changeTo('2.20', { changes: 'each' })
    expect(await write()).toHaveLength(1)
    expect((await submissions()).map(([state]) => state)).toEqual(['discarded', 'queued'])
  })

  test('if an operator replays both versions', async () => {
    const { first } = await versions('accepted', 'rejected')
    await ledger.pool.query(`update outboxd.submission set state = 'failed', ended_at = now() where outbox_id = $1`, [
      first,
    ])
    const { rows } = await ledger.pool.query<{ id: string; revision: number }>(
      'select id, revision from outboxd.submission order by seq',
    )
    const replays = rows.map((row) => ({ ...replayOf, ...row }))
    expect(await queueReplays(operator(), replays, false)).toEqual([rows[1]?.id])
  })

  test.each([
    ['completed and was erased', 'completed', erase],
    ['completed, and nobody knows with which content', 'completed', forgetDigest],
    [
      'was uncertain and discarded',
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
  ] as const)('also after the newer one %s, and after it was pruned', async (_, state, change) => {
    const { older, first, second } = await versions('accepted', state)
    await ledger.pool.query(`update outboxd.submission set state = 'failed', ended_at = now() where outbox_id = $1`, [
      first,
    ])
    await change(second)
    const newer = async () => (await readReplayableSubmissions(ledger.pool, [older]))[0]?.newer?.outboxId
    expect(await newer()).toBe(second)
    await ledger.pool.query(
      `update outboxd.submission set report_due = false, ended_at = now() - interval '9 days' where outbox_id = $1`,
      [second],
    )
    await ledger.pool.query(`update outbox set status = 'completed' where id::text = $1`, [second])
    expect(await pruneAll(ledger.pool, { days: 1, payloadDays: null })).toMatchObject({ submissions: 1 })
    expect(await newer()).toBe(second)
  })

  test.each([
    'completed',
    'queued',
  ] as const)('if an operator says that it did not arrive, and the newer one is %s', async (newer) => {
    const { older } = await versions('uncertain', newer)
    expect(await resolveAsNotArrived(operator(), [{ ...older, key: '5' }], false)).toEqual([])
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
  await changeTo('2')
  expect((await submissions()).at(-1)).toEqual(['rejected', '2.00', `changed after it was sent as outbox:${first}`])
  await changeTo('3', { changes: 'each' })
  expect((await submissions()).at(-1)).toEqual(['queued', '3.00', null])
})

test('a record that comes back after pruning does not count as the newest of its document', async () => {
  await sale(5)
  const first = await note(5)
  await captureAll()
  await end('completed')
  await ledger.pool.query(`update outboxd.submission set ended_at = now() - interval '9 days'`)
  await ledger.pool.query(`update outbox set status = 'completed' where id::text = $1`, [first])
  expect(await pruneAll(ledger.pool, { days: 1, payloadDays: null })).toMatchObject({ submissions: 1 })
  const second = await changeTo('2', { changes: 'each' })
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
    expect((await submissions()).map(([state, total]) => [state, total])).toEqual([
      ['discarded', '1.10'],
      ['queued', '2.00'],
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
    const pool = poolWith(async (client, text, values) => {
      const result = await client.query(text, values)
      if (text.includes(' as meets') && !isChanged) await change()
      return result
    })
    const changing = new Outbox(pool, 'outbox', 1_000_000, ledger.pool)
    await captureAll({ contentsOutbox: changing })
    await captureAll()
    expect(isChanged).toBe(true)
    expect((await submissions()).map(([state, total]) => [state, total])).toEqual([
      ['discarded', '1.10'],
      ['discarded', null],
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

/** The ledger's pool, whose sessions run `query` in place of a query. */
const poolWith = (query: (client: pg.PoolClient, text: string, values?: unknown[]) => Promise<unknown>) =>
  ({
    query: ledger.pool.query.bind(ledger.pool),
    async connect() {
      const client = await ledger.pool.connect()
      return {
        on: client.on.bind(client),
        off: client.off.bind(client),
        release: client.release.bind(client),
        query: (text: string, values?: unknown[]) => query(client, text, values),
      }
    },
  }) as unknown as pg.Pool

/** A pool whose transactions run as another role. */
const asRole = (role: string) =>
  poolWith(async (client, text, values) => {
    const result = await client.query(text, values)
    if (text.includes('row_security')) await client.query(`set local role ${role}`)
    return result
  })
