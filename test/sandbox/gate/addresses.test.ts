import { expect, test } from 'vitest'
import { isAddressOrNetwork, isListedAddress } from '../../../src/sandbox/gate/addresses.ts'
import { readSettingsFromEnvironment } from '../../../src/sandbox/readEnvironment.ts'

test.each([
  ['10.1.2.3', '10.1.2.3'],
  ['10.1.2.3', '10.0.0.0/8'],
  ['10.1.2.3', '10.1.2.200/24'],
  ['10.1.2.3', '0.0.0.0/0'],
  ['10.1.2.3', '::ffff:10.1.2.3'],
  ['::1', '::1'],
  ['2001:db8::17', '2001:0db8::/32'],
  ['fe80::1%eth0', 'fe80::/10'],
])('%s is allowed by %s', (address, entry) => {
  expect(isAddressOrNetwork(entry)).toBe(true)
  expect(isListedAddress(address, ['192.0.2.1', entry])).toBe(true)
})

test.each([
  ['10.1.2.3', '10.1.2.4'],
  ['11.1.2.3', '10.0.0.0/8'],
  ['2001:db9::17', '2001:db8::/32'],
  ['', '0.0.0.0/0'],
])('%s is not allowed by %s', (address, entry) => {
  expect(isListedAddress(address, [entry])).toBe(false)
})

test.each([
  'localhost',
  '10.0.0.300',
  '10.0.0.0/33',
  '10.0.0.0/',
  '10.0.0',
  '*',
  '::1/129',
  '10.0.0.1:8080',
])('SANDBOX_ALLOWED_ADDRESSES=%s would match no address, and is refused at the start', (entry) => {
  const env = { SANDBOX_DATABASE_URL: 'postgres://x', SANDBOX_ALLOWED_ADDRESSES: `127.0.0.1,${entry}` }
  const read = readSettingsFromEnvironment(env, () => '')
  expect(read).toMatchObject({
    kind: 'invalid',
    problems: [expect.stringMatching(/^SANDBOX_ALLOWED_ADDRESSES: .* is not an address or a network/)],
  })
})

test('an empty list, which would match no address either, is refused', () => {
  const env = { SANDBOX_DATABASE_URL: 'postgres://x', SANDBOX_ALLOWED_ADDRESSES: ' , ' }
  expect(readSettingsFromEnvironment(env, () => '').kind).toBe('invalid')
})
