import { expect, test } from 'vitest'
import { assertSequencesAreAhead, findSequencesBehindTables } from '../../src/ledger/migrations.ts'
import { openLedger } from '../support/ledger.ts'
import { openForFile } from '../support/openForFile.ts'

const ledger = openForFile(openLedger)

test('sequences that start anew, as after logical replication, stop a daemon; check’s statements set them', async () => {
  await ledger.capture([{}, {}])
  await ledger.pool.query(
    `select setval('outboxd.submission_event_id_seq', 1, false), setval('outboxd.submission_seq_seq', 1, false)`,
  )
  await expect(assertSequencesAreAhead(ledger.pool, ledger.url)).rejects.toThrow(
    'its sequences would give out numbers that its tables already have',
  )
  for (const statement of await findSequencesBehindTables(ledger.pool)) await ledger.pool.query(statement)
  await assertSequencesAreAhead(ledger.pool, ledger.url)
  await ledger.capture([{}])
  expect((await ledger.pool.query('select max(seq)::int as last from outboxd.submission')).rows).toEqual([{ last: 3 }])
})

test('the schema has at most 20 tables, views and functions', async () => {
  const { rows } = await ledger.pool.query<{ name: string }>(
    `select relname as name from pg_class
     where relnamespace = 'outboxd'::regnamespace and relkind in ('r', 'p', 'v', 'm', 'f')
     union all select proname from pg_proc where pronamespace = 'outboxd'::regnamespace order by name`,
  )
  const names = rows.map(({ name }) => name)
  expect(names.length, names.join(', ')).toBeLessThanOrEqual(20)
})
