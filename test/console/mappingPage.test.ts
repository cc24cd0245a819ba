import { expect, test } from 'vitest'
import { mappingFiles, openFixtureForFile, payloadOf } from '../commands/fixture.ts'
import { openForFile } from '../support/openForFile.ts'
import { openConsole } from './openConsole.ts'

const fixture = openFixtureForFile()
const served = openForFile(() => openConsole(fixture.context()))

test('a payload is shown as the request that it would become', async () => {
  const { status, text } = await served.post('/mapping', { type: 'data', payload: payloadOf() })
  expect(status).toBe(200)
  expect(text).toMatch(/What <bdi>the payload<\/bdi> would become/)
  expect(text).toMatch(/total_amount<\/code>.*12\.30.*decimal\(10,2\)/)
  expect(text).toContain('&#34;total_amount&#34;: 12.30')
})

test('a payload that does not map is shown with each field’s error, and of several none is mapped', async () => {
  const bad = payloadOf({ amount: '12.345', customerId: '"longer than ten"' })
  const one = await served.post('/mapping', { type: 'data', payload: bad })
  expect(one.text).toMatch(/customer_id<\/code>.*has 15 characters/)
  expect(one.text).toMatch(/total_amount<\/code>.*has 3 decimals/)
  const two = await served.post('/mapping', { type: 'data', payload: `${payloadOf()}\n${bad}` })
  expect(two).toMatchObject({ status: 400, text: expect.stringContaining('The form takes one payload') })
})

test('an empty payload or an unknown type gets 400 with a message, and the typed text is kept and escaped', async () => {
  for (const payload of [' ', ['{}', '{}']])
    expect(await served.post('/mapping', { type: 'data', payload })).toMatchObject({
      status: 400,
      text: expect.stringContaining('There is no payload in the form'),
    })
  expect(await served.post('/mapping', { type: 'dat', payload: '{}' })).toMatchObject({
    status: 400,
    text: expect.stringContaining('did you mean'),
  })
  const { text } = await served.post('/mapping', { type: 'data', payload: '</textarea><script>' })
  expect(text).toContain('&lt;/textarea&gt;&lt;script&gt;')
  expect(text).not.toContain('</textarea><script>')
})

test('the values of a waiting row are masked until an operator asks for them, which is logged', async () => {
  const row = await fixture.row(payloadOf({ field2: '"Erika"' }))
  const path = `/mapping?outbox=${row}`
  expect((await served.get('/mapping')).text).toContain(`href="${path}"`)
  expect((await served.get(path)).text).not.toContain('Erika')
  expect((await served.post('/mapping/show', { outbox: row })).text).toContain('Erika')
  expect((await served.get(path)).text).not.toContain('Erika')
  const { rows } = await fixture.ledger.pool.query(
    "select act, detail->'records'->0->>'outboxId' as record from outboxd.operator_act",
  )
  expect(rows).toEqual([{ act: 'show', record: row }])
  expect(await served.get('/mapping?outbox=4711')).toMatchObject({
    status: 400,
    text: expect.stringContaining('There is no row 4711 in the outbox'),
  })
})

test('the log has the row’s own id, in any form that the operator typed', async () => {
  const row = await fixture.row(payloadOf({ field2: '"Erika"' }))
  expect((await served.post('/mapping/show', { outbox: `+0${row} ` })).text).toContain('Erika')
  const { rows } = await fixture.ledger.pool.query(
    "select detail->'records'->0->>'submission' as record, detail->'records'->0->>'outboxId' as id from outboxd.operator_act",
  )
  expect(rows).toEqual([{ record: null, id: row }])
})

test('a form of more than 100 kB is refused with a message', async () => {
  const long = await served.post('/mapping', { type: 'data', payload: `{"a":"${'x'.repeat(100_000)}"}` })
  expect(long).toMatchObject({ status: 413, text: expect.stringContaining('100 kB') })
  const other = await served.post('/records/choose', { do: 'replay-all', containing: 'x'.repeat(100_000) })
  expect(other.status).toBe(413)
})

test('the page says if no row waits, and the rule of each field stands beside a payload', async () => {
  expect((await served.get('/mapping')).text).toContain('No row waits in the outbox.')
  const { text } = await served.post('/mapping', { type: 'data', payload: payloadOf() })
  expect(text).toMatch(/customer_id<\/code>.*customerId<\/code>.*string; at most 10 characters; required/)
})

test('the page shows each problem of the mapping files with its line', async () => {
  const dir = mappingFiles({ 'data.yaml': 'type: data\nendpoint: dat\nfields: {}\nbody: {}\n' })
  await using broken = await openConsole(fixture.context(null, { MAPPINGS_DIR: dir }))
  expect((await broken.get('/mapping')).text).toMatch(/data\.yaml:2:\d+/)
})
