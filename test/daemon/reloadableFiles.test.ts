import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createReloadableFiles } from '../../src/daemon/reloadableFiles.ts'

const mapping = (type: string) =>
  `type: ${type}\nendpoint: data\nfields:\n  who: { from: customerId, type: string }\nbody: { who: "\${who}" }\n`
const outboxYaml = 'table: orders\nid: id\ntype: { constant: a }\npayload: payload\nstate: none\nsequence: id\n'

function setup(refusal: Error | null = null) {
  const state = { refusal, failsToTell: false }
  const folder = mkdtempSync(join(tmpdir(), 'files-'))
  const told: string[] = []
  writeFileSync(join(folder, 'a.yaml'), mapping('a'))
  const files = createReloadableFiles(folder, {
    onLoaded: (mappings, isOtherTable) => told.push(`${[...mappings.keys()]}${isOtherTable ? ', other table' : ''}`),
    onBroken() {
      told.push('broken')
      if (state.failsToTell) throw new Error('nobody listens')
    },
    onRefused: () => told.push('refused'),
    tryTable: async () => state.refusal,
  })
  return { told, files, state, write: (name: string, text: string) => writeFileSync(join(folder, name), text) }
}

test('a reload applies the mapping files, and says whether the table is read differently', async () => {
  const { files, told, write } = setup()
  write('b.yaml', mapping('b'))
  await files.reload()
  write('outbox.yaml', outboxYaml)
  await files.reload()
  await files.reload()
  expect(told).toEqual(['a,b', 'a,b, other table', 'a,b'])
  expect(files.outboxTable()).toMatchObject({ table: 'orders' })
})

test('a broken file changes nothing and is reported until it is fixed', async () => {
  const { files, told, write } = setup()
  write('a.yaml', mapping('a').replace('endpoint', 'endpiont'))
  await files.reload()
  expect([...files.mappings().keys()]).toEqual(['a'])
  expect(files.broken()).toContain('a.yaml')
  write('a.yaml', mapping('a'))
  await files.reload()
  expect({ told, broken: files.broken() }).toEqual({ told: ['broken', 'a'], broken: null })
})

test('if outbox.yaml does not fit its table, the former files stay in force until a reload succeeds', async () => {
  const { files, told, write, state } = setup(new Error('no table orders'))
  write('outbox.yaml', outboxYaml)
  write('b.yaml', mapping('b'))
  expect(await files.reload()).toBe('no table orders')
  const types = [...files.mappings().keys()]
  expect({ told, types, broken: files.broken(), table: files.outboxTable() }).toEqual({
    told: ['refused'],
    types: ['a'],
    broken: 'no table orders',
    table: null,
  })
  state.refusal = null
  expect(await files.reload()).toBe(null)
  expect([...files.mappings().keys()]).toEqual(['a', 'b'])
  expect(files.outboxTable()).toMatchObject({ table: 'orders' })
})

test('a reload that failed unexpectedly does not stop the next one from working', async () => {
  const { files, state, write } = setup()
  state.failsToTell = true
  write('a.yaml', 'no mapping')
  await expect(files.reload()).rejects.toThrow('nobody listens')
  write('a.yaml', mapping('a'))
  expect(await files.reload()).toBe(null)
})
