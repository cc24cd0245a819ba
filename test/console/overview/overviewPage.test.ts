import { expect, test } from 'vitest'
import { command as pause } from '../../../src/commands/pause.ts'
import { attentionSection } from '../../../src/console/overview/overviewPage.ts'
import type { FailureCause } from '../../../src/ledger/operator/search.ts'
import { failedE003, openFixtureForFile, payloadOf, uncertain } from '../../commands/fixture.ts'
import { openForFile } from '../../support/openForFile.ts'
import { until } from '../../support/until.ts'
import { openConsole } from '../openConsole.ts'

const fixture = openFixtureForFile()
const served = openForFile(() => openConsole(fixture.context()))
const reading = openForFile(() => openConsole(fixture.context(), { readOnly: true }))

const query = (sql: string, values: unknown[] = []) => fixture.ledger.pool.query(sql, values)

/** The page once it contains `wanted`. Its contents are at most a second old, some of them ten. */
const pageWith = (wanted: string | RegExp, path = '/') =>
  until(
    async () => (await served.get(path)).text,
    (text) => (typeof wanted === 'string' ? text.includes(wanted) : wanted.test(text)),
  )

test('a new installation shows what is left to do, instead of alarms and zeros', async () => {
  const text = await pageWith(/"done" class="good">✓<\/span>\s*<strong>Database</)
  for (const words of [
    /"done" class="good">✓<\/span>\s*<strong>Mapping</,
    /"to do" class="quiet">○<\/span>\s*<strong>Daemon<\/strong>: Start one with <code>outboxd run<\/code>/,
    /"to do" class="quiet">○<\/span>\s*<strong>First row</,
  ])
    expect(text).toMatch(words)
  for (const words of ['class="notice bad"', 'class="notice good"', '>0<', 'Needs attention'])
    expect(text).not.toContain(words)
  await fixture.row(payloadOf())
  await using opened = await openConsole(fixture.context())
  const further = await until(
    async () => (await opened.get('/')).text,
    (page) => page.includes('1 row of the outbox to capture'),
  )
  expect(further).toContain('<strong>Daemon</strong>')
  await fixture.end(failedE003)
  expect(await pageWith('<b class="count">1</b>')).not.toContain('Until the first record')
})

test('records that need attention are grouped by cause, each with a link to exactly these records', async () => {
  for (const _ of [1, 2]) await fixture.end({ ...failedE003, error: '<b>down</b>' })
  await fixture.end(uncertain)
  const text = await pageWith('<b class="count">3</b>')
  const causes = await pageWith('&lt;b&gt;down&lt;/b&gt;')
  expect(causes).toMatch(/href="\/records\?state=failed&amp;cause=[0-9a-f]{8}"><b>2<\/b>/)
  expect(causes).toMatch(/href="\/records\?state=uncertain&amp;cause=[0-9a-f]{8}"><b>1<\/b>/)
  expect(text + causes).not.toContain('<b>down')
  expect(causes.indexOf('state=uncertain&amp;cause')).toBeLessThan(causes.indexOf('state=failed&amp;cause'))
})

test('a record that outboxd asks the service about counts as at the service, not as sending', async () => {
  await fixture.end({ state: 'sending', transactionId: 'tx-1', pollInMs: 60_000 })
  await fixture.end({ state: 'accepted', transactionId: 'tx-2', pollInMs: 60_000 })
  const text = await pageWith('href="/records?state=sending,accepted"')
  const count = (filter: string) =>
    new RegExp(`state=${filter}">.*?class="step">([^<]*)<.*?class="number">([^<]*)<`)
      .exec(text)
      ?.slice(1)
      .map((part) => part.trim())
  expect(count('sending,accepted')).toEqual(['at the service', '2'])
  expect(count('sending')).toEqual(['sending', '0'])
})

test('if the outbox cannot be read, the page says so and still shows the ledger', async () => {
  await fixture.ledger.capture([{ error: 'x' }])
  await query('alter table outbox rename to outbox_away')
  try {
    await using opened = await openConsole(fixture.context())
    const text = await until(
      async () => (await opened.get('/')).text,
      (page) => page.includes('The outbox cannot be read'),
    )
    expect(text).toMatch(/<dt>Outbox<\/dt><dd>[^<]*outbox/)
    expect(text).toContain('not known')
    expect(text).toContain('in the outbox')
  } finally {
    await query('alter table outbox_away rename to outbox')
  }
})

