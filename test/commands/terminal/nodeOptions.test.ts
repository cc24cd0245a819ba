import { expect, test } from 'vitest'
import { findUnsafeNodeOptions } from '../../../src/commands/terminal/environment.ts'

test.each([
  '--tls-keylog=/tmp/keys',
  '--inspect',
  '--inspect-brk=0.0.0.0:9229',
])('%s in NODE_OPTIONS gets a warning because it reveals secrets', (option) => {
  expect(findUnsafeNodeOptions({ NODE_OPTIONS: `--trace-warnings ${option}` })).toEqual([
    expect.stringContaining(`NODE_OPTIONS has ${option.replace(/-brk|=.*/g, '').slice(0, 12)}`),
  ])
})

test('other Node options get no warning', () => {
  expect(findUnsafeNodeOptions({ NODE_OPTIONS: '--max-old-space-size=100', PATH: '/bin' })).toEqual([])
})
