import { afterAll, beforeAll, expect, test } from 'vitest'
import { checkIndexOfWaitingRows } from '../../../src/commands/check/waitingIndex.ts'
import { parseOutboxFile } from '../../../src/outbox/readOutboxFile.ts'
import { createDatabase } from '../../support/database.ts'

let database: Awaited<ReturnType<typeof createDatabase>>
beforeAll(async () => {
  database = await createDatabase('template0')
})
afterAll(() => database[Symbol.asyncDispose]())

let made = 0

/** @param index what an index is on; null for no index */
async function toldOf(state: string, index: string | null): Promise<string[]> {
  made += 1
  await database.pool.query(
    `create table "T${made}" (id int primary key, done boolean, "Sent" timestamptz, status text)`,
  )
  if (index !== null) await database.pool.query(`create index on "T${made}" ${index}`)
  const { table } = parseOutboxFile('outbox.yaml', `table: T${made}\nid: id\ntype: { constant: t }\nstate: ${state}`)
  if (table === null) throw new Error('outbox.yaml was not read')
  const findings = await checkIndexOfWaitingRows(database.pool, table)
  return findings.map(({ what, mark, message }) => `${mark} ${what}: ${message}`)
}

const timestamp = '{ timestamp: Sent, set: [completed] }'

test.each([
  [timestamp, '"Sent" is null'],
  ['{ flag: done, new: [false, null], set: [queued] }', "(done = 'false' or done is null)"],
  ['{ status: status, new: [open, again], queued: busy }', "(status in ('open', 'again'))"],
])('without an index of the rows that wait by %s, the statement that creates one is named', async (state, condition) => {
  const statement = (): string => `create index concurrently on "public"."T${made}" (id) where ${condition}`
  expect(await toldOf(state, null)).toEqual([
    `warning index: no index finds the rows that wait, so each search for them reads the whole table: ${statement()}`,
  ])
  await database.pool.query(statement())
  expect(await toldOf(state, '(id)')).toHaveLength(1)
  expect(await toldOf(state, '(id, "Sent", done, status)')).toHaveLength(1)
})

test.each(['(id) where "Sent" is null', '("Sent")', '("Sent", id)'])('an index on %s finds them', async (index) => {
  expect(await toldOf(timestamp, index)).toEqual([])
})

test('a table in which nothing says that a row waits needs no index', async () => {
  expect(await toldOf('none', null)).toEqual([])
})
