import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { createMappingJsonSchema } from '../../src/mapping/mappingSchema.ts'

test('mapping.schema.json is current (npm test -- test/mapping/mappingSchema -u writes it)', async () => {
  await expect(createMappingJsonSchema()).toMatchFileSnapshot('../../mappings/mapping.schema.json')
})

test('each shipped mapping names its schema on its first line', () => {
  for (const file of ['data', 'order']) {
    const [first] = readFileSync(`mappings/${file}.yaml`, 'utf8').split('\n')
    expect(first).toBe('# yaml-language-server: $schema=./mapping.schema.json')
  }
})
