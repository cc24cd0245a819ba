import type pg from 'pg'
import { expect, test } from 'vitest'
import { command as map } from '../../src/commands/map.ts'
import { testContext } from '../support/context.ts'
import { until } from '../support/until.ts'
import { type Installation, install } from './installation.ts'

/** `outboxd map --outbox N` predicts the daemon's exact request, or the words of its refusal. */

const outboxYaml = `
table: sale
id: number
type: kind
payload: { column: body, encoding: utf-8 }
state: { status: progress, new: open, queued: taken, rejected: refused }
write: { trouble: error }
start: beginning
`
const files = {
  'outbox.yaml': outboxYaml,
  'sale.yaml': `
type: sale
endpoint: data
fields:
  id:     { from: id, type: string, maxLength: 10, required: true }
  amount: { from: amount, type: "decimal(10,2)", required: true }
  kind:   { from: kind, type: string, lookup: { A: value1, B: value2 }, default: value1 }
body:
  customerId: \${id}
  own: \${submission.id}
  data:
    amount: \${amount}
    kind: \${kind}
    text: sale \${submission.id} of \${id}
`,
}

const payloadMaxBytes = '1024'

const rows: Record<string, { kind?: string; body: string | Buffer | null }> = {
  'a good one': { body: '{"id":"a","amount":1234.5}' },
  'digits that a double would lose': { body: '{"id":"a","amount":12345678.10,"kind":"B"}' },
  'a byte order mark': { body: '\uFEFF{"id":"a","amount":1}' },
  'blanks around': { body: ' \n{"id":"a","amount":1} ' },
  'a type without a mapping': { kind: 'invoice', body: '{}' },
  'a type with odd characters': { kind: 'in"vo\tice', body: '{}' },
  'no payload': { body: null },
  'an empty payload': { body: '' },
  'text that is not JSON': { body: 'amount=1' },
  'a character of two halves where JSON should begin': { body: '\u{1F600}' },
  'truncated JSON': { body: '{"id":"a","amo' },
  'JSON that is not an object': { body: '[1, 2]' },
  'half a surrogate pair in it': { body: '{"id":"\\ud800","amount":1,"kind":"\\ud800"}' },
  'an escaped NUL in it': { body: '{"id":"a","amount":1,"kind":"\\u0000"}' },
  'NUL itself in it': { body: Buffer.from('{"id":"a\0"}') },
  'bytes that are not UTF-8': { body: Buffer.from([0x7b, 0xff, 0x7d]) },
  'more than may be read': { body: `{"id":"${'x'.repeat(2_000)}"}` },
  'several wrong fields': { body: '{"id":"much too long an id","amount":"1,50","kind":"C"}' },
  'missing fields': { body: '{}' },
}

test('the preview and the daemon agree on every odd row', async () => {
  const installation = await install(files)
  const { pool } = installation
  await pool.query(
    `create table sale (number bigint generated always as identity primary key, kind text not null, body bytea,
       progress text not null default 'open', trouble text)`,
  )
  const previews = new Map<string, string>()
  for (const [name, { kind = 'sale', body }] of Object.entries(rows)) {
    const { rows: inserted } = await pool.query<{ number: string }>(
      'insert into sale (kind, body) values ($1, $2) returning number',
      [kind, typeof body === 'string' ? Buffer.from(body) : body],
    )
    previews.set(name, await preview(installation, inserted[0]?.number ?? ''))
  }
  const stop = await installation.startInstance({ PAYLOAD_MAX_BYTES: payloadMaxBytes })
  const made = await until(
    () => readMade(pool),
    (all) => all.length === Object.keys(rows).length,
  )
  expect(Object.fromEntries(Object.keys(rows).map((name, i) => [name, made[i]]))).toEqual(Object.fromEntries(previews))
  await stop()
  expect(made.filter((each) => each.startsWith('{'))).toHaveLength(4)
})

async function preview({ url, mappingsDir }: Installation, number: string): Promise<string> {
  const context = testContext({ DATABASE_URL: url, MAPPINGS_DIR: mappingsDir, PAYLOAD_MAX_BYTES: payloadMaxBytes })
  await map.action(context, undefined, { outbox: number, json: true })
  const { maps, body, reason } = JSON.parse(context.printed())
  return maps ? body : reason
}

const exampleId = '00000000-0000-7000-8000-000000000000'

/** The request of each row, or the error in the row if it was refused. */
async function readMade(pool: pg.Pool): Promise<string[]> {
  const { rows: made } = await pool.query<{ made: string }>(
    `select coalesce(replace(s.body, s.id::text, $1), o.trouble) as made
     from sale o join outboxd.submission s on s.outbox_id = o.number::text
     where s.body is not null or o.trouble = s.error order by o.number`,
    [exampleId],
  )
  return made.map((row) => row.made)
}
