import { describe, expect, test } from 'vitest'
import { command as replay } from '../../../src/commands/replay.ts'
import { failedE003, openFixtureForFile, payloadOf } from '../../commands/fixture.ts'
import { openForFile } from '../../support/openForFile.ts'
import { type OpenedConsole, openConsole } from '../openConsole.ts'

const fixture = openFixtureForFile()
const served = openForFile(() => openConsole(fixture.context()))

/** The outbox ids of the rows of a list, in their order. */
const listed = (text: string) =>
  [...text.matchAll(/<a href="\/records\/[0-9a-f-]{36}(?:\?[^"]*)?"><bdi>row ([^<]*)<\/bdi><\/a>/g)].map(
    ([, outboxId]) => outboxId,
  )

const stateOf = async (id: string) => (await fixture.ledger.row(id)).state

type Fields = Record<string, string | string[]>

/** The preview of a change to what is chosen from the list. */
const choose = (fields: Fields) => served.post('/records/choose', fields)

/** Confirms a preview, as its form does. */
function confirm({ text }: { text: string }, fields: Fields) {
  const form = /<form method="post" action="\/records\/change".*?<\/form>/s.exec(text)?.[0] ?? ''
  const hidden = [...form.matchAll(/<input type="hidden" name="([^"]+)" value="([^"]*)">/g)]
  const own = Object.fromEntries(hidden.map(([, name = '', value = '']) => [name, value]))
  return follow(served.post('/records/change', { ...own, ...fields }))
}

/** Goes where the answer leads, as a browser does. */
async function follow(answer: ReturnType<OpenedConsole['post']>) {
  const { status, headers, text } = await answer
  return status === 303 ? served.get(String(headers.location)) : { status, headers, text }
}

