import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { mutations } from '../../../tools/crash/mutations.ts'

test.each(Object.entries(mutations))('mutation %s still finds the code that it changes', (_, { patches }) => {
  for (const { file, from } of patches) {
    const text = readFileSync(join(import.meta.dirname, '..', '..', '..', file), 'utf8')
    expect(text.split(from)).toHaveLength(2)
  }
})
