import { afterEach, expect, test, vi } from 'vitest'
import { readableText } from '../../src/outbox/readableText.ts'
import { setup } from './setup.ts'

/** Bytes that are no UTF-8 where a database does not know what its bytes mean: the row is put off, the others go on. */

afterEach(() => void vi.restoreAllMocks())

const encoding = 'SQL_ASCII'
const columns = `id text primary key, key text, rank text not null default '', payload text default '{}', taken boolean default false`
const ddl = `create table source (${columns})`
const common = 'table: source\nid: id\ntype: { constant: data }\nkey: key\npayload: payload\n'
const forms = {
  'rows that say they are taken': `${common}state: { flag: taken, set: [queued] }`,
  'the order of transactions': `${common}state: none`,
}
const bytes = (hex: string) => `convert_from('\\x${hex}', 'SQL_ASCII')`
const put = (id: string, key: string, rank = `''`) =>
  `insert into source (id, key, rank) values (${id}, ${key}, ${rank})`
const problems = `select kind, subject, detail from outboxd.problem order by subject`

for (const [name, yaml] of Object.entries(forms))
  test(`${name}: in the id`, async () => {
    const { pool, ledger, capture, outbox } = await setup({ ddl, yaml, encoding })
    await pool.query(`${put(`'a'`, `'x'`)}; ${put(bytes('62fc'), `'k'`)}; ${put(`'c'`, `'k'`)}; ${put(`'d'`, 'null')}`)
    expect(await outbox.hasNew()).toBe(true)
    expect(await capture()).toEqual(['a', 'd'])
    expect((await ledger.query(problems)).rows).toEqual([
      { kind: 'row_skipped', subject: '\\x62fc', detail: expect.stringContaining('no UTF-8') },
    ])
    expect(await outbox.backlog()).toMatchObject({ waiting: 2 })
    await pool.query(`update source set id = 'b' where id = ${bytes('62fc')}`)
    // A row that is written anew comes last where the transactions' order counts.
    expect((await capture()).sort()).toEqual(['b', 'c'])
    const nowMs = performance.now()
    vi.spyOn(performance, 'now').mockReturnValue(nowMs + 60_000) // it is said once a minute
    expect(await capture()).toEqual([])
    expect((await ledger.query(problems)).rows).toEqual([])
  })

for (const [name, yaml] of Object.entries(forms))
  test(`${name}: in the column that orders them`, async () => {
    const { pool, ledger, capture } = await setup({ ddl, yaml: `${yaml}\norder: rank`, encoding })
    await pool.query(
      `${put(`'a'`, `'x'`, `'1'`)}; ${put(`'b'`, `'k'`, bytes('fc'))}; ${put(`'c'`, `'k'`, bytes('fd'))}; ${put(`'d'`, 'null', `'2'`)}`,
    )
    expect(await capture()).toEqual(['a', 'd', 'b', 'c'])
    expect((await ledger.query(problems)).rows).toEqual([])
  })

test('every text that is UTF-8 is readable, and nothing else', async () => {
  const { pool } = await setup({ encoding })
  const { isReadable, text } = readableText('t', 'text', encoding)
  const look = async (hex: string) => {
    const { rows } = await pool.query(
      `select ${isReadable} as is, encode(convert_to(${text}, 'SQL_ASCII'), 'escape') as text
       from (select convert_from(decode($1, 'hex'), 'SQL_ASCII') as t) value`,
      [hex],
    )
    return rows[0].is
  }
  const texts = ['', 'a', 'ä', '€', '\u{7ff}\u{800}', '\u{d7ff}\u{e000}\u{ffff}', '😀\u{10ffff}', 'a'.repeat(9_000)]
  for (const each of texts) expect([each, await look(Buffer.from(each).toString('hex'))]).toEqual([each, true])
  const bad = [
    'fc',
    '80',
    'c0af',
    'c1bf',
    'e08080',
    'eda080',
    'f0808080',
    'f4908080',
    'f5808080',
    'e282',
    '61ff',
    'c328',
  ]
  for (const each of bad) expect([each, await look(each)]).toEqual([each, false])
})
