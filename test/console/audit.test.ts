import { parse } from 'csv-parse/sync'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { audit } from '../../src/commands/audit.ts'
import { discard } from '../../src/commands/discard.ts'
import { pause } from '../../src/commands/pause.ts'
import { replay } from '../../src/commands/replay.ts'
import { type Fixture, failedE003, openFixture } from '../commands/fixture.ts'
import { until } from '../support/until.ts'
import { type OpenedConsole, openConsole } from './openConsole.ts'

let fixture: Fixture
let served: OpenedConsole
beforeAll(async () => {
  fixture = await openFixture()
  served = await openConsole(fixture.context())
})
afterAll(async () => {
  await served[Symbol.asyncDispose]()
  await fixture[Symbol.asyncDispose]()
})
beforeEach(() => fixture.reset())

const rowsOf = (text: string) => text.split('<tr>').slice(2)

test('it says who did what, to which record, when and why, the newest first', async () => {
  const id = await fixture.end(failedE003, { outboxId: '7', key: 'K' })
  await replay(fixture.context(), [id], { as: 'alice', reason: 'ticket <b>1</b>' })
  await pause(fixture.context(), { as: 'bob', reason: 'year-end', for: '2h' })
  const [paused, replayed, ...others] = rowsOf((await served.get('/audit')).text)
  expect(others).toEqual([])
  expect(paused).toMatch(/bob<.*pause until <time.*year-end/s)
  expect(replayed).toMatch(new RegExp(`alice<.*replay.*/records/${id}">outbox:7</a>.*ticket &lt;b&gt;1`, 's'))
})

test('it is narrowed by name, key and time; what is mistaken is said', async () => {
  const id = await fixture.end(failedE003, { outboxId: '7', key: 'K' })
  await replay(fixture.context(), [id], { as: 'alice' })
  await pause(fixture.context(), { as: 'bob', reason: 'x' })
  const count = async (query: string) => rowsOf((await served.get(`/audit?${query}`)).text).length
  expect(await count('who=ALI')).toBe(1)
  expect(await count('who=operator')).toBe(2)
  expect(await count('key=K')).toBe(1)
  expect(await count('key=L')).toBe(0)
  expect(await count('since=1h&until=')).toBe(2)
  expect(await count('until=1h')).toBe(0)
  const { status, text } = await served.get('/audit?since=soon')
  expect(status).toBe(400)
  expect(text).toContain('since soon: give a date')
})

test('what does not fit on a page is on the next ones: each is there once', async () => {
  const ids = await Promise.all(
    Array.from({ length: 130 }, (_, i) => fixture.ledger.capture([{ error: 'x', outboxId: `r${i}` }])),
  )
  expect(await discard(fixture.context(), ids.flat(), { as: 'carol', reason: 'many', yes: true })).toBe(0)
  await pause(fixture.context(), { as: 'bob', reason: 'x' })
  const seen: string[] = []
  for (let path: string | undefined = '/audit'; path !== undefined; ) {
    const { text } = await served.get(path)
    seen.push(...[...text.matchAll(/outbox:(r\d+)</g)].map(([, outboxId = '']) => outboxId))
    path = /href="(\/audit\?[^"]*)">Older/.exec(text)?.[1]?.replaceAll('&amp;', '&')
  }
  expect(seen).toHaveLength(130)
  expect(new Set(seen).size).toBe(130)
})

test('the CSV is what the command makes', async () => {
  await fixture.end(
    { state: 'completed', transactionId: 'tx-1' },
    { outboxId: '7', key: 'K', amounts: { total: '1.50' } },
  )
  await fixture.end({ state: 'completed', transactionId: 'tx-2' }, { outboxId: '8' })
  const context = fixture.context()
  await audit(context, { csv: true, key: 'K' })
  const { headers, text } = await served.get('/audit.csv?key=K')
  expect(headers['content-disposition']).toContain('audit.csv')
  expect(text).toBe(context.printed())
  expect(parse(text, { columns: true })).toMatchObject([{ outbox_id: '7', amounts: 'total=1.50' }])
})

test('a CSV that cannot be read is no CSV; one that breaks off is cut off, and both are in the log', async () => {
  const ids = await Promise.all(
    Array.from({ length: 130 }, (_, i) => fixture.ledger.capture([{ error: 'x', outboxId: `r${i}` }])),
  )
  expect(await discard(fixture.context(), ids.flat(), { as: 'carol', reason: 'many', yes: true })).toBe(0)
  await using broken = await breakSteps()
  await broken.where('submission_id is not null')
  const { status, headers } = await served.get('/audit.csv')
  expect({ status, disposition: headers['content-disposition'] }).toEqual({ status: 500, disposition: undefined })
  expect(served.context.messages()).toContain('the console could not answer GET /audit.csv')
  const { rows } = await fixture.ledger.pool.query<{ id: string }>(
    'select id from outboxd.submission order by ended_at desc, seq desc limit 1',
  )
  await broken.where(`submission_id = '${rows[0]?.id}'`)
  await expect(served.get('/audit.csv')).rejects.toThrow('aborted')
  await until(served.context.messages, (said) => said.includes('GET /audit.csv broke off'))
})

/** The steps of records that this is true of cannot be read any more. */
async function breakSteps() {
  const { pool } = fixture.ledger
  await pool.query('alter table outboxd.submission_event rename to kept_event')
  return {
    where: (condition: string) =>
      pool.query(`create or replace view outboxd.submission_event as select * from outboxd.kept_event
        where 1 / (case when ${condition} then 0 else 1 end) = 1`),
    async [Symbol.asyncDispose]() {
      await pool.query('drop view outboxd.submission_event')
      await pool.query('alter table outboxd.kept_event rename to submission_event')
    },
  }
}