test('a pause shows at once with its operator, and in another console within 1.5 s', async () => {
  expect((await served.get('/')).text).toContain('href="/pause" data-dialog')
  expect((await served.get('/pause')).text).toContain('no daemon runs with this database')
  expect((await query('select from outboxd.pause')).rowCount).toBe(0)
  await reading.get('/') // its page is open
  const posted = await served.post('/pause', { reason: 'closing', for: '2h' })
  expect({ status: posted.status, to: posted.headers.location }).toEqual({ status: 303, to: '/' })
  const pausedMs = performance.now()
  expect((await served.get('/')).text).toMatch(/closing \(operator \S+\)/)
  await until(
    async () => (await reading.get('/')).text,
    (page) => page.includes('Paused: operator'),
  )
  expect(performance.now() - pausedMs).toBeLessThan(1_500) // an open page asks every 0.5 s
  const resumed = await served.get('/resume')
  expect(resumed.text).toContain('Would resume; the pause is: closing')
  expect(resumed.text).toContain('no daemon runs with this database')
  await served.post('/resume')
  expect((await served.get('/')).text).not.toContain('Paused: operator')
})

test('a pause over a colleague’s names whose it is, and replaces only the one that the page showed', async () => {
  const byAnna = () => pause.action(fixture.context(), { reason: 'year-end closing', as: 'Anna', yes: true })
  await byAnna()
  const asked = await served.get('/pause')
  expect(asked.text).toMatch(/A pause stands since .*year-end closing \(operator Anna\)\. Yours would replace it\./)
  const [, replaces = ''] = /name="replaces" value="([^"]+)"/.exec(asked.text) ?? []
  await byAnna()
  const fields = { reason: 'restart', for: '40s' }
  for (const seen of [fields, { ...fields, replaces }])
    expect(await served.post('/pause', seen)).toMatchObject({
      status: 409,
      text: expect.stringContaining('operator Anna'),
    })
  const [, current = ''] = /name="replaces" value="([^"]+)"/.exec((await served.get('/pause')).text) ?? []
  expect((await served.post('/pause', { ...fields, replaces: current })).status).toBe(303)
  expect((await query('select detail from outboxd.pause')).rows).toMatchObject([
    { detail: expect.stringMatching(/^restart/) },
  ])
})

test('a pause without a reason or with an invalid duration gets 400 with a message, and changes nothing', async () => {
  const { status, text } = await served.post('/pause', { reason: ' ', for: 'soon' })
  expect(status).toBe(400)
  expect(text).toContain('reason must not be empty')
  expect(text).toContain('for soon: give a duration such as 30s')
  expect((await query('select from outboxd.pause')).rowCount).toBe(0)
})

test('a read-only console has no form for a pause, and refuses one', async () => {
  expect((await reading.get('/')).text).not.toContain('href="/pause"')
  expect((await reading.get('/pause')).text).not.toContain('Pause now')
  expect((await reading.post('/pause', { reason: 'closing' })).status).toBe(403)
})

const nowMs = 1_000_000

test('of ten causes, eight are listed and the others counted', () => {
  const cause: FailureCause = {
    ...{ cause: 'aaaaaaaa', count: 1, state: 'failed', code: null, mayHaveArrived: true, shape: 'x', types: ['data'] },
    ...{ firstMs: nowMs, lastMs: nowMs, firstOutboxId: '1', changedAfterSent: false },
  }
  const text = attentionSection(
    { causes: Array(10).fill(cause), lookedAt: 1_000, isCut: true },
    1_200,
    nowMs,
  ).toString()
  expect(text).toContain('2 more causes')
  expect(text.match(/<strong class="attention">may have arrived/g)).toHaveLength(8)
  expect(text).toContain('Only the newest 1,000 records that need attention were read.')
})

test('the page says that no record needs attention only if the count is 0', () => {
  const none = { causes: [], lookedAt: 0, isCut: false }
  expect(attentionSection(none, 3, nowMs).toString()).toContain('3 records. The causes follow within 10 seconds.')
  expect(attentionSection(none, 0, nowMs).toString()).toContain('No record needs attention.')
})
