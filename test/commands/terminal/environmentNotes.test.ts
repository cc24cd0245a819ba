import { expect, test } from 'vitest'
import { reviewNodeVariables } from '../../../src/commands/terminal/environment.ts'

test('a proxy that is set for other programs is named, and its password is not', () => {
  const { notes, warnings } = reviewNodeVariables({
    HTTPS_PROXY: 'http://me:hunter2@proxy.example:3128',
    no_proxy: 'localhost',
    HTTP_PROXY: '',
    HTTP_PORT: '9464',
  })
  expect(notes).toEqual([expect.stringMatching(/^HTTPS_PROXY, no_proxy set, but outboxd does not use them/)])
  expect(notes.join()).not.toContain('hunter2')
  expect(warnings).toEqual([])
})

test('whom Node believes besides is said, and where that does not count', () => {
  const extra = { NODE_EXTRA_CA_CERTS: '/etc/ca.pem', NODE_OPTIONS: '--max-old-space-size=100 --use-system-ca' }
  expect(reviewNodeVariables(extra).notes).toEqual([expect.stringMatching(/^NODE_EXTRA_CA_CERTS, NODE_OPTIONS set/)])
  expect(reviewNodeVariables({ ...extra, SERVICE_CA_FILE: 'ours.pem' }).notes).toEqual([
    expect.stringContaining('only to the databases'),
  ])
})

test.each([
  '--tls-keylog=/tmp/keys',
  '--inspect',
  '--inspect-brk=0.0.0.0:9229',
])('%s is warned of: it gives secrets away', (option) => {
  const { warnings } = reviewNodeVariables({ NODE_OPTIONS: `--trace-warnings ${option}` })
  expect(warnings).toEqual([
    expect.stringContaining(`NODE_OPTIONS has ${option.replace(/-brk|=.*/g, '').slice(0, 12)}`),
  ])
})

test('what does not concern connections is not told', () => {
  expect(reviewNodeVariables({ NODE_OPTIONS: '--max-old-space-size=100', PATH: '/bin' })).toEqual({
    warnings: [],
    notes: [],
  })
})
