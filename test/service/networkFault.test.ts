import { expect, test } from 'vitest'
import { describeNetworkFault, isHostError } from '../../src/service/networkFault.ts'

const coded = (code: string) => Object.assign(new Error('told'), { code })

test.each([
  ['EMFILE', 'file descriptor'],
  ['ENFILE', 'file descriptor'],
  ['ENOBUFS', 'memory'],
  ['EADDRNOTAVAIL', 'port'],
  ['ENOSPC', 'disk'],
  ['ENOTFOUND', 'look up'],
  ['EAI_AGAIN', 'look up'],
  ['PROXY_EAI_AGAIN', 'look up the proxy’s name'],
  ['PROXY_EMFILE', 'file descriptor'],
])('%s is a lack of this host, and is told as one', (code, words) => {
  const error = new Error('connect failed', { cause: coded(code) })
  expect(isHostError(error)).toBe(true)
  expect(describeNetworkFault(error, false)).toMatch(/^.*this host.*|^a disk of this host/)
  expect(describeNetworkFault(error, false)).toContain(words)
})

test.each([
  'ECONNREFUSED',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'PROXY_407',
  'PROXY_ECONNREFUSED',
  '',
])('%s is not a lack of this host', (code) => {
  expect(isHostError(coded(code))).toBe(false)
})
