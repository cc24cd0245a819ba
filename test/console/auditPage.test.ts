import { parse } from 'csv-parse/sync'
import { expect, test } from 'vitest'
import { command as audit } from '../../src/commands/audit.ts'
import { command as discard } from '../../src/commands/discard.ts'
import { command as erase } from '../../src/commands/erase.ts'
import { command as pause } from '../../src/commands/pause.ts'
import { command as prune } from '../../src/commands/prune.ts'
import { command as replay } from '../../src/commands/replay.ts'
import type { OptionsOf } from '../../src/commands/terminal/command.ts'
import { failedE003, openFixtureForFile, payloadOf } from '../commands/fixture.ts'
import { setSettings } from '../support/ledger.ts'
import { openForFile } from '../support/openForFile.ts'
import { openConsole } from './openConsole.ts'

const fixture = openFixtureForFile()
const served = openForFile(() => openConsole(fixture.context()))

const rowsOf = (text: string) => text.split('<tr>').slice(2)

test('the audit page shows who did what to which record, when and why, newest first', async () => {
  const id = await fixture.end(failedE003, { outboxId: '7', key: 'K' })
  await replay.action(fixture.context(), [id], { as: 'alice', reason: 'ticket <b>1</b>' })
  await pause.action(fixture.context(), { as: 'bob', reason: 'year-end', for: '2h' })
  const [paused, replayed, ...others] = rowsOf((await served.get('/audit')).text)
  expect(others).toEqual([])
  expect(paused).toMatch(/bob<.*pause until <time.*year-end/s)
  expect(replayed).toMatch(new RegExp(`alice<.*replay.*/records/${id}">outbox:7</a>.*ticket &lt;b&gt;1`, 's'))
})

test('the audit page is filtered by name, key and time, and an invalid filter is explained', async () => {
  const id = await fixture.end(failedE003, { outboxId: '7', key: 'K' })
  await replay.action(fixture.context(), [id], { as: 'alice' })
  await pause.action(fixture.context(), { as: 'bob', reason: 'x' })
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

test.each([true, false])('several pages list each act once, with acts beside the steps: %s', async (hasActs) => {
  const ids = await Promise.all(
    Array.from({ length: 130 }, (_, i) => fixture.ledger.capture([{ error: 'x', outboxId: `r${i}` }])),
  )
  expect(await discard.action(fixture.context(), ids.flat(), { as: 'carol', reason: 'many', yes: true })).toBe(0)
  if (hasActs) await pause.action(fixture.context(), { as: 'bob', reason: 'x' })
  const seen: string[] = []
  for (let path: string | undefined = '/audit'; path !== undefined; ) {
    const { text } = await served.get(path)
    seen.push(...[...text.matchAll(/outbox:(r\d+)</g)].map(([, outboxId = '']) => outboxId))
    path = /href="(\/audit\?[^"]*)">Older/.exec(text)?.[1]?.replaceAll('&amp;', '&')
  }
  expect(seen).toHaveLength(130)
  expect(new Set(seen).size).toBe(130)
})

test('an erased record keeps who acted on it but not why, and a pruned one leaves only the acts of erase and prune', async () => {
  const id = await fixture.end(failedE003, { outboxId: '7', key: 'Erika' })
  await discard.action(fixture.context(), [id], { as: 'alice', reason: 'Erika called', yes: true })
  const { pool } = fixture.ledger
  await pool.query('update outboxd.submission set report_due = false where id = $1', [id])
  await erase.action(fixture.context(), { as: 'officer', key: 'Erika', reason: 'request 1', yes: true })
  const erased = await served.get('/audit')
  const [erasure, discarded, ...others] = rowsOf(erased.text)
  expect(others).toEqual([])
  expect(erasure).toMatch(/officer<.*erase.*request 1/s)
  expect(discarded).toMatch(new RegExp(`alice<.*discard.*/records/${id}">outbox:7</a>`, 's'))
  expect(erased.text).not.toContain('Erika')
  const record = await served.get(`/records/${id}`)
  expect(record.text).toContain('erased')
  expect(record.text).not.toContain('Erika')

  await pool.query(`update outboxd.submission set ended_at = now() - interval '100 days' where id = $1`, [id])
  await setSettings(fixture.ledger.pool, { RETENTION_DAYS: '90', RETENTION_PAYLOAD_DAYS: '30' })
  expect(await prune.action(fixture.context(), { as: 'zoe' })).toBe(0)
  const pruned = rowsOf((await served.get('/audit')).text)
  expect(pruned.map((row) => /(officer|alice|zoe)</.exec(row)?.[1])).toEqual(['zoe', 'officer'])
  expect((await served.get(`/records/${id}`)).status).toBe(404)
})

const acts = async () =>
  (
    await fixture.ledger.pool.query<{ act: string; who: string; detail: Record<string, unknown> }>(
      'select act, who, detail from outboxd.operator_act order by id',
    )
  ).rows

