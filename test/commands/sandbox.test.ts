import { mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { text } from 'node:stream/consumers'
import { Command } from 'commander'
import { expect, test } from 'vitest'
import { command as sandbox, command as sandboxCommand } from '../../src/commands/sandbox.ts'
import { configureCommand, type OptionsOf } from '../../src/commands/terminal/command.ts'
import { testContext } from '../support/context.ts'
import { createDatabase } from '../support/database.ts'

function context(env: Record<string, string>) {
  const stop = new AbortController()
  return { ...testContext({}), env, stdout: new PassThrough(), stderr: new PassThrough(), signal: stop.signal, stop }
}

test('prints its address and the variables to set, and exits with 0 on a stop signal', async () => {
  await using database = await createDatabase('template0')
  const secrets = { SANDBOX_CLIENT_SECRET: 'not for print', SANDBOX_CONTROL_TOKEN: 'nor-this-of-16-chars' }
  const running = context({ DATABASE_URL: database.url, ...secrets })
  const ended = sandbox.action(running, { port: 0, json: true })
  const line = await new Promise<string>((resolve) => running.stdout.once('data', (chunk) => resolve(String(chunk))))
  const { url } = JSON.parse(line)
  expect((await fetch(`${url}/openapi.json`)).status).toBe(200)
  running.stop.abort()
  expect(await ended).toBe(0)
  running.stdout.end()
  running.stderr.end()
  expect(await text(running.stdout)).toBe('')
  const message = await text(running.stderr)
  expect(message).toContain(`SERVICE_BASE_URL=${url}`)
  expect(message).toContain(`SERVICE_AUTH_URL=${url}`)
  expect(message).toContain('Requests to /_sandbox/ need the token')
  expect(message).not.toMatch(/not for print|nor-this/)
})

test('an invalid scenario, seed or clock exits with 2 and a message with the place', async () => {
  const env = { DATABASE_URL: 'postgres://user:secret@127.0.0.1:1/none' }
  const file = join(await mkdtemp(join(tmpdir(), 'scenario-')), 'wrong.yaml')
  await writeFile(file, 'settings:\n  down: maybe\nrecord: []\n')
  const said = async (options: OptionsOf<typeof sandbox>) => {
    const running = context(env)
    expect(await sandbox.action(running, { port: 0, ...options })).toBe(2)
    running.stderr.end()
    return text(running.stderr)
  }
  expect(await said({ scenario: file })).toContain(
    `${file}:2:9 "down": Invalid input: expected boolean, received string`,
  )
  expect(await said({ scenario: file })).toContain(`${file}:3:1 unknown key "record"`)
  expect(await said({ seed: 'seven', clock: 'noon' })).toMatch(
    /SANDBOX_CLOCK: must be system or a time such as 2026-01-01T00:00:00Z.*SANDBOX_SEED: /s,
  )
})

test('beyond loopback, the default secret is refused without --insecure-defaults', async () => {
  const env = { DATABASE_URL: 'postgres://user:secret@127.0.0.1:1/none', SANDBOX_HOST: '0.0.0.0' }
  const known = context(env)
  expect(await sandbox.action(known, { port: 0 })).toBe(2)
  known.stderr.end()
  expect(await text(known.stderr)).toMatch(
    /SANDBOX_HOST: other machines can reach 0\.0\.0\.0.*SANDBOX_CLIENT_SECRET.*--insecure-defaults/,
  )
  expect(await sandbox.action(context({ ...env, SERVICE_CLIENT_SECRET: 'sandbox-secret' }), { port: 0 })).toBe(2)
  // These settings are accepted, and the sandbox fails only at the database.
  expect(await sandbox.action(context({ ...env, SANDBOX_CLIENT_SECRET: 'own' }), { port: 0 })).toBe(1)
  expect(await sandbox.action(context(env), { port: 0, insecureDefaults: true })).toBe(1)
  expect(await sandbox.action(context(env), { port: 0, host: '::1' })).toBe(1)
})

test('if it listens on all interfaces, it says so and prints a URL that works on this machine', async () => {
  await using database = await createDatabase('template0')
  const running = context({ SANDBOX_DATABASE_URL: database.url, SANDBOX_ALLOWED_ADDRESSES: '127.0.0.1,10.0.0.7' })
  const ended = sandbox.action(running, { port: 0, host: '0.0.0.0', insecureDefaults: true, json: true })
  const line = await new Promise<string>((resolve) => running.stdout.once('data', (chunk) => resolve(String(chunk))))
  const { url, port } = JSON.parse(line)
  expect(url).toBe(`http://127.0.0.1:${port}`)
  expect((await fetch(`${url}/openapi.json`)).status).toBe(200)
  running.stop.abort()
  expect(await ended).toBe(0)
  running.stderr.end()
  const message = await text(running.stderr)
  expect(message).toContain(`listens on all interfaces (0.0.0.0), port ${port}; from this machine it is\n  ${url}\n`)
  expect(message).toContain('127.0.0.1, 10.0.0.7 (SANDBOX_ALLOWED_ADDRESSES)')
  expect(message).not.toContain('ATTENTION')
})

test("names the daemon's variables that it uses instead of its own", async () => {
  const env = {
    DATABASE_URL: 'postgres://user:pw-of-erp@127.0.0.1:1/erp',
    SERVICE_CLIENT_ID: 'partner',
    SERVICE_CLIENT_SECRET: 'of-production',
    SANDBOX_CLIENT_ID: 'own',
  }
  const shell = context(env)
  expect(await sandbox.action(shell, { port: 0 })).toBe(1)
  shell.stderr.end()
  const message = await text(shell.stderr)
  expect(message).toContain('ATTENTION: DATABASE_URL is used, because SANDBOX_DATABASE_URL is not set\n')
  expect(message).toContain('ATTENTION: SERVICE_CLIENT_SECRET is used, because SANDBOX_CLIENT_SECRET is not set')
  expect(message).not.toContain('SERVICE_CLIENT_ID')
  expect(message).not.toMatch(/of-production|pw-of-erp/)
})

test('invalid settings exit with 2 and a message for each', async () => {
  const wrong = context({ SANDBOX_IDEMPOTENCY: 'perhaps' })
  expect(await sandbox.action(wrong, { port: Number('x') })).toBe(2)
  wrong.stderr.end()
  const message = await text(wrong.stderr)
  expect(message).toContain('SANDBOX_IDEMPOTENCY: ')
  expect(message).toContain('SANDBOX_PORT: ')
  expect(message).toContain('DATABASE_URL is set: set one, or use --embedded')
})

test('exits with 1 if the database cannot be reached, without printing its password', async () => {
  const away = context({ DATABASE_URL: 'postgres://user:secret@127.0.0.1:1/none' })
  expect(await sandbox.action(away, { port: 0 })).toBe(1)
  away.stderr.end()
  const message = await text(away.stderr)
  expect(message).toContain('could not start: ')
  expect(message).not.toContain('secret')
})

test('the help lists settings and the texts in a record that cause a failure', () => {
  const command = configureCommand(new Command('sandbox'), sandboxCommand)
  const parts: string[] = []
  command.configureOutput({ writeOut: (part) => void parts.push(part) })
  command.outputHelp()
  const help = parts.join('')
  expect(help).toContain('fail:E003')
  expect(help).toContain('SANDBOX_PROCESSING_TIME')
  expect(help).toContain('--port')
})
