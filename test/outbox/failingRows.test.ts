import { afterEach, describe, expect, test, vi } from 'vitest'
import { skipRows } from '../../src/ledger/capture.ts'
import { shortenProblemSubject } from '../../src/ledger/problems.ts'
import { readBacklog } from '../../src/outbox/backlog.ts'
import { mayHaveWaitingRows } from '../../src/outbox/readRows.ts'
import { clearStaleProblems } from '../../src/outbox/survey.ts'
import { setup } from './setup.ts'

/** If the filter raises an error for one row, that row is skipped, and the others go on. */

afterEach(() => void vi.restoreAllMocks())

const ddl = `create table source (id bigint primary key, key text, note text, payload jsonb default '{}', taken boolean default false, done_at timestamptz)`
const table = `table: source\nid: id\ntype: { constant: data }\nkey: key\npayload: payload\nfilter: (note::int) > 0\n`
const forms = {
  'rows with a mark': 'state: { flag: taken, set: [queued] }',
  'end only': 'state: { timestamp: done_at, set: [completed] }',
}
const insert = (id: number, key: string | null, note: string) =>
  `insert into source (id, key, note) values (${id}, ${key && `'${key}'`}, '${note}')`
const skipped = `select kind, subject from outboxd.problem order by subject`

for (const [name, state] of Object.entries(forms)) {
  test(`${name}: a row for which the filter fails is reported and holds back only later rows of its key`, async () => {
    const { pool, capture, outbox } = await setup({ ddl, yaml: `${table}${state}` })
    await pool.query(
      `${insert(1, 'a', '1')}; ${insert(2, 'b', 'x')}; ${insert(3, 'b', '1')}; ${insert(4, 'c', '1')}; ${insert(5, null, '0')}`,
    )
    expect(await mayHaveWaitingRows(outbox)).toBe(true)
    expect(await capture()).toEqual(['1', '4'])
    expect((await pool.query(skipped)).rows).toEqual([{ kind: 'row_skipped', subject: '2' }])
    expect(await readBacklog(outbox)).toMatchObject({ waiting: 2 })
    await pool.query(`${insert(6, null, 'y')}; ${insert(7, null, '1')}`)
    expect(await capture()).toEqual(['7'])
    expect((await pool.query(skipped)).rows.map(({ subject }) => subject)).toEqual(['2', '6'])
  })
}

test('skipped rows that are repaired are captured in order', async () => {
  const { pool, capture } = await setup({ ddl, yaml: `${table}${forms['rows with a mark']}` })
  await pool.query(`${insert(2, 'b', 'x')}; ${insert(3, 'b', '1')}`)
  expect(await capture()).toEqual([])
  await pool.query(`update source set note = '1'`)
  const nowMs = performance.now()
  vi.spyOn(performance, 'now').mockReturnValue(nowMs + 60_000) // skipped rows are checked every 5 s
  expect(await capture()).toEqual(['2', '3'])
  expect((await pool.query(skipped)).rows).toEqual([])
})

describe('a skipped row that no longer waits is not named any more', () => {
  const changes: Readonly<Record<string, string>> = {
    'is deleted': 'delete from source where id = 2',
    'is marked by the ERP': 'update source set taken = true where id = 2',
    'no longer fails': `update source set note = '0' where id = 2`,
  }
  const yaml = `${table}${forms['rows with a mark']}`
  const given = async () => {
    const all = await setup({ ddl, yaml })
    await all.pool.query(`${insert(1, null, 'x')}; ${insert(2, null, 'x')}`)
    await all.capture()
    return { ...all, named: async () => (await all.pool.query(skipped)).rows.map(({ subject }) => subject) }
  }

  test.each(Object.entries(changes))('if it %s, within seconds', async (_, change) => {
    const { pool, capture, named } = await given()
    await pool.query(change)
    const nowMs = performance.now()
    vi.spyOn(performance, 'now').mockReturnValue(nowMs + 5_000)
    await capture()
    expect(await named()).toEqual(['1'])
  })

  test('if it no longer fails, and its daemon ended', async () => {
    const { pool, outbox, named } = await given()
    await pool.query(changes['no longer fails'] ?? '')
    await clearStaleProblems(outbox, async () => true)
    expect(await named()).toEqual(['1', '2'])
    await pool.query(`update outboxd.problem set seen_at = now() - interval '1 minute' where subject = '2'`)
    await clearStaleProblems(outbox, async () => true)
    expect(await named()).toEqual(['1'])
  })

  test.each([
    'is deleted',
    'is marked by the ERP',
  ])('if it %s, and its daemon ended, or its next try is far', async (how) => {
    const { pool, outbox, named } = await given()
    await pool.query(`${insert(3, null, '1')}; ${insert(4, null, '1')}`)
    const long = '7'.repeat(2_000)
    await skipRows(pool, ['3', '4', long], 'the table refuses the mark')
    await pool.query(changes[how]?.replace('= 2', 'in (2, 3)') ?? '')
    await clearStaleProblems(outbox, async () => true)
    expect(await named()).toEqual(['1', '4', shortenProblemSubject(long)]) // an id that the ledger has cut is not looked up
  })
})

test('if the filter fails for more than 100 rows, nothing is captured, with the error of Postgres', async () => {
  const { pool, capture } = await setup({ ddl, yaml: `${table}${forms['end only']}` })
  await pool.query(`insert into source (id, note) select n, 'x' from generate_series(1, 101) n`)
  await expect(capture()).rejects.toThrow('invalid input syntax for type integer')
  expect((await pool.query(skipped)).rows).toEqual([])
})

test('a search that stops for lack of time before the failing row goes on there the next time', async () => {
  const { pool, capture } = await setup({ ddl, yaml: `${table}${forms['rows with a mark']}` })
  await pool.query(`insert into source (id, note) select n, '0' from generate_series(1, 2000) n; ${insert(2_001, null, 'x')};
    ${insert(2_002, null, '1')}`)
  let nowMs = performance.now()
  vi.spyOn(performance, 'now').mockImplementation(() => (nowMs += 3_000)) // a search has time for one page of 2,000 rows
  await expect(capture()).rejects.toThrow('invalid input syntax for type integer')
  expect(await capture()).toEqual(['2002'])
})

const raises = `create table source (id bigint primary key, key text, n int,
  ratio int generated always as (10 / n) virtual, done_at timestamptz)`
const hashed = `table: source\nid: id\ntype: { constant: data }\nkey: key\nstate: { timestamp: done_at, set: [completed] }\npayload: { columns: { key: key, ratio: ratio } }\n`

test('a captured row whose payload now raises an error is no problem and holds back no other row', async () => {
  const { pool, capture } = await setup({ ddl: raises, yaml: hashed })
  await pool.query(`insert into source values (1, 'a', 1), (2, 'b', 1)`)
  expect(await capture()).toEqual(['1', '2'])
  await pool.query(`update source set n = 0 where id = 1; insert into source values (3, null, 1)`)
  expect(await capture()).toEqual(['3'])
  expect((await pool.query('select kind from outboxd.problem')).rows).toEqual([])
})
