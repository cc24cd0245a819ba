import { expect, test } from 'vitest'
import { escapeNonAscii } from '../../src/boundText.ts'
import { createPool } from '../../src/postgres/database.ts'
import { createCharacterReplacer } from '../../src/postgres/serverEncoding.ts'
import { createDatabase } from '../support/database.ts'

/** Single-byte encodings that a PostgreSQL server can have. */
const encodings = [
  'LATIN1 LATIN2 LATIN3 LATIN4 LATIN5 LATIN6 LATIN7 LATIN8 LATIN9 LATIN10 ISO_8859_5 ISO_8859_6 ISO_8859_7 ISO_8859_8',
  'KOI8R WIN866 WIN874 WIN1250 WIN1251 WIN1252 WIN1253 WIN1254 WIN1256 WIN1257 WIN1258',
].flatMap((line) => line.split(' '))

/** All letters and signs beyond ASCII that a single-byte encoding has, and some that none has. */
const characters = [...range(0xa0, 0x600), ...range(0xe00, 0xe60), ...range(0x1e00, 0x1f00), ...range(0x2010, 0x2600)]

test('for each encoding, exactly the characters that it cannot store are replaced', async () => {
  await using database = await createDatabase('template0')
  await createHolds(database.pool)
  const wrongs: string[] = []
  for (const encoding of encodings) {
    const { rows } = await database.pool.query<{ held: string }>(
      `select coalesce(string_agg(c, '' order by o), '') as held from unnest($1::text[]) with ordinality as t(c, o)
       where public.holds(c, $2)`,
      [characters, encoding],
    )
    const replacement = createCharacterReplacer(encoding)
    const held = new Set(rows[0]?.held)
    const wrong = characters.filter((each) => held.has(each) !== (replacement?.(each) === each))
    wrongs.push(
      ...wrong.map(
        (each) => `${encoding} ${each.codePointAt(0)?.toString(16)} ${held.has(each) ? 'replaced' : 'kept'}`,
      ),
    )
  }
  expect(wrongs).toEqual([])
})

test('UTF8 and multi-byte encodings need no replacement', () => {
  expect(['UTF8', 'SQL_ASCII', 'EUC_JP', 'MULE_INTERNAL'].map(createCharacterReplacer)).toEqual([
    null,
    null,
    null,
    null,
  ])
})

test('a session of a LATIN1 database replaces what it cannot store, but refuses an exact text with it', async () => {
  await using database = await createDatabase('template0', `encoding 'LATIN1' locale 'C'`)
  const pool = createPool({ url: database.url, name: 'x', connections: 1, onIdleError: () => {} })
  const { rows } = await pool.query<{ texts: unknown }>(
    `select array[$1, ($2::text[])[1], $3::json ->> 'a'] as texts`,
    ['Müller… “Ł”', ['€ 😀'], JSON.stringify({ a: 'naïve → Łódź' })],
  )
  expect(rows[0]?.texts).toEqual(['Müller? ???', '? ?', 'naïve ? ?ód?'])
  const { rows: said } = await pool.query<{ sign: string }>(`select '…' as sign`)
  expect(said).toEqual([{ sign: '.' }])
  await expect(pool.query(`select 'Ł'`)).rejects.toMatchObject({ code: '22P05' })
  const ofExact = (text: string) =>
    pool.query<{ a: string }>(`select $1::json ->> 'a' as a`, [JSON.stringify({ a: escapeNonAscii(text) })])
  expect((await ofExact('Mü"ll\\er\n')).rows).toEqual([{ a: 'Mü"ll\\er\n' }])
  await expect(ofExact('Łódź')).rejects.toMatchObject({ code: '22P05' })
  await pool.end()
})

/** Makes a function that says whether an encoding has a character. */
async function createHolds(pool: { query(sql: string): Promise<unknown> }): Promise<void> {
  await pool.query(`create or replace function public.holds(c text, encoding text) returns boolean language plpgsql as $$
    begin perform convert_to(c, encoding::name); return true; exception when others then return false; end $$`)
}

function range(from: number, to: number): string[] {
  return Array.from({ length: to - from }, (_, i) => String.fromCharCode(from + i))
}
