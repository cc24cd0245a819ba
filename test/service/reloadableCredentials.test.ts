import { expect, test } from 'vitest'
import type { CredentialKind, LiveSettings } from '../../src/config.ts'
import { createReloadableCredentials } from '../../src/service/reloadableCredentials.ts'

test('a changed credential is taken and reported, an unchanged one is not', () => {
  const { credentials, files, told } = setup()
  expect(credentials.renew(['secret', 'authority'])).toBe(false)
  const before = credentials.now()
  files.secret = { clientId: 'id', clientSecret: 'new' }
  expect(credentials.renew(['authority'])).toBe(false)
  expect(credentials.now()).toBe(before)
  expect(credentials.renew(['secret'])).toBe(true)
  expect(credentials.now()).toEqual({ ...before, clientSecret: 'new' })
  expect(told).toEqual(['secret renewed'])
})

test('a broken credential is reported once and the former stays in use; other credentials are taken', () => {
  const { credentials, files, told } = setup()
  files.secret = 'SERVICE_CLIENT_SECRET_FILE: cannot read it'
  files.authority = { ca: 'other' }
  credentials.renew(['secret', 'authority'])
  credentials.renew(['secret'])
  expect(credentials.now()).toMatchObject({ clientSecret: 'old', ca: 'other' })
  expect(credentials.broken()).toBe('SERVICE_CLIENT_SECRET_FILE: cannot read it')
  expect(told).toEqual(['secret broken', 'authority renewed'])
  files.secret = { clientId: 'id', clientSecret: 'old' }
  credentials.renew(['secret'])
  expect(credentials.broken()).toBeNull()
})

test('if the file of a proxy is suddenly empty, the proxy stays in use', () => {
  const { credentials, files } = setup()
  files.proxy = { proxy: null }
  credentials.renew(['proxy'])
  expect(credentials.now().proxy).toBe('p')
  expect(credentials.broken()).toBe('SERVICE_PROXY_FILE is empty')
})

const firstUrl = 'postgres://erp:one@db.example:5432/erp?sslmode=require'

test.each([
  ['password', 'postgres://erp:two@db.example:5432/erp?sslmode=require'],
  ['user', 'postgresql://erp_2@db.example:5432/erp?sslmode=require'],
  ['user and password behind ?', 'postgres://db.example:5432/erp?sslmode=require&user=erp@corp&password=two'],
])('a database URL with a different %s is taken', (_, databaseUrl) => {
  const { credentials, files } = setup()
  files.database = { databaseUrl }
  expect(credentials.renew(['database'])).toBe(true)
  expect(credentials.now().databaseUrl).toBe(databaseUrl)
})

test.each([
  'postgres://erp:one@other.example:5432/erp?sslmode=require',
  'postgres://erp:one@db.example:5432/other?sslmode=require',
  'postgres://erp:one@db.example:5432/erp?sslmode=disable',
  'postgres://erp:on',
])('a database URL of a different database, or with other options, is refused: %s', (databaseUrl) => {
  const { credentials, files } = setup()
  files.database = { databaseUrl }
  credentials.renew(['database'])
  expect(credentials.now().databaseUrl).toBe(firstUrl)
  expect(credentials.broken()).toBe('DATABASE_URL names a different database. Only a restart can change the database')
})

function setup() {
  const initial = {
    clientId: 'id',
    clientSecret: 'old',
    ca: 'ca',
    cert: 'c',
    key: 'k',
    proxy: 'p',
    databaseUrl: firstUrl,
  }
  const { clientId, clientSecret, ca, cert, key, proxy, databaseUrl } = initial
  const files: Record<CredentialKind, Partial<LiveSettings> | string> = {
    secret: { clientId, clientSecret },
    authority: { ca },
    certificate: { cert, key },
    proxy: { proxy },
    database: { databaseUrl },
  }
  const told: string[] = []
  const credentials = createReloadableCredentials({
    credentials: initial,
    read: (part) => files[part],
    onRenewed: (part) => told.push(`${part} renewed`),
    onBroken: (part) => told.push(`${part} broken`),
  })
  return { credentials, files, told }
}