describe('a change to many', () => {
  test('takes at most 200 ticked records, only by their ids', async () => {
    const { rows } = await fixture.ledger.pool.query<{ id: string }>(`insert into outboxd.submission
      (id, outbox_id, type, recorded_at, state, idempotency_key, ended_at)
      select gen_random_uuid(), n, 'data', now(), 'failed', gen_random_uuid(), now() from generate_series(1, 201) n returning id`)
    const ids = rows.map(({ id }) => id)
    const refused = (id: string[]) => choose({ do: 'discard', id })
    expect(await refused(ids)).toMatchObject({ status: 400, text: expect.stringContaining('at most 200') })
    expect(await refused(['outbox:r1', 'key:x'])).toMatchObject({ status: 400 })
    const { text } = await choose({ do: 'discard', id: ids.slice(1) })
    expect(text).toContain('<h1>Discard 200 records?</h1>')
    expect(text).toContain('The first 5 of 200')
    for (const id of ids.slice(1)) expect(text).toContain(`name="id" value="${id}"`)
  })

  test('takes at most 2,000 matching records, and the preview counts those that would change', async () => {
    const payloads = [payloadOf(), payloadOf({ amount: '12.345' })]
    for (let done = 0; done < 2_100; done += 700)
      await fixture.ledger.capture(
        Array.from({ length: 700 }, (_, i) => ({ payload: payloads[i % 2] ?? '', error: 'x' })),
      )
    const preview = await choose({ do: 'replay', all: 'on', state: 'rejected' })
    expect(preview.text).toContain('The console changes at most 2000 records at once. Repeat it for the rest.')
    expect(preview.text).toContain('<h1>Replay 1000 records?</h1>')
    expect(preview.text).toContain('<p>The replay costs about 2000 requests')
    expect(preview.text).toContain('<button class="main" autofocus>Replay 1000 records</button>')
    expect(preview.text).toContain('<b>1000 records</b>: ')
    expect(preview.text).toContain(' and 980 more')
    expect((await confirm(preview, {})).text).toContain('Replayed 1000 records.')
  })

  test('is previewed with its cost, then confirmed and carried out', async () => {
    const ids = [await fixture.end(failedE003, { outboxId: '1' }), await fixture.end(failedE003, { outboxId: '2' })]
    const other = await fixture.end(failedE003, { outboxId: '3' })
    const preview = await choose({ do: 'replay', id: ids })
    expect(preview.text).toContain('<h1>Replay 2 records?</h1>')
    expect(preview.text).toMatch(/The replay costs about 4 requests, which is \d+ s of the whole budget/)
    expect(await Promise.all(ids.map(stateOf))).toEqual(['failed', 'failed'])
    expect(preview.text).toContain('<button class="main" autofocus>Replay 2 records</button>')
    expect((await confirm(preview, { reason: 'the service is back' })).text).toContain('Replayed 2 records.')
    expect(await Promise.all([...ids, other].map(stateOf))).toEqual(['queued', 'queued', 'failed'])
    const { rows } = await fixture.ledger.pool.query(
      "select who, detail->>'reason' as reason from outboxd.submission_event where cause = 'replayed'",
    )
    const actor = { who: expect.stringMatching(/^operator ./), reason: 'the service is back' }
    expect(rows).toEqual([actor, actor])
  })

  test('affects only previewed records, and skips those that have changed since', async () => {
    const first = await fixture.end(failedE003, { outboxId: '1' })
    const second = await fixture.end(failedE003, { outboxId: '2' })
    const preview = await choose({ do: 'discard', all: 'on', state: 'failed', limit: '1' })
    expect(preview.text).toContain('<h1>Discard 2 records?</h1>')
    await fixture.ledger.pool.query('update outboxd.submission set revision = revision + 1 where id = $1', [second])
    const later = await fixture.end(failedE003, { outboxId: '3' })
    const { text } = await confirm(preview, { reason: 'test data' })
    expect(text).toContain('Discarded 1 record; 1 record skipped.')
    expect(text).toMatch(/outbox:<bdi>2<\/bdi><\/a>.*has changed/)
    expect(await Promise.all([first, second, later].map(stateOf))).toEqual(['discarded', 'failed', 'failed'])
  })

  test('is not carried out twice, nor for a record in a wrong state', async () => {
    const completed = await fixture.end({ state: 'completed' }, { outboxId: '2' })
    const id = await fixture.end(failedE003, { outboxId: '1' })
    const preview = await choose({ do: 'replay', id })
    await confirm(preview, {})
    const { revision } = await fixture.ledger.row(id)
    await confirm(preview, {})
    expect((await fixture.ledger.row(id)).revision).toBe(revision)
    const seen = `${completed}.${(await fixture.ledger.row(completed)).revision}`
    expect((await confirm(preview, { do: 'discard', seen, reason: 'x' })).text).toContain('Discarded 0 records')
    expect(await stateOf(completed)).toBe('completed')
  })

  test('needs exactly one reason for a discard', async () => {
    const id = await fixture.end(failedE003, { outboxId: '1' })
    const preview = await choose({ do: 'discard', id })
    const refused = await confirm(preview, { reason: ' ' })
    expect(refused.status).toBe(400)
    expect(refused.text).toContain('The reason must not be empty')
    expect((await confirm(preview, { reason: ['one', 'another'] })).status).toBe(400)
    expect(await stateOf(id)).toBe('failed')
  })

  test('skips records that may have arrived unless that is confirmed, and names the risk', async () => {
    await fixture.end({ ...failedE003, mayHaveArrived: true }, { outboxId: '1' })
    await fixture.end(failedE003, { outboxId: '2' })
    const preview = await choose({ do: 'replay', all: 'on', state: 'failed' })
    expect(preview.text).toContain('<h1>Replay 1 record?</h1>')
    expect(preview.text).toContain('1 record would be skipped')
    const { text } = await choose({ do: 'replay', all: 'on', state: 'failed', 'even-if-arrived': 'on' })
    expect(text).toContain('<h1>Replay 2 records?</h1>')
    expect(text).toContain('1 record may have arrived. The service would then have it twice, unless')
  })

  test('counts only records that would change, like the command, and names those that still do not map', async () => {
    const rejected = { state: 'rejected', error: 'x' } as const
    for (const outboxId of ['1', '2', '3', '4'])
      await fixture.end({ ...rejected, errorCode: null }, { outboxId, payload: payloadOf({ amount: '12.345' }) })
    for (const outboxId of ['5', '6', '7', '8']) await fixture.end({ ...rejected, errorCode: 'E001' }, { outboxId })
    const command = fixture.context()
    await replay.action(command, [], { state: 'rejected', dryRun: true })
    expect(command.printed()).toContain('This would replay 4 records')
    const preview = await choose({ do: 'replay', all: 'on', state: 'rejected' })
    expect(preview.text).toContain('<h1>Replay 4 records?</h1>')
    expect(preview.text).toContain('The replay costs about 8 requests')
    expect(preview.text).toContain('<button class="main" autofocus>Replay 4 records</button>')
    expect(preview.text).toContain('4 records would be skipped')
    expect(preview.text.match(/still cannot be sent/g)).toHaveLength(1) // each reason is printed once for all its records
    expect(listed(preview.text)).toEqual(['5', '6', '7', '8'])
    expect((await confirm(preview, {})).text).toContain('Replayed 4 records.')
  })

  test('says if no record can be changed or none is ticked, with the reasons', async () => {
    const completed = await fixture.end({ state: 'completed' }, { outboxId: '1' })
    const failed = await fixture.end(failedE003, { outboxId: '2', payload: '{"customerId":"C1"}' })
    const preview = await choose({ do: 'replay', id: [completed, failed] })
    expect(preview.text).toContain('is completed: it has arrived')
    expect(preview.text).toContain('still cannot be sent')
    expect(preview.text).toContain('2 records would be skipped')
    expect(preview.text).toContain('There is nothing to replay.')
    const none = await choose({ do: 'replay' })
    expect(none).toMatchObject({ status: 400, text: expect.stringContaining('No record is ticked') })
  })

  test('leads to a list of exactly the records that it changed, also when others match what was chosen', async () => {
    const ids = [await fixture.end(failedE003, { outboxId: '1' }), await fixture.end(failedE003, { outboxId: '2' })]
    const preview = await choose({ do: 'replay', all: 'on', state: 'failed' })
    await fixture.end(failedE003, { outboxId: '3' })
    const done = await confirm(preview, {})
    expect(listed(done.text).toSorted()).toEqual(['1', '2'])
    expect(done.text).not.toContain('name="do"')
    expect(done.text).toContain('Needs attention <b>1</b>')
    for (const id of ids) expect(done.text).toContain(`href="/records/${id}?changed=`)
    const gone = await served.get('/records?changed=unknown')
    expect(gone).toMatchObject({ status: 404, text: expect.stringContaining('no longer knows') })
  })

  test('of one record leads to its page', async () => {
    const id = await fixture.end(failedE003, { outboxId: '1' })
    const preview = await choose({ do: 'replay', id })
    const seen = `${id}.${(await fixture.ledger.row(id)).revision}`
    const answer = await served.post('/records/change', { do: 'replay', id, seen })
    expect(preview.text).toContain(`value="${seen}"`)
    expect(answer).toMatchObject({ status: 303, headers: { location: `/records/${id}` } })
  })

  test('can be previewed again with other options, which the preview keeps', async () => {
    const id = await fixture.end({ ...failedE003, mayHaveArrived: true }, { outboxId: '1' })
    const { text } = await choose({ do: 'replay', id, 'new-key': 'on' })
    expect(text).toContain('name="new-key" value="on" checked')
    expect(text).toContain('because the idempotency key is new')
    expect(text).toContain(`<input type="hidden" name="id" value="${id}">`)
  })

  test('is refused in a read-only console', async () => {
    const id = await fixture.end(failedE003, { outboxId: '1' })
    await using reader = await openConsole(fixture.context(), { readOnly: true })
    const { text } = await reader.get('/records')
    expect(listed(text)).toEqual(['1'])
    expect(text).not.toContain('type="checkbox" name="id"')
    expect((await reader.post('/records/choose', { do: 'discard', id })).status).toBe(403)
  })
})
