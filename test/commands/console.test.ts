import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { connect } from 'node:net'
import { networkInterfaces } from 'node:os'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { command as serveConsole } from '../../src/commands/console.ts'
import type { OptionsOf } from '../../src/commands/terminal/command.ts'
import { isPasswordCorrect, type PasswordHash, readPasswordHash } from '../../src/console/guard/passwordHash.ts'
import { type OpenedConsole, openConsole, visit } from '../console/openConsole.ts'
import { testContext } from '../support/context.ts'
import { dropRole, grantRole } from '../support/grantRole.ts'
import { setSettings } from '../support/ledger.ts'
import { openForFile } from '../support/openForFile.ts'
import { startProgram } from '../support/program.ts'
import { failedE003, mappingFiles, openFixture, payloadOf } from './fixture.ts'

const fixture = openForFile(openFixture)

const loopback = { port: 0, host: '127.0.0.1' }
const password = 'correct horse battery staple'

/** What `--hash-password` prints for a line on standard input. */
async function hashOf(input: string) {
  const context = testContext({})
  context.stdin.end(input)
  const code = await serveConsole.action(context, { ...loopback, hashPassword: true })
  return { code, printed: context.printed(), said: context.messages() }
}

describe('--hash-password', () => {
  test('prints the hash for the password file, and needs no database', async () => {
    const { code, printed, said } = await hashOf(`${password}\n`)
    expect({ code, said }).toEqual({ code: 0, said: '' })
    expect(await isPasswordCorrect(password, readPasswordHash(printed) as PasswordHash)).toBe(true)
    expect(printed).not.toContain('horse')
  })

  test('refuses a password of fewer than 12 characters', async () => {
    expect(await hashOf('hunter2')).toMatchObject({ code: 2, printed: '' })
    expect((await hashOf('')).said).toContain('the password has 0 characters: give 12 or more')
  })

  test('refuses a password of more than 1,000 bytes or of several lines', async () => {
    expect((await hashOf('x'.repeat(1_000))).code).toBe(0)
    expect(await hashOf('x'.repeat(1_001))).toMatchObject({ code: 2, printed: '' })
    expect((await hashOf('€'.repeat(334))).said).toContain('the password has 1002 bytes: give at most 1000')
    expect((await hashOf(`${password}\nsecond line`)).said).toContain('more than one line')
  })
})

describe('the console does not start', () => {
  const refused = async (options: Partial<OptionsOf<typeof serveConsole>>, env: Record<string, string> = {}) => {
    const context = fixture.context(null, env)
    return { code: await serveConsole.action(context, { ...loopback, ...options }), said: context.messages() }
  }

  test('beyond loopback without knowing who asks, and names CONSOLE_PASSWORD_FILE', async () => {
    const { code, said } = await refused({ host: '0.0.0.0' })
    expect(code).toBe(2)
    expect(said).toContain('--host 0.0.0.0: the console shows contents of records')
    expect(said).toContain('CONSOLE_PASSWORD_FILE=FILE')
  })

  test('with CONSOLE_TRUST_HEADER without a proxy, with a proxy of every address, or with a client’s header', async () => {
    const env = { CONSOLE_TRUST_HEADER: 'X-Forwarded-User' }
    expect((await refused({}, env)).said).toContain('CONSOLE_TRUST_HEADER needs CONSOLE_TRUST_PROXY')
    await expect(refused({}, { ...env, CONSOLE_TRUST_PROXY: '0.0.0.0/0' })).rejects.toMatchObject({
      problems: [expect.stringContaining('CONSOLE_TRUST_PROXY must not allow every address')],
    })
    await expect(refused({}, { CONSOLE_TRUST_HEADER: 'Host', CONSOLE_TRUST_PROXY: '10.0.0.7' })).rejects.toMatchObject({
      problems: [expect.stringContaining('CONSOLE_TRUST_HEADER must be a header that only the proxy sets')],
    })
  })

  test('with an empty --as, or if its port is taken', async () => {
    expect(await refused({ as: ' ' })).toMatchObject({ code: 2 })
    await using served = await openConsole(fixture.context())
    const port = Number(new URL(served.url).port)
    await expect(refused({ port })).rejects.toThrow(`cannot listen on 127.0.0.1 port ${port} (EADDRINUSE)`)
  })
})

test('beyond loopback the console asks for the password at each of its addresses, and warns about missing TLS', async () => {
  const folder = mappingFiles({ password: (await hashOf(password)).printed })
  const context = fixture.context(null, { CONSOLE_PASSWORD_FILE: `${folder}/password` })
  await using served = await openConsole(context, { host: '0.0.0.0' })
  const { port } = new URL(served.url)
  expect(context.messages()).toContain('It asks for the password.')
  expect(context.messages()).toContain('Put a proxy with TLS in front of the console')
  const addresses = Object.values(networkInterfaces()).flatMap((all = []) => all)
  for (const { address } of addresses.filter(({ family }) => family === 'IPv4')) {
    const visitor = visit(`http://${address}:${port}`)
    expect(await visitor.get('/records'), address).toMatchObject({ status: 401 })
    expect(await visitor.post('/login', { name: 'ann', password })).toMatchObject({ status: 303 })
    expect((await visitor.get('/records')).text).toContain('operator ann')
    expect(await visitor.ask('/records', { headers: { host: 'evil.example' } })).toMatchObject({ status: 403 })
  }
})

