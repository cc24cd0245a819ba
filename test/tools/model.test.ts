import { expect, test } from 'vitest'
import { readRuns } from '../../tools/model/runs.ts'

test.each(readRuns().filter(({ isSmall }) => isSmall))('$kind: $name', ({ kind, check }) => {
  expect(check().broken).toEqual(kind === 'ok' ? null : expect.any(String))
})
