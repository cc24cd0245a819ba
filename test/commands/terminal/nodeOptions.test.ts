import { expect, test } from 'vitest'
import { findUnsafeNodeOptions } from '../../../src/commands/terminal/environment.ts'

test.each([
  '--tls-keylog=/tmp/keys',
  '--inspect',
  '--inspect-brk=0.0.0.0:9229',
])('%s is warned of: it gives secrets away', (option) => {
  expect(findUnsafeNodeOptions({ NODE_OPTIONS: `--trace-warnings ${option}` })).toEqual([
    expect.stringContaining(`NODE_OPTIONS has ${option.replace(/-brk|=.*/g, '').slice(0, 12)}`),
  ])
})

test('other options are not told', () => {
  expect(findUnsafeNodeOptions({ NODE_OPTIONS: '--max-old-space-size=100', PATH: '/bin' })).toEqual([])
})
