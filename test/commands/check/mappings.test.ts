import { join } from 'node:path'
import { expect, test } from 'vitest'
import { checkMappings, judgeWaitingRecords } from '../../../src/commands/check/mappings.ts'
import { readDatabaseConfig } from '../../../src/config.ts'
import { loadMappings } from '../../../src/mapping/loadMappings.ts'
import type { OutboxRecord } from '../../../src/model/outbox.ts'
import { dataFile, mappingFiles, payloadOf } from '../fixture.ts'

const shipped = join(import.meta.dirname, '../../../mappings')

function check(columns: string, mapping = dataFile) {
  const outbox = `table: sale\nid: id\ntype: { constant: data }\npayload: { columns: [${columns}] }\nstate: none\n`
  const MAPPINGS_DIR = mappingFiles({ 'outbox.yaml': outbox, 'data.yaml': mapping })
  return checkMappings(readDatabaseConfig({ DATABASE_URL: 'postgres://db/erp', MAPPINGS_DIR })).slice(1)
}

test.each([
  ['an optional field', dataFile.replace('type: string, required: true }\nbody', 'type: string }\nbody')],
  [
    'a required field with a default',
    dataFile.replace('type: string, required: true }\nbody', 'type: string, required: true, default: none }\nbody'),
  ],
])('%s reads a column that outbox.yaml does not list: only a warning, because records are not rejected', (_, mapping) => {
  expect(mapping).not.toBe(dataFile)
  expect(check('customerId, orderDate, amount, field1', mapping)).toEqual([
    {
      what: 'mapping of data',
      mark: 'warning',
      message: expect.stringMatching(/^field2 reads field2, but .*, so the value is always missing/),
    },
  ])
})

test('columns are not checked for the payload of captured documents, because their names are not known', () => {
  expect(check('document, id')).toEqual([])
})

test('waiting rows without a mapping file, or without a document to send, are not counted as rows that do not map', () => {
  const mappings = loadMappings(shipped)
  const record = (changed: Partial<OutboxRecord>): OutboxRecord => ({
    ...{
      outboxId: '1',
      type: 'data',
      key: null,
      createdAt: null,
      created: null,
      payload: payloadOf(),
      unreadable: null,
    },
    ...changed,
  })
  const bad = record({ payload: '{}' })
  const left = [record({ ...bad, type: 'unknown' }), record({ ...bad, noRecord: 'sale 1 was deleted' })]
  expect(judgeWaitingRecords(mappings, { records: left, isCut: false })).toEqual([])
  expect(judgeWaitingRecords(mappings, { records: [record({}), bad, ...left], isCut: true })).toMatchObject([
    { mark: 'warning', message: expect.stringContaining('1 of the first 2 waiting rows map.') },
  ])
})