test('the list of acts is live, and its times match the times of its filters: all are in UTC', async () => {
  await pause.action(fixture.context(), { reason: 'closing' })
  const { text } = await served.get('/audit')
  expect(text).toContain('<body data-watch="/audit/version" data-version=')
  expect(text).toContain('All times are in UTC.')
  const [, shown = ''] = /<section id="acts" data-live>.*?<time datetime="[^"]+">([^<]+)<\/time>/s.exec(text) ?? []
  expect((await served.get(`/audit?since=${encodeURIComponent(shown)}`)).text).toContain('closing')
  expect((await served.get(`/audit?until=${encodeURIComponent(shown)}`)).text).toContain('No act matches.')
})

test('a search by text is an act in the log, with the operator and the records that it read, but not the text', async () => {
  const one = await fixture.end(failedE003, { outboxId: '7', key: 'K', payload: payloadOf({ field2: '"Erika"' }) })
  await fixture.end(failedE003, { outboxId: '8', key: 'L' })
  await served.get('/records?containing=Erik&key=K')
  await served.get('/records?containing=Erik&key=K') // from the cache, and logged again
  await served.get('/records?containing=Erikx&key=K') // a search without a result is logged too
  await served.get('/records?containing=Erik&by-cause=on')
  await served.post('/records/choose', { do: 'replay', all: 'on', containing: 'Erik' })
  const known = { submission: one, outboxId: '7', type: 'data' }
  expect(await acts()).toMatchObject([
    { act: 'search', who: expect.stringMatching(/^operator ./), detail: { found: 1, lookedAt: 1, records: [known] } },
    { act: 'search', detail: { found: 1, lookedAt: 1 } },
    { act: 'search', detail: { found: 0, lookedAt: 1, records: [known] } },
    { act: 'search', detail: { found: 1, lookedAt: 2, records: [known, { outboxId: '8' }] } },
    { act: 'search', detail: { found: 1, lookedAt: 2 } },
  ])
  expect(JSON.stringify(await acts())).not.toContain('Erik')
})

test('the act of a large search names 100 found records and counts the others', async () => {
  await fixture.ledger.pool.query(`insert into outboxd.submission (id, outbox_id, type, recorded_at, state, idempotency_key, ended_at, payload)
    select gen_random_uuid(), n, 'data', now(), 'failed', gen_random_uuid(), now(), case when n > 30 then '{"a":"Erika"}' else '{}' end
    from generate_series(1, 150) n`)
  await served.get('/records?containing=Erika')
  const [{ detail } = { detail: {} as Record<string, unknown> }] = await acts()
  expect(detail).toMatchObject({ lookedAt: 150, found: 120, unnamed: 20 })
  expect(detail.records).toHaveLength(100)
  await served.get('/records.csv')
  const [downloaded, searched] = rowsOf((await served.get('/audit')).text)
  expect(downloaded).toMatch(/download records.csv.* and 145 more/s)
  expect(searched).toMatch(/search.* and 115 more/s)
})

test('page, text, CSV and JSON find acts by key and by record, and name the record', async () => {
  const id = await fixture.end(failedE003, { outboxId: '7', key: 'K' })
  await fixture.end(failedE003, { outboxId: '8', key: 'L' })
  await served.post(`/records/${id}/show`)
  await pause.action(fixture.context(), { as: 'bob', reason: 'x' })
  for (const query of ['key=K', `record=${id}`, 'record=outbox:7']) {
    const rows = rowsOf((await served.get(`/audit?${query}`)).text)
    expect(rows, query).toHaveLength(1)
    expect(rows[0]).toMatch(new RegExp(`show.*/records/${id}">outbox:7</a> data, key K`, 's'))
  }
  expect(rowsOf((await served.get('/audit?key=L')).text)).toEqual([])
  expect((await served.get('/audit?record=seven')).text).toContain('record seven: give')
  const printed = async (options: OptionsOf<typeof audit>) => {
    const context = fixture.context()
    await audit.action(context, options)
    return context.printed()
  }
  for (const options of [{ key: 'K' }, { record: id }, { record: 'outbox:7' }, {}]) {
    expect(await printed(options)).toMatch(/: show outbox:7 \(data, key K\)\n/)
    const cells = parse(await printed({ ...options, csv: true }), { columns: true }) as { kind: string }[]
    expect(cells.find(({ kind }) => kind === 'show')).toMatchObject({ outbox_id: '7', key: 'K', submission_id: id })
    const lines = JSON.parse(await printed({ ...options, json: true })) as { act?: string }[]
    expect(lines.find(({ act }) => act === 'show')).toMatchObject({
      records: [{ id, outboxId: '7', type: 'data', key: 'K' }],
    })
  }
  expect(await printed({ key: 'L' })).not.toContain('show')
  expect(await audit.action(fixture.context(), { record: 'seven' })).toBe(2)
})
