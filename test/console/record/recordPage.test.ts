import { describe, expect, test } from 'vitest'
import { failedE003, openFixtureForFile, payloadOf, uncertain } from '../../commands/fixture.ts'
import { openBreaker } from '../../support/breaker.ts'
import { openForFile } from '../../support/openForFile.ts'
import { until } from '../../support/until.ts'
import { openConsole } from '../openConsole.ts'

const fixture = openFixtureForFile()
const served = openForFile(() => openConsole(fixture.context()))

const page = async (id: string) => (await served.get(`/records/${id}`)).text
const rowOf = (id: string) => fixture.ledger.row(id)

describe('a record', () => {
  test('is found by every name that show takes, and redirects to one address', async () => {
    const id = await fixture.end({ ...failedE003, transactionId: 'tx-1' }, { outboxId: '1', key: 'C1' })
    const { idempotency_key: key } = await rowOf(id)
    for (const name of ['outbox:1', id.slice(0, 8), id.slice(-8), 'transaction:tx-1', 'tx-1', 'key:C1', String(key)])
      expect(await served.get(`/records/${encodeURIComponent(name)}`), name).toMatchObject({
        status: 303,
        headers: { location: `/records/${id}` },
      })
    expect((await served.get(`/records/${id}`)).status).toBe(200)
  })

  test('is found from each page by its key, its row or its transaction, in any state', async () => {
    const id = await fixture.end({ state: 'completed', transactionId: 'tx-1' }, { outboxId: '4711', key: 'PO/1 a' })
    expect((await served.get('/audit')).text).toContain('<form action="/find">')
    for (const word of ['4711', 'PO/1 a', 'tx-1', id])
      expect(await served.get(`/find?word=${encodeURIComponent(word)}`), word).toMatchObject({
        status: 303,
        headers: { location: `/records/${id}` },
      })
    expect((await served.get('/records?key=PO/1%20a')).text).toContain(`href="/records/${id}?key=PO%2F1+a"`)
    const none = await served.get('/find?word=PO-2')
    expect(none).toMatchObject({ status: 404, text: expect.stringContaining('There is no record PO-2') })
    expect(none.text).toContain('<a href="/records?containing=PO-2">Search the values of all records</a>')
  })

  test('says its place in the list that it was opened from, with links to its neighbours', async () => {
    const [first, second, third] = [
      await fixture.end(failedE003, { outboxId: '1' }),
      await fixture.end(uncertain, { outboxId: '2' }),
      await fixture.end(failedE003, { outboxId: '3' }),
    ]
    const link = (id: string, key: string) => `<a href="/records/${id}" data-key="${key}">`
    const alone = await page(second)
    expect(alone).toContain('2 of 3 that need attention')
    expect(alone).toContain(link(first, '['))
    expect(alone).toContain(link(third, ']'))
    expect((await served.get('/records?state=failed')).text).toContain(`href="/records/${third}?state=failed"`)
    const last = (await served.get(`/records/${third}?state=failed`)).text
    expect(last).toContain('2 of 2 in the list')
    expect(last).toContain(link(`${first}?state=failed`, '['))
    expect(last).not.toContain('data-key="]"')
    const elsewhere = (await served.get(`/records/${second}?state=failed`)).text
    expect(elsewhere).toContain(' 2 in the list')
    expect(elsewhere).toContain(link(`${first}?state=failed`, ']'))
    expect((await served.post(`/records/${third}/show?state=failed`)).headers.location).toBe(
      `/records/${third}?state=failed#values-head`,
    )
  })

  test('with an ambiguous name is a list to choose from, and with an unknown name a message', async () => {
    for (const outboxId of ['a1', 'a2']) await fixture.end(failedE003, { outboxId, key: 'C1' })
    const { text } = await served.get('/records/key:C1')
    expect(text.match(/href="\/records\/[0-9a-f-]{36}"/g)).toHaveLength(2)
    const row = await fixture.row(payloadOf())
    const waiting = await served.get(`/records/outbox:${row}`)
    expect(waiting).toMatchObject({ status: 404, text: expect.stringContaining('is not captured yet') })
    expect(waiting.text).toContain(`<a href="/mapping?outbox=${row}">Mapping</a>`)
    expect(await served.get('/records/outbox:4711')).toMatchObject({
      status: 404,
      text: expect.stringContaining('the outbox has no row 4711'),
    })
  })

  test('shows its state, the reason, the next step, and its events with times', async () => {
    const text = await page(await fixture.end(failedE003, { outboxId: '1' }))
    expect(text).toContain('failed</span></h1>')
    expect(text).toContain('<bdi>The service was down.</bdi>')
    expect(text).toContain('Needs attention: remove the cause. Choose above.')
    expect(text).toContain('data-key="r" class="main">Replay…</button>')
    expect(text.match(/<ol class="steps">.*<\/ol>/s)?.[0]).toMatch(/Captured.*queued → sending.*sending → failed/s)
    expect(text).toMatch(/<span class="after">\+\d+ (ms|s)<\/span>/)
    expect(text).toContain('data-watch="/records/')
  })

  test('has a new version when sending is paused, because its reason changes', async () => {
    const id = await fixture.end({ state: 'queued' })
    const version = async () => JSON.parse((await served.get(`/records/${id}/version`)).text).version
    const before = await version()
    await fixture.ledger.pool.query(`insert into outboxd.pause (reason, detail) values ('operator', 'x')`)
    await until(version, (told) => told !== before)
  })

  test('keeps its values masked until an operator asks for them, which is logged', async () => {
    const id = await fixture.end(failedE003, {
      outboxId: '1',
      payload: payloadOf({ field2: '"Erika Mustermann"', amount: '1234.50' }),
    })
    const before = await page(id)
    expect(before).not.toMatch(/Mustermann|1234\.50/)
    expect(before).toContain('&#34;customerId&#34;: &#34;•••&#34;')
    await served.post(`/records/${id}/show`)
    const shown = await page(id)
    expect(shown).toContain('Erika Mustermann')
    expect(shown).toContain('&#34;amount&#34;: 1234.50')
    const { rows } = await fixture.ledger.pool.query(
      "select act, who, detail->'records'->0->>'submission' as id from outboxd.operator_act",
    )
    expect(rows).toMatchObject([{ act: 'show', who: expect.stringMatching(/^operator ./), id }])
    expect((await served.get('/audit')).text).toContain(id)
    await served.post(`/records/${id}/hide`)
    expect(await page(id)).not.toContain('Mustermann')
  })

  test('shows for each field the ERP’s value and the service’s, or the error', async () => {
    const good = await fixture.end(failedE003, { outboxId: '1' })
    await served.post(`/records/${good}/show`)
    const text = await page(good)
    expect(text).toMatch(/total_amount<\/code>.*amount<\/code>.*12\.30.*12\.30.*decimal\(10,2\).*required/)
    const bad = await fixture.end(
      { state: 'rejected', errorCode: null, error: 'x' },
      { outboxId: '2', payload: payloadOf({ amount: '12.345' }) },
    )
    expect(await page(bad)).toMatch(/total_amount<\/code>.*has 3 decimals/)
  })

  test('is shown as text whatever it holds, and cut to a readable length', async () => {
    const hostile = '</pre><script>alert(1)</script>\u202e'
    const id = await fixture.end(
      { ...failedE003, error: hostile },
      { outboxId: '1', key: hostile, payload: JSON.stringify({ [hostile]: hostile, long: 'x'.repeat(1_000_000) }) },
    )
    await served.post(`/records/${id}/show`)
    const text = await page(id)
    expect(text.length).toBeLessThan(200_000)
    expect(text).not.toContain('<script>alert')
    expect(text).not.toContain('\u202e')
    expect(text).toContain('This is only the beginning')
  })
})

