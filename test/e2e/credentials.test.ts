import { randomBytes } from 'node:crypto'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { expect, onTestFinished, test } from 'vitest'
import { createAuthority, type Identity } from '../support/certificates.ts'
import { startDaemonProcess } from '../support/daemon.ts'
import { listenOnLoopback } from '../support/listenOnLoopback.ts'
import { scrape } from '../support/scrape.ts'
import { statusSays } from '../support/statusSays.ts'
import { until } from '../support/until.ts'
import { setup } from './faults/harness.ts'

const dayMs = 86_400_000

/** A server in front of the sandbox that demands a client certificate and one secret. The test can change both. */
async function startFront(sandboxUrl: string, server: Identity, authority: Identity) {
  let knownSecret = 'first'
  const front: Server = createServer(
    { ...server, ca: authority.cert, requestCert: true },
    async (request, response) => {
      const body = await buffer(request)
      const isToken = request.url === '/oauth/token'
      const form = new URLSearchParams(String(body))
      const isKnown = form.get('client_secret') === knownSecret
      if (isToken && !isKnown) return response.writeHead(401).end('{"error":"invalid_client"}')
      if (isToken) form.set('client_secret', 'sandbox-secret')
      const { method = 'GET', url, headers } = request
      const kept = ['authorization', 'content-type', 'idempotency-key'].flatMap((name) =>
        headers[name] === undefined ? [] : [[name, String(headers[name])] as [string, string]],
      )
      const sent = method === 'GET' ? {} : { body: isToken ? String(form) : body }
      const answer = await fetch(`${sandboxUrl}${url}`, { method, headers: kept, ...sent })
      response.writeHead(answer.status, Object.fromEntries(answer.headers)).end(await answer.text())
    },
  )
  const listening = await listenOnLoopback(front)
  onTestFinished(() => listening[Symbol.asyncDispose]())
  return {
    url: `https://localhost:${listening.port}`,
    /** Accepts only clients of this authority from now on, and ends open connections. */
    believe(another: Identity) {
      front.setSecureContext({ ...server, ca: another.cert })
      front.setTicketKeys(randomBytes(48)) // so that no TLS session is resumed
      front.closeAllConnections()
    },
    knows(secret: string) {
      knownSecret = secret
    },
  }
}

test('certificate and secret are renewed while their files are half written: both are used without a restart', async () => {
  await using harness = await setup()
  const first = createAuthority('first')
  const second = createAuthority('second')
  const folder = mkdtempSync(join(tmpdir(), 'credentials-'))
  const file = (name: string, text: string) => {
    writeFileSync(join(folder, name), text)
    return join(folder, name)
  }
  const before = first.issue({ name: 'client', untilMs: Date.now() + 30 * dayMs })
  const after = second.issue({ name: 'client', untilMs: Date.now() + 90 * dayMs })
  const front = await startFront(harness.sandbox.url, first.issue({ name: 'localhost', hosts: ['localhost'] }), first)
  const env = { ...harness.env, SERVICE_BASE_URL: front.url, SERVICE_AUTH_URL: front.url, SERVICE_CLIENT_SECRET: '' }
  const files = {
    SERVICE_CA_FILE: file('ca.pem', first.cert),
    SERVICE_CERT_FILE: file('cert.pem', before.cert),
    SERVICE_KEY_FILE: file('key.pem', before.key),
    SERVICE_CLIENT_SECRET_FILE: file('secret', 'first\n'),
  }
  await using daemon = await startDaemonProcess({ ...env, ...files })
  const logged = (part: string) => daemon.line((line) => line.includes(part))
  const { port } = JSON.parse(await logged('"event":"listening"'))
  const clientEnd = async () =>
    Number(/certificate_expiry_timestamp_seconds\{certificate="client"\} (\S+)/.exec(await scrape({ port }))?.[1])
  await harness.insert('before-')
  await harness.becomes('before-', 'completed')
  const firstEnd = await clientEnd()

  // The service accepts only the second authority from now on.
  front.believe(second)
  await harness.insert('between-')
  await until(harness.pauses, (pauses) => pauses.includes('unreachable'))
  expect(await statusSays(env)).toMatch(/SERVICE_CERT_FILE/)
  file('cert.pem', after.cert)
  expect(await logged('the daemon keeps the previous one')).toContain(
    'SERVICE_CERT_FILE cannot be used with SERVICE_KEY_FILE',
  )
  await until(
    () => statusSays(env),
    (says) => says.includes('credentials_broken'),
  )
  file('key.pem', after.key)
  await logged('client certificate changed')
  const { posts, steps } = await harness.becomes('between-', 'completed')
  expect(posts).toHaveLength(1)
  expect(steps.join()).not.toContain('uncertain')
  expect(await clientEnd()).toBeGreaterThan(firstEnd)

  // The issuer has a new secret, and former tokens are invalid.
  front.knows('second')
  file('secret', '')
  await harness.control('POST', 'tokens/revoke')
  await harness.insert('after-')
  expect(await logged('client id or secret cannot be used')).toContain('SERVICE_CLIENT_SECRET must not be empty')
  file('secret', 'second\n')
  await logged('client id or secret changed')
  await harness.becomes('after-', 'completed')
  await until(
    () => statusSays(env),
    (says) => !says.includes('credentials_broken'),
  )
  expect(daemon.lastLines()).not.toMatch(/"second"|PRIVATE KEY/)
})

test('if a database password changes in its file, the daemon signs in again without a restart', async () => {
  await using harness = await setup()
  const folder = mkdtempSync(join(tmpdir(), 'credentials-'))
  const role = `renewed_${randomBytes(4).toString('hex')}`
  const file = join(folder, 'database_url')
  const give = (password: string) => {
    const url = new URL(harness.env.DATABASE_URL)
    Object.assign(url, { username: role, password })
    writeFileSync(file, `${url.href}\n`)
  }
  await harness.pool.query(`create role ${role} login superuser password 'first'`)
  give('first')
  {
    await using daemon = await startDaemonProcess({ ...harness.env, DATABASE_URL: '', DATABASE_URL_FILE: file })
    await harness.insert('before-')
    await harness.becomes('before-', 'completed')

    await harness.pool.query(`alter role ${role} password 'second'`)
    await harness.pool.query('select pg_terminate_backend(pid) from pg_stat_activity where usename = $1', [role])
    await harness.insert('between-')
    give('second')
    await daemon.line((line) => line.includes('DATABASE_URL changed'))
    await harness.becomes('between-', 'completed')
  }
  await harness.pool.query(`drop role ${role}`)
})
