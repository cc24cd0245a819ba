import { readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { command as capture } from '../../../src/commands/capture.ts'
import { command as check } from '../../../src/commands/check.ts'
import { testContext } from '../../support/context.ts'
import { eventually } from '../../support/eventually.ts'
import { statusSays } from '../../support/statusSays.ts'
import { type Installation, install } from '../installation.ts'

/** Rows that start to wait late. */

const files = (more: string) => ({
  'data.yaml': readFileSync('mappings/data.yaml', 'utf8'),
  'outbox.yaml': `
table: so
id: id
type: { constant: data }
payload: payload
start: beginning
${more}
`,
})
const filtered = (filter: string) => files(`state: { timestamp: synced_at, set: [completed] }\nfilter: ${filter}`)
const ddl =
  'create table so (id bigint generated always as identity primary key, status text, payload jsonb, synced_at timestamptz)'
const payload = (field2: string) =>
  `{"customerId": "C1", "orderDate": "2026-11-20T10:00:00+01:00", "amount": 1.50, "field2": "${field2}"}`
const insert = ({ pool }: Installation, status: string, field2: string, rows: number) =>
  pool.query(`insert into so (status, payload) select $1, $2 from generate_series(1, ${rows})`, [
    status,
    payload(field2),
  ])
const arrived = async (given: Installation) =>
  (await given.arrivals()).map((body) => /"field2":"(\w+)"/.exec(body)?.[1]).sort()
const says = ({ url, mappingsDir }: Installation) => statusSays({ DATABASE_URL: url, MAPPINGS_DIR: mappingsDir })

test('`outbox.yaml` includes more rows: each sent once', async () => {
  const given = await install(filtered(`status = 'released'`))
  await given.pool.query(ddl)
  await insert(given, 'draft', 'draft', 3)
  await insert(given, 'released', 'released', 2)
  const stop = await given.startInstance()
  await eventually(async () => expect(await arrived(given)).toEqual(['released', 'released']))
  await eventually(async () => expect(await says(given)).toContain('All is well: everything is sent'))
  await stop()

  const wider = filtered(`status in ('released', 'draft')`)['outbox.yaml']
  await writeFile(join(given.mappingsDir, 'outbox.yaml'), wider)
  const shown = await says(given)
  expect(shown).toContain('3 in the outbox')
  const checked = testContext({ DATABASE_URL: given.url, MAPPINGS_DIR: given.mappingsDir })
  await check.action(checked, {})
  expect(checked.printed()).toContain('3 rows wait; writing each state to row ')
  await given.startInstance()
  await eventually(async () =>
    expect(await arrived(given)).toEqual(['draft', 'draft', 'draft', 'released', 'released']),
  )
  await eventually(async () => expect(await says(given)).toContain('All is well: everything is sent'))
})

test('rows come behind the position: `rows_passed_over`, sent once by `capture`', async () => {
  const given = await install(files('state: none\nsequence: id'))
  await given.pool.query(ddl)
  await insert(given, 'released', 'first', 5)
  await given.pool.query('delete from so where id in (2, 4)')
  const stop = await given.startInstance()
  await eventually(async () => expect(await arrived(given)).toEqual(['first', 'first', 'first']))
  const read = 'select from outboxd.outbox_cursor where position = 5'
  await eventually(async () => expect((await given.pool.query(read)).rowCount).toBe(1))
  await stop()

  await given.pool.query(
    `insert into so (id, payload) overriding system value select id, $1 from generate_series(2, 4, 2) id`,
    [payload('loaded')],
  )
  await given.startInstance()
  await eventually(async () =>
    expect(await says(given)).toMatch(/In the outbox 2 rows lie behind the position.*`outboxd capture` sends them/),
  )
  expect(await arrived(given)).toEqual(['first', 'first', 'first'])
  const context = testContext({ DATABASE_URL: given.url, MAPPINGS_DIR: given.mappingsDir })
  expect(await capture.action(context, { yes: true })).toBe(0)
  expect(context.printed()).toBe('outbox:2\noutbox:4\n')
  await eventually(async () => expect(await arrived(given)).toEqual(['first', 'first', 'first', 'loaded', 'loaded']))
  expect(await capture.action(testContext({ DATABASE_URL: given.url, MAPPINGS_DIR: given.mappingsDir }), {})).toBe(3)
})
