import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { command as map } from '../../src/commands/map.ts'
import type { OptionsOf } from '../../src/commands/terminal/command.ts'
import { splitPayloads } from '../../src/operations/mapRecords.ts'
import { testContext } from '../support/context.ts'
import { mappingFiles, openFixtureForFile, payloadOf } from './fixture.ts'

const mappings = join(import.meta.dirname, '..', '..', 'mappings')

/** Maps a file, without a database. */
async function runFile(
  content: string | Buffer,
  options: OptionsOf<typeof map> = {},
  mappingsDir = mappings,
  env: Record<string, string> = {},
) {
  const file = join(mappingFiles({}), 'payload.json')
  writeFileSync(file, content)
  const context = testContext({ MAPPINGS_DIR: mappingsDir, ...env })
  const code = await map.action(context, file, options)
  return { code, printed: context.printed(), messages: context.messages() }
}

describe('a file', () => {
  test('is shown field by field with its request, without a database', async () => {
    const { code, printed } = await runFile(payloadOf({ amount: '1234.5' }), { type: 'data' })
    expect(code).toBe(0)
    expect(printed).toContain('becomes POST /api/v1/data')
    expect(printed).toMatch(/total_amount +amount +1234\.5 +1234\.50\n/)
    expect(printed).toMatch(/order_date +orderDate +"2026-11-03T10:00:00\+01:00" +"2026-11-03T09:00:00Z"\n/)
    expect(printed).toMatch(/field1 +field1 +\(missing\) +"value1"\n/)
    expect(printed).toContain('"total_amount":1234.50')
  })

  test('is shown with the error of each field, and exits with 1', async () => {
    const { code, printed } = await runFile(payloadOf({ amount: '1.234', customerId: '"much too long an id"' }), {
      type: 'data',
    })
    expect(code).toBe(1)
    expect(printed).toContain('cannot be sent')
    expect(printed).toMatch(/customer_id +customerId +/)
    expect(printed).toMatch(/total_amount +amount +/)
  })

  test('of several payloads, one on each line, is summed up by how many map', async () => {
    const { code, messages, printed } = await runFile(`${payloadOf()}\n\n${payloadOf({ amount: '"x"' })}\n`, {
      type: 'data',
    })
    expect(code).toBe(1)
    expect(messages).toBe('1 of 2 records map.\n')
    expect(printed).toContain('line 3 of type data cannot be sent')
  })

  test('is refused like a row with this text: a byte order mark, NUL, or more bytes than PAYLOAD_MAX_BYTES', async () => {
    const marked = await runFile(`\uFEFF${payloadOf()}\n${payloadOf()}`, { type: 'data' })
    expect(marked.code).toBe(1)
    expect(marked.printed).toMatch(
      /line 1 of type data cannot be sent:\n.*\n.*begins with a byte order mark \(U\+FEFF\)/,
    )
    expect(marked.messages).toBe('1 of 2 records map.\n')
    const nul = await runFile('{"a":"\0"}', { type: 'data' })
    expect(nul.printed).toContain('the payload contains a NUL character, which JSON text cannot')
    const payload = payloadOf({ note: '"ü"' })
    const bytes = Buffer.byteLength(payload)
    const limited = (most: number) =>
      runFile(`${payload}\r\n`, { type: 'data' }, mappings, { PAYLOAD_MAX_BYTES: String(most) })
    expect((await limited(bytes)).code).toBe(0)
    const large = await limited(bytes - 1)
    expect(large.code).toBe(1)
    expect(large.printed).toContain(
      `the payload has ${bytes} bytes, more than the ${bytes - 1} that PAYLOAD_MAX_BYTES allows`,
    )
  })

  test('that is not UTF-8 is refused', async () => {
    const { code, messages } = await runFile(Buffer.from(payloadOf({ note: '"ü"' }), 'latin1'), { type: 'data' })
    expect(code).toBe(2)
    expect(messages).toContain('payload.json cannot be read: it is not UTF-8 text')
  })

  test('that maps, but whose body does not fit the interface, gets a warning', async () => {
    const dir = mappingFiles({
      'data.yaml':
        'type: data\nendpoint: data\nfields:\n  c: { from: customerId, type: string }\nbody: { customerID: "${c}" }\n',
    })
    const { code, messages } = await runFile(payloadOf(), {}, dir)
    expect(code).toBe(0)
    expect(messages).toMatch(/^warning: mapping of data: customerId is not in the body.*did you mean "customerID"\?$/m)
    expect((await runFile(payloadOf(), { type: 'data' })).messages).toBe('')
  })

  test('is shown as JSON with --json', async () => {
    const { printed } = await runFile(payloadOf(), { type: 'data', json: true })
    expect(JSON.parse(printed)).toMatchObject({ type: 'data', maps: true, path: '/api/v1/data' })
    const bad = await runFile('{}', { type: 'data', json: true })
    expect(JSON.parse(bad.printed)).toMatchObject({ maps: false, errors: expect.arrayContaining([expect.anything()]) })
  })

  test('is not mapped if the folder has an outbox.yml, which is misnamed', async () => {
    const dir = mappingFiles({
      'data.yaml': readFileSync(join(mappings, 'data.yaml'), 'utf8'),
      'outbox.yml': 'table: x',
    })
    await expect(runFile(payloadOf(), {}, dir)).rejects.toThrow('outbox.yml: the file is not read')
  })

  test('needs --type, unless there is only one mapping', async () => {
    const asked = await runFile(payloadOf())
    expect(asked.code).toBe(2)
    expect(asked.messages).toContain('data, order')
    const meant = await runFile(payloadOf(), { type: 'ordr' })
    expect(meant.code).toBe(2)
    expect(meant.messages).toContain('did you mean "order"?')
    const one = mappingFiles({
      'a.yaml': 'type: a\nendpoint: data\nfields:\n  v: { from: v, type: string }\nbody:\n  v: ${v}\n',
    })
    expect((await runFile('{"v":"x"}', {}, one)).code).toBe(0)
  })

  test('may be standard input', async () => {
    const context = testContext({ MAPPINGS_DIR: mappings })
    context.stdin.end(payloadOf())
    expect(await map.action(context, '-', { type: 'data' })).toBe(0)
  })

  test('that does not exist exits with 2, and an empty one with 3', async () => {
    const context = testContext({ MAPPINGS_DIR: mappings })
    expect(await map.action(context, '/nowhere.json', { type: 'data' })).toBe(2)
    expect((await runFile(' \n', { type: 'data' })).code).toBe(3)
  })
})

