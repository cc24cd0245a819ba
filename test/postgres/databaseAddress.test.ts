import { expect, test } from 'vitest'
import { createRenewableDatabaseAddress } from '../../src/postgres/databaseAddress.ts'

const first = 'postgres://erp:one@db.example:5432/erp?sslmode=require'

test.each([
  ['a different password', 'postgres://erp:two@db.example:5432/erp?sslmode=require'],
  ['a different user', 'postgresql://erp_2@db.example:5432/erp?sslmode=require'],
])('a new URL with %s is taken', (_, url) => {
  const { address, told } = setup({ url })
  address.renew()
  expect(address.now()).toBe(url)
  expect(told).toEqual(['renewed'])
})

test.each([
  'postgres://erp:one@other.example:5432/erp?sslmode=require',
  'postgres://erp:one@db.example:5432/other?sslmode=require',
  'postgres://erp:one@db.example:5432/erp?sslmode=disable',
])('a new URL of a different database, or with other options, is refused until a restart: %s', (url) => {
  const { address, told } = setup({ url })
  address.renew()
  expect(address.now()).toBe(first)
  expect(told).toEqual(['the new URL names a different database. Only a restart can change the database'])
})

test('an unchanged URL is not reported, and an unreadable file is', () => {
  const same = setup({ url: first })
  same.address.renew()
  expect(same.told).toEqual([])
  const unreadable = setup({ problem: 'DATABASE_URL_FILE: cannot read /nowhere (ENOENT)' })
  unreadable.address.renew()
  expect([unreadable.address.now(), ...unreadable.told]).toEqual([
    first,
    'DATABASE_URL_FILE: cannot read /nowhere (ENOENT)',
  ])
})

function setup(found: { url: string } | { problem: string }) {
  const told: string[] = []
  const address = createRenewableDatabaseAddress({
    url: first,
    read: () => found,
    onRenewed: () => told.push('renewed'),
    onRefused: (why) => told.push(why),
  })
  return { address, told }
}
