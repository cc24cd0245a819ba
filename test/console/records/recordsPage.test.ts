import { describe, expect, test } from 'vitest'
import { failedE003, openFixtureForFile, payloadOf, uncertain } from '../../commands/fixture.ts'
import { openForFile } from '../../support/openForFile.ts'
import { until } from '../../support/until.ts'
import { openConsole } from '../openConsole.ts'

const fixture = openFixtureForFile()
const served = openForFile(() => openConsole(fixture.context()))

/** The outbox ids of the rows of a list, in their order. */
const listed = (text: string) =>
  [...text.matchAll(/<a href="\/records\/[0-9a-f-]{36}(?:\?[^"]*)?"><bdi>row ([^<]*)<\/bdi><\/a>/g)].map(
    ([, outboxId]) => outboxId,
  )

const link = (text: string, rel: 'next') =>
  new RegExp(`<a href="([^"]+)" rel="${rel}">`).exec(text)?.[1]?.replaceAll('&amp;', '&')

describe('the list', () => {
  test('shows records that need attention, unless a filter is given', async () => {
    await fixture.end(failedE003, { outboxId: '1' })
    await fixture.end(uncertain, { outboxId: '2' })
    await fixture.end({ state: 'completed', transactionId: 'tx-9' }, { outboxId: '3' })
    expect(listed((await served.get('/records')).text)).toEqual(['1', '2'])
    const completed = (await served.get('/records?state=completed')).text
    expect(listed(completed)).toEqual(['3'])
    expect(completed).toContain('transaction <bdi>tx-9</bdi>')
    expect(listed((await served.get('/records?code=e003')).text)).toEqual(['1'])
    expect((await served.get('/records?code=E999')).text).toContain('No record matches')
  })

  test('redirects to an address without empty filters, and its form keeps the filters', async () => {
    await fixture.end(failedE003, { outboxId: '1' })
    const { status, headers } = await served.get('/records?type=&state=failed&state=rejected&key=C1&since=')
    expect({ status, to: headers.location }).toEqual({
      status: 303,
      to: '/records?state=failed,rejected&key=C1',
    })
    const { text } = await served.get('/records?state=failed,rejected&key=C1')
    expect(text).toContain('name="key" value="C1"')
    expect(text).toMatch(/value="failed" checked/)
  })

  test('explains an invalid filter with the name of its option', async () => {
    const { status, text } = await served.get('/records?since=yesterday')
    expect(status).toBe(400)
    expect(text).toContain('--since yesterday: give a date or time')
  })

  test('has pages with each record once, in either order', async () => {
    for (const outboxId of ['1', '2', '3', '4', '5', '6', '7']) await fixture.end(failedE003, { outboxId })
    await fixture.end({ state: 'queued' }, { outboxId: '8' })
    for (const order of ['', '&newest=on']) {
      const pages: (string | undefined)[][] = []
      let path: string | undefined = `/records?state=failed,queued&limit=3${order}`
      let last = ''
      while (path !== undefined) {
        last = (await served.get(path)).text
        pages.push(listed(last))
        path = link(last, 'next')
      }
      const all = ['1', '2', '3', '4', '5', '6', '7', '8']
      const expected = order === '' ? all : all.toReversed()
      expect(pages).toEqual([expected.slice(0, 3), expected.slice(3, 6), expected.slice(6)])
      expect(last).toContain('>First page</a>')
    }
  })

  test('shows a record’s contents as escaped text', async () => {
    await fixture.end(
      {
        state: 'rejected',
        errorCode: 'E001',
        error: '<script>alert(1)</script> \u202egnp.exe\u0000'.replace('\0', ''),
      },
      { outboxId: '1', key: '<img src=x onerror=alert(1)>' },
    )
    const { text } = await served.get('/records')
    expect(text).not.toContain('<script>alert')
    expect(text).not.toContain('<img src=x')
    expect(text).toContain('&lt;script&gt;alert(1)&lt;/script&gt; \\u202egnp.exe')
  })

  test('has the columns that the mapping names, masked until they are asked for, which is one entry of the log', async () => {
    const shown = await fixture.end(failedE003, { outboxId: '1', payload: payloadOf({ amount: '1234567.50' }) })
    await fixture.end(failedE003, { outboxId: '2', payload: payloadOf({ amount: '-1234.5', customerId: '"<C>"' }) })
    const before = (await served.get('/records')).text
    expect(before).toContain('<th scope="col">Customer</th><th scope="col" class="number">Amount</th>')
    expect(before.match(/<td class="number">•••<\/td>/g)).toHaveLength(2)
    expect(before).not.toContain('1,234')
    await served.post('/records/show')
    await fixture.end(failedE003, { outboxId: '3', payload: payloadOf({ amount: '7.25' }) })
    const after = (await served.get('/records')).text
    expect(after).toContain('<td class="number"><bdi>1,234,567.50</bdi></td>')
    expect(after).toContain('<td><bdi>&lt;C&gt;</bdi></td><td class="number"><bdi>-1,234.5</bdi></td>')
    expect(after.match(/<td class="number">•••<\/td>/g)).toHaveLength(1)
    expect((await served.get(`/records/${shown}`)).text).toContain('1234567.50')
    const { rows } = await fixture.ledger.pool.query('select act, detail from outboxd.operator_act')
    expect(rows).toMatchObject([{ act: 'show', detail: { records: [{ outboxId: '1' }, { outboxId: '2' }] } }])
    expect((await served.get('/audit')).text).toMatch(/outbox:1<\/a> data.*outbox:2<\/a> data/s)
  })

  test('shows on one page what was sent for a customer, in any state', async () => {
    const of = (outboxId: string, customer: string, amount: string) => ({
      outboxId,
      payload: payloadOf({ customerId: `"${customer}"`, amount }),
    })
    await fixture.end({ state: 'completed' }, of('1', 'C-7010', '12.50'))
    await fixture.end(failedE003, of('2', 'C-7010', '7.25'))
    await fixture.end({ state: 'completed' }, of('3', 'C-9', '1'))
    const path = '/records?containing=C-7010'
    await served.post(`/records/show?containing=C-7010`)
    const { text } = await served.get(path)
    expect(listed(text)).toEqual(['1', '2'])
    for (const cell of ['completed</span>', '<bdi>12.50</bdi>', 'failed</span>', '<bdi>7.25</bdi>'])
      expect(text).toContain(cell)
  })

  test('has tabs with the number of records in their states, and chips that lead to the list without a filter', async () => {
    await fixture.end(failedE003, { outboxId: '1', key: 'k' })
    await fixture.end({ state: 'completed' }, { outboxId: '2' })
    await using fresh = await openConsole(fixture.context())
    const { text } = await fresh.get('/records?state=failed&key=k')
    for (const tab of ['Needs attention <b>1</b>', 'Under way <b>0</b>', 'Completed <b>1</b>', 'All <b>2</b>'])
      expect(text).toContain(tab)
    expect(text).toContain('<a class="chip" href="/records?state=failed"')
    expect((await fresh.get('/records')).text).toContain('<a href="/records" aria-current="true">Needs attention')
    // A search by text is of all states.
    expect((await fresh.get('/records?containing=C')).text).toContain('newest=on" aria-current="true">All')
  })

  test('is a CSV of the same filter, of all its pages, without contents and formulas', async () => {
    await fixture.end(failedE003, { outboxId: '1', key: '=1+1' })
    await fixture.end({ ...failedE003, errorCode: 'E001' }, { outboxId: '2' })
    expect((await served.get('/records?code=E003&limit=1')).text).toContain('href="/records.csv?code=E003&amp;limit=1"')
    const { headers, text } = await served.get('/records.csv?code=E003&limit=1')
    expect(headers['content-disposition']).toBe('attachment; filename="records.csv"')
    const [head, ...lines] = text.trim().split('\n')
    expect(head).toMatch(/^outbox_id,arrived_as,state,/)
    expect(lines).toEqual([expect.stringMatching(/^1,,failed,data,'=1\+1,/)])
    expect(await served.get('/records.csv?since=yesterday')).toMatchObject({ status: 400 })
    expect((await served.get('/audit')).text).toMatch(/download.*records\.csv/s)
  })

  test('by cause has one line for the records of each cause, with a link to them', async () => {
    for (const outboxId of ['1', '2']) await fixture.end(failedE003, { outboxId })
    await fixture.end(uncertain, { outboxId: '3' })
    const { text } = await served.get('/records?by-cause=on')
    const [, path = ''] = /<a href="([^"]*cause=[0-9a-f]{8}[^"]*)"><b>2<\/b>/.exec(text) ?? []
    expect(listed((await served.get(path.replaceAll('&amp;', '&'))).text)).toEqual(['1', '2'])
  })
})

test('a list is live and its version changes with its records; a logged search and causes only say how old they are', async () => {
  const id = await fixture.end(failedE003, { key: 'k' })
  const liveIn = async (path: string) => {
    const { text } = await served.get(path)
    return /<body data-watch="([^"]+)" data-version="([^"]+)"/
      .exec(text)
      ?.slice(1)
      .map((each) => each.replaceAll('&amp;', '&'))
  }
  for (const path of ['/records', '/records?key=k&state=failed,rejected&newest=on']) {
    const version = async (watched = '') => JSON.parse((await served.get(watched)).text).version
    const look = async () => {
      const [watched, shown] = (await liveIn(path)) ?? []
      return { watched, shown, told: await version(watched) }
    }
    // The numbers by state, which are read every 5 s, may change in between.
    const { watched, shown } = await until(look, (each) => each.shown === each.told)
    await fixture.ledger.pool.query(`update outboxd.submission set revision = revision + 1 where id = $1`, [id])
    await until(
      () => version(watched),
      (told) => told !== shown,
    )
  }
  for (const path of ['/records?by-cause=on', '/records?containing=x', '/mapping']) {
    expect(await liveIn(path), path).toBeUndefined()
    expect((await served.get(path)).text).toMatch(/as of <time id="as-of" datetime="[^"]+">[^<]+Z<\/time>/)
  }
})