test('commands in texts of the ERP or the service do not become links on any page', async () => {
  const hostile = 'outboxd resume --all, or outboxd discard outbox:7 --yes'
  const id = await fixture.end(
    { state: 'rejected', errorCode: hostile.slice(0, 60), error: hostile },
    { outboxId: '7', key: hostile, payload: payloadOf({ amount: `"${hostile}"` }) },
  )
  const { pool } = fixture.ledger
  await openBreaker(pool, { cause: 'unauthorized', detail: hostile })
  const problem = 'insert into outboxd.problem (kind, subject, detail) values ($1, $2, $2)'
  for (const kind of ['row_skipped', 'budget_starved', 'loop_failing']) await pool.query(problem, [kind, hostile])
  await served.post(`/records/${id}/show`)
  const pages = [
    '/',
    '/records',
    `/records/${id}`,
    '/audit',
    '/resume',
    `/mapping?outbox=${hostile}`,
    `/records/${hostile}`,
  ]
  pages.push('/records?by-cause=on', `/records?state=${hostile}`)
  const read = await Promise.all(pages.map(async (path) => ({ path, ...(await served.get(encodeURI(path))) })))
  const preview = await served.post('/records/choose', { do: 'replay', id })
  for (const { path, text } of [...read, { path: 'preview', ...preview }]) {
    expect({ path, text: text.match(/href="\/resume\?(?!all=on")[^"]*"/)?.[0] }).toEqual({ path, text: undefined })
    expect({ path, link: text.match(/href="\/records\/outbox%3A7"/)?.[0] }).toEqual({ path, link: undefined })
  }
  await pool.query('delete from outboxd.pause')
})
