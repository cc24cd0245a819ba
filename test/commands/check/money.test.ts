import { afterAll, beforeAll, expect, test } from 'vitest'
import { checkMoney } from '../../../src/commands/check/money.ts'
import { readMapping } from '../../../src/mapping/readMapping.ts'
import { parseOutboxFile } from '../../../src/outbox/readOutboxFile.ts'
import { createDatabase } from '../../support/database.ts'

let database: Awaited<ReturnType<typeof createDatabase>>
beforeAll(async () => {
  database = await createDatabase('template0')
  await database.pool.query(`create table currency (id int primary key, label text, code text);
    insert into currency values (1, 'Euro', 'EUR'), (2, 'Franken', 'CHF');
    create domain price as double precision;
    create table sale (id int primary key, total numeric(10,2), old real, dear price, worth money, devise char(3), note text,
      currency_id int references currency, synced_at timestamptz);
    insert into sale values (1, 500, 1, 1, 1, 'CHF', 'PEN', 2), (2, 5, 1, 1, 1, 'EUR', 'blue', 1);
    create table event (id int primary key, body jsonb)`)
})
afterAll(() => database[Symbol.asyncDispose]())

interface Given {
  readonly from: string
  /** Further lines of outbox.yaml. */
  readonly outbox: string
  readonly source?: string
  readonly payloads?: readonly string[]
}

/** @returns what `check` says of a mapping whose amount is read from this path */
async function toldOf({ from, outbox, source, payloads = [] }: Given): Promise<string[]> {
  const { mapping, problems } = readMapping(
    'sale.yaml',
    `type: sale\nendpoint: data\n${source === undefined ? '' : `source: ${JSON.stringify(source)}\n`}fields:
  total: { from: ${from}, type: "decimal(10,2)" }\nbody: { total: "\${total}" }`,
  )
  const file = parseOutboxFile('outbox.yaml', `id: id\ntype: { constant: sale }\nstate: none\n${outbox}`)
  expect([...problems, ...file.problems]).toEqual([])
  if (mapping === null || file.table === null) throw new Error('a file was not read')
  const records = payloads.map((payload, i) => ({
    ...{ outboxId: String(i), type: 'sale', key: null, payload, unreadable: null, createdAt: null, created: null },
  }))
  const findings = await checkMoney(database.pool, file.table, new Map([['sale', mapping]]), records)
  expect(findings.every(({ what, mark }) => what === 'money of sale' && mark === 'warning')).toBe(true)
  return findings.flatMap(({ message }) => message.split('\n'))
}

const euros = `filter: devise = 'EUR' and currency_id = 1\n`

test.each([
  ['old', 'real'],
  ['dear', 'double precision'],
  ['worth', 'money'],
])('an amount from a column %s of type %s is not exact', async (column, type) => {
  const told = [expect.stringContaining(`total reads ${column}, which is ${type}. That is not exact`)]
  expect(await toldOf({ from: column, outbox: `table: sale\n${euros}payload: { columns: all }` })).toEqual(told)
  expect(await toldOf({ from: 'x', outbox: `table: sale\n${euros}payload: { columns: { x: ${column} } }` })).toEqual(
    told.map(() => expect.stringContaining(`total reads x, which is ${type}`)),
  )
  const source = `select h.*, h.${column} as x from sale h where id = any($1) -- devise, currency_id`
  expect(await toldOf({ from: 'x', outbox: 'table: event', source })).toEqual([
    expect.stringContaining(`which is ${type}`),
  ])
})

test('a numeric amount whose currency is chosen by the filter is not warned of', async () => {
  expect(await toldOf({ from: 'total', outbox: `table: sale\n${euros}payload: { columns: all }` })).toEqual([])
})

test('columns with currencies that nothing reads are named, by their values and not by their names', async () => {
  const outbox = 'table: sale\npayload: { columns: [id, total] }'
  expect(await toldOf({ from: 'total', outbox })).toEqual([
    expect.stringMatching(/^"devise" has currencies, and neither a field nor the filter nor a query reads it/),
    expect.stringMatching(/^"currency_id" has currencies/),
  ])
  expect(await toldOf({ from: 'total', outbox: `${outbox}\nfilter: devise = 'EUR'` })).toEqual([
    expect.stringMatching(/^"currency_id" has currencies/),
  ])
  const source = `select h.* from sale h where h.id = any($1)`
  expect(await toldOf({ from: 'total', outbox: 'table: event', source })).toHaveLength(2)
  const inEuro = `${source} and h.devise = 'EUR' and h.currency_id = 1`
  expect(await toldOf({ from: 'total', outbox: 'table: event', source: inEuro })).toEqual([])
})

test('a currency in a JSON payload that nothing reads is named', async () => {
  const payloads = ['{"total": 500, "wkz": "CHF", "art": "PEN"}', '{"total": 5, "wkz": "EUR", "art": "RE"}']
  const outbox = 'table: event\npayload: body'
  expect(await toldOf({ from: 'total', outbox, payloads })).toEqual([expect.stringMatching(/^"wkz" has currencies/)])
  expect(await toldOf({ from: 'total', outbox: `${outbox}\nfilter: body->>'wkz' = 'EUR'`, payloads })).toEqual([])
})

test('a query that fails is left to the finding that reports it', async () => {
  expect(
    await toldOf({ from: 'total', outbox: 'table: event', source: 'select nothing from sale where id = any($1)' }),
  ).toEqual([])
})
