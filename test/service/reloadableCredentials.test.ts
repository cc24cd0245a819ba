import { expect, test } from 'vitest'
import type { CredentialKind, Credentials } from '../../src/config.ts'
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

function setup() {
  const initial = { clientId: 'id', clientSecret: 'old', ca: 'ca', cert: 'c', key: 'k', proxy: 'p' }
  const { clientId, clientSecret, ca, cert, key, proxy } = initial
  const files: Record<CredentialKind, Partial<Credentials> | string> = {
    secret: { clientId, clientSecret },
    authority: { ca },
    certificate: { cert, key },
    proxy: { proxy },
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
