import { mkdtempSync, writeFileSync } from 'node:fs'
import { createServer, type ServerOptions } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { ClocksAndCertificates } from '../../../src/commands/check/finding.ts'
import {
  checkService,
  judgeCertificates,
  parseConfiguredCertificateExpiries,
} from '../../../src/commands/check/service.ts'
import { readConfig } from '../../../src/config.ts'
import { createAuthority } from '../../support/certificates.ts'
import { listenOnLoopback } from '../../support/listenOnLoopback.ts'

const dayMs = 86_400_000
const nowMs = Date.parse('2026-11-22T00:00:00Z')

test.each([
  [30, 'ok', 'expires on 2026-12-22, in 30 d'],
  [13, 'warning', 'expires on 2026-12-05, in 13 d'],
  [-1, 'problem', 'expired on 2026-11-21'],
] as const)('a certificate that ends in %i days: %s', (days, mark, says) => {
  const [found] = judgeCertificates(
    [{ whose: 'the certificate of the service', expiresAtMs: nowMs + days * dayMs }],
    nowMs,
  )
  expect(found).toMatchObject({ mark, message: expect.stringContaining(`the certificate of the service ${says}`) })
})

test('the certificate that expires first decides, and without certificates there is no finding', () => {
  const ends = [100, 3, 50].map((days) => ({ whose: `${days}`, expiresAtMs: nowMs + days * dayMs }))
  expect(judgeCertificates(ends, nowMs)[0]?.mark).toBe('warning')
  expect(judgeCertificates([], nowMs)).toEqual([])
})

test('our certificates are read from their files, and a file with several by the first expiry', () => {
  const authority = createAuthority('ours')
  const untilMs = Math.trunc(nowMs / 1000) * 1000
  const { cert } = authority.issue({ name: 'client', untilMs })
  expect(parseConfiguredCertificateExpiries({ cert, ca: null })).toEqual([
    { whose: 'our client certificate (SERVICE_CERT_FILE)', expiresAtMs: untilMs },
  ])
  expect(parseConfiguredCertificateExpiries({ cert: null, ca: cert + authority.cert })).toMatchObject([
    { expiresAtMs: untilMs },
  ])
})

describe('a service over TLS', () => {
  const ours = createAuthority('ours')
  const server = ours.issue({ name: 'localhost', hosts: ['localhost'], untilMs: Date.now() + 9.5 * dayMs })

  test('is ok if it accepts our connection, with a warning if its certificate expires soon', async () => {
    const { findings, certificates } = await readOrWarn(server, { SERVICE_CA_FILE: file(ours.cert) })
    expect(findings.map(({ mark }) => mark)).toEqual(['ok', 'ok'])
    expect(judgeCertificates(certificates, Date.now())[0]).toMatchObject({
      mark: 'warning',
      message: expect.stringMatching(/^the certificate of the service expires on .*, in 9 d/),
    })
  })

  test('is a problem if its authority is unknown, and the message names SERVICE_CA_FILE', async () => {
    const { findings } = await readOrWarn(server, {})
    expect(findings[0]).toMatchObject({ mark: 'problem', message: expect.stringContaining('SERVICE_CA_FILE') })
  })

  test('is a problem if it demands a client certificate, and the message names SERVICE_CERT_FILE', async () => {
    const { findings } = await readOrWarn(
      { ...server, ca: ours.cert, requestCert: true },
      { SERVICE_CA_FILE: file(ours.cert) },
    )
    expect(findings[0]).toMatchObject({ mark: 'problem', message: expect.stringContaining('set SERVICE_CERT_FILE') })
  })
})

function file(text: string): string {
  const path = join(mkdtempSync(join(tmpdir(), 'check-')), 'pem')
  writeFileSync(path, text)
  return path
}

async function readOrWarn(options: ServerOptions, env: Record<string, string>) {
  const server = createServer(options, (request, response) => {
    request.resume()
    const isToken = request.url === '/oauth/token'
    response.writeHead(isToken ? 200 : 404, { 'content-type': 'application/json' })
    response.end(isToken ? '{"access_token":"x","token_type":"Bearer","expires_in":3600}' : '{"code":"E001"}')
  })
  const listening = await listenOnLoopback(server)
  onTestFinished(() => listening[Symbol.asyncDispose]())
  const url = `https://localhost:${listening.port}`
  const config = readConfig({
    DATABASE_URL: 'postgres://nobody@127.0.0.1:1/none', // no ledger: it is asked anyway
    SERVICE_BASE_URL: url,
    SERVICE_AUTH_URL: url,
    SERVICE_CLIENT_ID: 'id',
    SERVICE_CLIENT_SECRET: 'secret',
    ...env,
  })
  const noticed: ClocksAndCertificates = { clocks: [], certificates: [] }
  const findings = await checkService(config, new AbortController().signal, true, noticed)
  return { findings, certificates: noticed.certificates }
}
