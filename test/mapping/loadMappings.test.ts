import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { expect, test } from 'vitest'
import { loadMappings } from '../../src/mapping/loadMappings.ts'
import { mapRecord } from '../../src/mapping/mapRecord.ts'
import { loadOutboxFile } from '../../src/outbox/readOutboxFile.ts'
import { FilesInvalid } from '../../src/yaml/yamlDocument.ts'
import { outcomeOf } from './mappingOf.ts'

/** A new folder with these files, removed at the end of the test. */
function folderOf(files: Record<string, string | Uint8Array>): Disposable & { dir: string } {
  const dir = mkdtempSync(path.join(tmpdir(), 'mappings-'))
  for (const [name, content] of Object.entries(files)) writeFileSync(path.join(dir, name), content)
  return { dir, [Symbol.dispose]: () => rmSync(dir, { recursive: true }) }
}

function problemsOf(dir: string): string[] {
  try {
    loadMappings(dir)
    return []
  } catch (error) {
    if (!(error instanceof FilesInvalid)) throw error
    expect(error.message.split('\n')).toHaveLength(error.problems.length)
    return error.message.split('\n').map((line) => line.replace(dir, '').replace(/^\//, ''))
  }
}

const valid = (type: string) => `type: ${type}\nendpoint: data\nfields: {}\nbody: {}\n`

test('the shipped mappings map records of the interface', () => {
  const mappings = loadMappings('mappings')
  expect([...mappings.keys()].sort()).toEqual(['data', 'order'])
  const data = '{"customerId":"C1","orderDate":"2026-11-21T00:54:00+01:00","amount":1234.5,"field2":"x"}'
  const order = '{"customerId":"123e4567-e89b-12d3-a456-426614174000","items":[{"price":1.10}]}'
  const request = (type: string, payload: string) => {
    const mapping = mappings.get(type)
    return mapping && outcomeOf(mapRecord(mapping, payload, 'id'))
  }
  expect(request('data', data)).toBe(
    '{"customerId":"C1","data":{"field1":"value1","field2":"x","customer_id":"C1","order_date":"2026-11-20T23:54:00Z","total_amount":1234.50}}',
  )
  expect(request('order', order)).toBe('{"customerId":"123e4567-e89b-12d3-a456-426614174000","items":[{"price":1.10}]}')
  expect(mappings.get('data')).toMatchObject({ endpoint: 'data', track: true, sendsSubmissionId: false })
  expect(mappings.get('order')).toMatchObject({ endpoint: 'orders', track: true })
})

test('outbox.yaml, schemas, hidden files and subfolders are not mapping files', () => {
  using folder = folderOf({
    'a.yaml': valid('a'),
    'b.yml': valid('b'),
    'outbox.yaml': 'table: x',
    'mapping.schema.json': '{}',
    '.a.yaml.swp': 'x',
    '.hidden.yaml': 'x',
    'notes.txt': 'x',
  })
  mkdirSync(path.join(folder.dir, 'examples.yaml'))
  expect([...loadMappings(folder.dir).keys()]).toEqual(['a', 'b'])
})

test.each(['outbox.yml', 'Outbox.yaml', 'OUTBOX.YAML'])('%s is a problem, because only outbox.yaml is read', (name) => {
  using folder = folderOf({ 'a.yaml': valid('a'), [name]: 'table: x' })
  const problem = `${name}: the file is not read: rename it to outbox.yaml, or remove it`
  expect(problemsOf(folder.dir)).toEqual([problem])
  expect(() => loadOutboxFile(folder.dir)).toThrow(problem)
})

test('the problems of all files are reported at once', () => {
  using folder = folderOf({
    'a.yaml': valid('a').replace('data', 'dta'),
    'b.yaml': 'type: [',
    'c.yaml': valid('c').replace('body: {}', 'body: { x: "${y}" }'),
    'd.yaml': Uint8Array.of(0x74, 0xff),
    'e.yaml': '',
  })
  expect(problemsOf(folder.dir)).toEqual([
    'a.yaml:2:11 "endpoint" must be data or orders, and is "dta"; did you mean "data"?',
    expect.stringMatching(/^b\.yaml:1:\d+ not readable as YAML: /),
    'c.yaml:4:12 ${y} is not defined under fields',
    'd.yaml: the file cannot be read: it is not UTF-8 text',
    'e.yaml:1:1 the file is empty',
  ])
})

test('a second file for a type is a problem, even if the first file has other problems', () => {
  using folder = folderOf({ 'a.yaml': `${valid('t')}extra: 1\n`, 'b.yaml': valid('t') })
  expect(problemsOf(folder.dir)).toEqual([
    expect.stringMatching(/^a\.yaml:5:1 unknown key "extra"/),
    expect.stringMatching(/^b\.yaml:1:7 "t" is already the type of .*a\.yaml: one file per type$/),
  ])
})

test('a folder that is missing or has no mapping file is a problem', () => {
  using folder = folderOf({})
  expect(problemsOf(folder.dir)).toEqual([': there is no mapping file (*.yaml) in this folder: nothing could be sent'])
  expect(problemsOf(path.join(folder.dir, 'absent'))).toEqual([
    expect.stringContaining('the folder cannot be read: ENOENT'),
  ])
})