test('an object over several lines is one payload, and each line that is an object is a payload', () => {
  expect(splitPayloads('{\n "a": 1\n}')).toHaveLength(1)
  expect(splitPayloads('{"a":1}\n{"a":2}')).toEqual([
    { name: 'line 1', payload: '{"a":1}' },
    { name: 'line 2', payload: '{"a":2}' },
  ])
  expect(splitPayloads('{"a":1}\n{"a":}')).toHaveLength(2)
  expect(splitPayloads('{"a":1}\n{"a":2}\n{"a":')).toHaveLength(3)
  expect(splitPayloads('{"a":{"b":1}\n"c":{"d":1}}')).toHaveLength(1)
  expect(splitPayloads('{"a":[\n{"b":1}\n{"b":2}]}')).toHaveLength(1)
  expect(splitPayloads('{\n "a": \n}')).toHaveLength(1)
})

test.each([
  [undefined, {}],
  ['x.json', { outbox: '1' }],
  [undefined, { outbox: '1', allNew: true }],
  [undefined, { outbox: '1', type: 'data' }],
  ['x.json', { limit: '5' }],
])('%j %j exits with 2', async (file, options) => {
  expect(await map.action(testContext({ MAPPINGS_DIR: mappings }), file, options)).toBe(2)
})

describe('the outbox', () => {
  const fixture = openFixtureForFile()

  async function run(options: OptionsOf<typeof map>) {
    const context = fixture.context()
    const code = await map.action(context, undefined, options)
    return { code, printed: context.printed(), messages: context.messages() }
  }

  test('a row is shown by its id and does not change', async () => {
    const id = await fixture.row(payloadOf({ amount: '5.10' }))
    const { code, printed } = await run({ outbox: id })
    expect(code).toBe(0)
    expect(printed).toContain(`outbox:${id} of type data becomes POST`)
    expect(printed).toContain('"total_amount":5.10')
    const { rows } = await fixture.ledger.pool.query('select status, updated_at from outbox')
    expect(rows).toEqual([{ status: 'new', updated_at: null }])
  })

  test('a row that does not exist exits with 3, and one whose type has no mapping with 1', async () => {
    expect((await run({ outbox: '999' })).code).toBe(3)
    const id = await fixture.row('{}', 'invoice')
    const { code, printed } = await run({ outbox: id })
    expect(code).toBe(1)
    expect(printed).toContain('no mapping file for the type "invoice" (there are: data, order)')
    expect(printed).not.toContain('did you mean')
  })

  test('control characters from the ERP do not reach the terminal', async () => {
    const { printed } = await run({ outbox: await fixture.row('{}', 'a\u001b[31m') })
    expect(printed).toContain('of type a\\u001b[31m cannot be sent')
    expect(printed).not.toContain('\u001b')
  })

  test('for a misspelt type, map suggests the type that is probably meant', async () => {
    const { printed } = await run({ outbox: await fixture.row('{}', 'Oredr') })
    expect(printed).toContain('no mapping file for the type "Oredr" (there are: data, order); did you mean "order"?')
  })

  test('--all-new sums up all waiting rows by their errors', async () => {
    await fixture.row(payloadOf())
    for (const amount of ['100000000', '1000000000', '10000000000']) await fixture.row(payloadOf({ amount }))
    const { code, printed } = await run({ allNew: true })
    expect(code).toBe(1)
    expect(printed).toContain('1 of 4 records map.')
    expect(printed).toMatch(/3 +data +total_amount +amount +outbox:\d+/)
    expect((await run({ allNew: true, limit: '1' })).code).toBe(0)
    await fixture.ledger.pool.query('delete from outbox')
    expect((await run({ allNew: true })).code).toBe(3)
  })
})
