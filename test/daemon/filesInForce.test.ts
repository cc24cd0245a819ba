import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { readFilesInForce } from '../../src/daemon/filesInForce.ts'

const mapping = (type: string) =>
  `type: ${type}\nendpoint: data\nfields:\n  who: { from: customerId, type: string }\nbody: { who: "\${who}" }\n`
const outboxYaml = 'table: orders\nid: id\ntype: { constant: a }\npayload: payload\nstate: none\nsequence: id\n'

function setup() {
  const folder = mkdtempSync(join(tmpdir(), 'files-'))
  const told: string[] = []
  writeFileSync(join(folder, 'a.yaml'), mapping('a'))
  const files = readFilesInForce(folder, {
    onLoaded: (mappings, isOtherTable) => told.push(`${[...mappings.keys()]}${isOtherTable ? ', other table' : ''}`),
    onBroken: () => told.push('broken'),
  })
  return { folder, told, files, write: (name: string, text: string) => writeFileSync(join(folder, name), text) }
}

test('a reload takes the mappings into force, and says whether the table is read in another way', () => {
  const { files, told, write } = setup()
  write('b.yaml', mapping('b'))
  files.reload()
  write('outbox.yaml', outboxYaml)
  files.reload()
  files.reload()
  expect(told).toEqual(['a,b', 'a,b, other table', 'a,b'])
  expect(files.outboxTable()).toMatchObject({ table: 'orders' })
})

test('what is broken changes nothing, and is told until it is mended', () => {
  const { files, told, write } = setup()
  write('a.yaml', mapping('a').replace('endpoint', 'endpiont'))
  files.reload()
  expect([...files.mappings().keys()]).toEqual(['a'])
  expect(files.broken()).toContain('a.yaml')
  write('a.yaml', mapping('a'))
  files.reload()
  expect({ told, broken: files.broken() }).toEqual({ told: ['broken', 'a'], broken: null })
})

test('a look says that the next start would fail, and takes nothing into force', () => {
  const { folder, files, told, write } = setup()
  write('outbox.yaml', 'table: [')
  files.look()
  expect(files.broken()).toContain('outbox.yaml')
  rmSync(join(folder, 'outbox.yaml'))
  write('b.yaml', mapping('b'))
  files.look()
  expect({ told, broken: files.broken(), types: [...files.mappings().keys()] }).toEqual({
    told: [],
    broken: null,
    types: ['a'],
  })
})

test('a table that is not as outbox.yaml says is read as before; a look goes on saying so, another reload tries it again', () => {
  const { files, told, write } = setup()
  expect(files.refuseOutboxTable(new Error('no table orders'))).toBe(false) // nothing held before
  write('outbox.yaml', outboxYaml)
  files.reload()
  expect(files.refuseOutboxTable(new Error('no table orders'))).toBe(true)
  expect(files.outboxTable()).toBe(null)
  files.look()
  expect(files.broken()).toBe('no table orders')
  files.reload()
  expect(told).toEqual(['a, other table', 'a, other table'])
})
