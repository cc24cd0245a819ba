import { expect, test } from 'vitest'
import { type Setup, setup } from './setup.ts'
import { writeBackRows } from './writeBackRows.ts'

/** outbox.yaml changes while records are open. */

const ddl = `create table source (id bigint generated always as identity primary key, kind text default 'data', customer text default 'c',
  reference text default 'r', extra text default 'x', ordered_at timestamptz default now(), released_at timestamptz default now() + interval '1 day',
  synced_at timestamptz, said text)`
const describe = (lines: string) => `table: source
id: id
state: { timestamp: synced_at, set: [completed] }
write: { said: state }
${lines}`
const plain = 'type: { constant: data }\nkey: customer\npayload: { columns: [customer, reference] }'
const changes = {
  'a column of the payload more': plain.replace('reference]', 'reference, extra]'),
  'a different type': plain.replace('constant: data', 'constant: order'),
  'a different key': plain.replace('key: customer', 'key: reference'),
  'a created_at': `${plain}\ncreated_at: ordered_at`,
}
const timed = `${plain}\ncreated_at: ordered_at`

async function underWay(lines: string, more = ''): Promise<Setup> {
  const given = await setup({ ddl: `${ddl}${more}`, yaml: describe(lines) })
  await given.pool.query('insert into source select from generate_series(1, 2)')
  expect(await given.capture()).toEqual(['1', '2'])
  return given
}

/** Writes the ledger's outcomes back to the rows. */
async function complete({ describedAs, pool }: Setup, lines: string) {
  const { outbox, capture } = describedAs(describe(lines))
  expect(await capture()).toEqual([])
  const { rows } = await pool.query(
    'select outbox_id as "outboxId", row_created as created from outboxd.submission order by 1',
  )
  const outcomes = await writeBackRows(
    outbox,
    rows.map((row) => ({ ...row, state: 'completed' as const, transactionId: 't', errorCode: null, error: null })),
  )
  const said = (await pool.query('select said from source order by id')).rows.map((row) => row.said)
  const problems = (await pool.query('select kind, detail from outboxd.problem')).rows
  return { outcomes, said, problems }
}

const allTold = { outcomes: ['written', 'written'], said: ['completed', 'completed'], problems: [] }

for (const [name, after] of Object.entries(changes)) {
  test(`if outbox.yaml changes while records are open (${name}), rows still get their outcomes`, async () => {
    expect(await complete(await underWay(plain), after)).toEqual(allTold)
  })
}

test('if created_at becomes a different column, rows get their outcomes and are not taken for different rows', async () => {
  expect(await complete(await underWay(timed), timed.replace('ordered_at', 'released_at'))).toEqual(allTold)
})

test('if the ERP changes the type of a column, rows get their outcomes', async () => {
  const given = await underWay(plain)
  await given.pool.query(
    `update source set reference = '7'; alter table source alter reference drop default, alter reference type numeric using reference::numeric`,
  )
  expect(await complete(given, plain)).toMatchObject({ said: ['completed', 'completed'] })
})