test('on SIGTERM the console exits with 0 within 8 s, even with open pages and half a request', async () => {
  const { env } = fixture.context()
  await using program = startProgram({ args: ['console', '--port', '0', '--json'], env: env as Record<string, string> })
  const { url, port } = JSON.parse(await program.line((line) => line.startsWith('{')))
  const looks = Array.from({ length: 5 }, () => fetch(`${url}/overview/version`).catch(() => null))
  const half = connect({ host: '127.0.0.1', port }).on('error', () => {})
  half.write(
    `POST /pause HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/x-www-form-urlencoded\r\ncontent-length: 99\r\n\r\nreason=`,
  )
  await once(half, 'connect')
  const beganMs = performance.now()
  program.signal('SIGTERM')
  expect(await program.ended()).toMatchObject({ code: 0 })
  await Promise.all(looks)
  expect(performance.now() - beganMs).toBeLessThan(8_000)
  half.destroy()
})

test('each page shows the installation’s name, which the ledger has, and its colour', async () => {
  await fixture.reset()
  await setSettings(fixture.ledger.pool, { INSTALLATION_NAME: 'Test <2>' })
  await using served = await openConsole(fixture.context(null, { CONSOLE_COLOUR: 'violet' }))
  await served.get('/records')
  const { text } = await served.get('/records')
  expect(text).toContain('<title>Records · outboxd · Test &lt;2&gt;</title>')
  expect(text).toContain('outboxd</a> <strong>Test &lt;2&gt;</strong></p>')
  expect(text).toMatch(/<body[^>]* data-colour="violet"/)
})

test('a pause from the console is logged with the name given by --as', async () => {
  await fixture.reset()
  await using served = await openConsole(fixture.context(), { as: 'ann' })
  const answered = await served.post('/pause', { reason: 'year-end closing' })
  expect(answered).toMatchObject({ status: 303 })
  const { rows } = await fixture.ledger.pool.query('select detail from outboxd.pause')
  expect(rows).toEqual([{ detail: 'year-end closing (operator ann)' }])
})

describe('--read-only, with the role of `migrate --print-grants ROLE --read-only`, which may not write', () => {
  const role = `look_${randomBytes(4).toString('hex')}`
  let served: OpenedConsole
  beforeAll(async () => {
    await fixture.reset()
    const { url, pool } = fixture.ledger
    const env = await grantRole({ env: { DATABASE_URL: url }, pool }, role, { readOnly: true })
    served = await openConsole(fixture.context(null, env), { readOnly: true, as: 'Ada' })
  })
  afterAll(async () => {
    await served[Symbol.asyncDispose]()
    await dropRole(fixture.ledger.pool, role)
  })

  test('a read-only console shows every page', async () => {
    for (const path of ['/', '/records', '/records?by-cause=on', '/mapping', '/audit', '/records.csv'])
      expect(await served.get(path), path).toMatchObject({ status: 200 })
  })

  const actsLogged = async () => (await fixture.ledger.pool.query('select from outboxd.operator_act')).rowCount

  test('a read-only console shows the values of a record and logs that itself instead of in the ledger', async () => {
    const id = await fixture.end(failedE003, { outboxId: '1', payload: payloadOf({ field2: '"Erika"' }) })
    const path = `/records/${id}`
    expect((await served.get(path)).text).toContain('this console’s own log notes it')
    expect((await served.post(`${path}/show`)).status).toBe(303)
    expect((await served.get(path)).text).toContain('Erika')
    expect(served.context.messages()).toContain(
      `outboxd: operator Ada: show of values {"records":[{"submission":"${id}"`,
    )
    expect(served.context.messages()).not.toContain('Erika')
    expect(await actsLogged()).toBe(0)
  })

  test('a read-only console shows the values of a waiting row and logs that itself instead of in the ledger', async () => {
    const row = await fixture.row(payloadOf({ field2: '"Erika"' }))
    const path = `/mapping?outbox=${row}`
    expect((await served.get(path)).text).toContain('this console’s own log notes it')
    expect((await served.post('/mapping/show', { outbox: row })).text).toContain('Erika')
    expect(served.context.messages()).toContain(`{"submission":null,"outboxId":"${row}"`)
    expect(await actsLogged()).toBe(0)
  })

  test('a read-only console logs searches and downloads itself instead of in the ledger', async () => {
    const id = await fixture.end(failedE003, { outboxId: '41', payload: payloadOf({ field2: '"Otto"' }) })
    await served.get('/records?containing=Ott')
    await served.get('/records.csv')
    const said = served.context.messages()
    expect(said).toMatch(/outboxd: operator Ada: search of values {"lookedAt":2,"found":1,.*"outboxId":"41"/)
    expect(said).toContain(id)
    expect(said).toMatch(/outboxd: operator Ada: download of values {"file":"records.csv","records":\[{/)
    expect(said).not.toContain('Ott')
    expect(await actsLogged()).toBe(0)
  })
})
