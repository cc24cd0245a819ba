import { beforeAll, beforeEach, expect, test } from 'vitest'
import { command as check } from '../../src/commands/check.ts'
import { command as map } from '../../src/commands/map.ts'
import { command as replay } from '../../src/commands/replay.ts'
import { command as show } from '../../src/commands/show.ts'
import { failedE003, mappingFiles, openFixtureForFile } from '../commands/fixture.ts'

/** Commands on records whose contents a query reads. */

const fixture = openFixtureForFile()
beforeAll(async () => {
  await fixture.ledger.pool.query(`
    create table sale (id int primary key, customer text);
    create table sale_line (sale int, price numeric)`)
})
beforeEach(async () => {
  await fixture.ledger.pool.query(
    `truncate sale, sale_line; insert into sale values (5, 'C1'); insert into sale_line values (5, 1.10), (5, 0.05)`,
  )
})

const query = `select s.id, s.customer, (select sum(price) from sale_line l where l.sale = s.id) as total from sale s where s.id = any($1)`
const env = (sql = query) => ({
  MAPPINGS_DIR: mappingFiles({
    'data.yaml': `type: data\nendpoint: data
document: { table: public.sale, key: id, condition: "h.customer <> 'draft'" }\nsource: ${JSON.stringify(sql)}\nfields:
  customer: { from: customer, type: string, maxLength: 10, required: true }
  total: { from: total, type: "decimal(10,2)", required: true }
body: { customerId: "\${customer}", data: { field1: value1, field2: x, order_date: "2026-11-20T10:00:00Z", total_amount: "\${total}" } }\n`,
  }),
})
const reference = '{"id": 5, "captured_in": "1"}'

test('map shows what the query reads for a row, and the request', async () => {
  const plain = await fixture.row('{"id": 5}')
  const document = await fixture.row(reference)
  for (const row of [plain, document]) {
    const context = fixture.context(null, env())
    expect(await map.action(context, undefined, { outbox: row })).toBe(0)
    expect(context.printed()).toMatch(/total +total +1\.15 +1\.15\n/)
    expect(context.printed()).toContain('"total_amount":1.15')
  }
  await fixture.row('{"id": 6}')
  const all = fixture.context(null, env())
  expect(await map.action(all, undefined, { allNew: true })).toBe(1)
  expect(all.printed()).toContain('2 of 3 records map.')
  expect(all.printed()).toContain('public.sale 6 was deleted')
})

test('map says why nothing is sent for a document', async () => {
  await fixture.ledger.pool.query(`update sale set customer = 'draft'`)
  const row = await fixture.row(reference)
  const context = fixture.context(null, env())
  expect(await map.action(context, undefined, { outbox: row })).toBe(1)
  expect(context.printed()).toContain('nothing is sent for this row: public.sale 5 does not meet the condition')
})

test('an error in a query is reported with its file', async () => {
  const row = await fixture.row('{"id": 5}')
  await expect(
    map.action(fixture.context(null, env('select id from nothing where id = any($1)')), undefined, { outbox: row }),
  ).rejects.toThrow(/data\.yaml: the query of "source" failed: relation "nothing" does not exist/)
})

test('replay --refresh reads through the query, and an unchanged later row of the document is discarded', async () => {
  const row = await fixture.row(reference)
  const id = await fixture.end(failedE003, { outboxId: row, document: '5' })
  const context = fixture.context(null, { ...env(), USER: 'test' })
  expect(await replay.action(context, [id], { refresh: true })).toBe(0)
  const submission = await fixture.ledger.row(id)
  expect(submission).toMatchObject({ state: 'queued', payload: '{"id":5,"customer":"C1","total":1.15}' })
  expect(submission.request_digest).toMatch(/^[0-9a-f]{64}$/)
  await fixture.ledger.capture([{ outboxId: '900', document: '5', body: String(submission.body) }])
  const { rows } = await fixture.ledger.pool.query(
    `select id, state, error from outboxd.submission where outbox_id = '900'`,
  )
  expect(rows).toMatchObject([{ state: 'discarded', error: `unchanged since outbox:${row}` }])
  const shown = fixture.context(null, env())
  expect(await show.action(shown, 'outbox:900', {})).toBe(0)
  expect(shown.printed()).toContain(`discarded: unchanged since outbox:${row}`)
  expect(shown.printed()).toContain('(none: nothing is sent for this record)')
})

test('check plans the queries and runs them for waiting rows', async () => {
  await fixture.row(reference)
  const findings = async (sql?: string) => {
    const context = fixture.context(null, env(sql))
    await check.action(context, { json: true })
    const found: { what: string; ok: boolean; words: string }[] = JSON.parse(context.printed())
    return found.filter(({ what }) => what === 'queries')
  }
  expect(await findings()).toEqual([
    { what: 'queries', ok: true, words: expect.stringMatching(/^1 waiting row read in \d+ ms$/) },
  ])
  expect(await findings('select id from sale where number = any($1)')).toMatchObject([
    { ok: false, words: expect.stringContaining('column "number" does not exist') },
  ])
})
