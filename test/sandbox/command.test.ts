import { PassThrough } from 'node:stream'
import { text } from 'node:stream/consumers'
import { Command } from 'commander'
import { expect, test } from 'vitest'
import { describeSandbox, sandbox } from '../../src/commands/sandbox.ts'
import { createDatabase } from '../support/database.ts'

function context(env: Record<string, string>) {
  const stop = new AbortController()
  return { env, stdout: new PassThrough(), stderr: new PassThrough(), signal: stop.signal, stop }
}

test('prints where it listens and what to set, serves, and ends with 0 when told to', async () => {
  await using database = await createDatabase('template0')
  const running = context({ DATABASE_URL: database.url, SANDBOX_CLIENT_SECRET: 'not for print' })
  const ended = sandbox(running, { port: '0', json: true })
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
  expect(message).not.toContain('not for print')
})

test('says what is wrong with its settings and ends with 2', async () => {
  const wrong = context({ SANDBOX_IDEMPOTENCY: 'perhaps' })
  expect(await sandbox(wrong, { port: 'x' })).toBe(2)
  wrong.stderr.end()
  const message = await text(wrong.stderr)
  expect(message).toContain('SANDBOX_IDEMPOTENCY: ')
  expect(message).toContain('SANDBOX_PORT: ')
  expect(message).toContain('DATABASE_URL is not set')
})

test('ends with 1 when the database cannot be reached, and does not print its password', async () => {
  const away = context({ DATABASE_URL: 'postgres://user:secret@127.0.0.1:1/none' })
  expect(await sandbox(away, { port: 0 })).toBe(1)
  away.stderr.end()
  const message = await text(away.stderr)
  expect(message).toContain('could not start: ')
  expect(message).not.toContain('secret')
})

test('the help lists every setting and what a record can ask for', () => {
  const command = describeSandbox(new Command('sandbox'))
  const parts: string[] = []
  command.configureOutput({ writeOut: (part) => void parts.push(part) })
  command.outputHelp()
  const help = parts.join('')
  expect(help).toContain('fail:E003')
  expect(help).toContain('SANDBOX_PROCESSING_TIME')
  expect(help).toContain('--port')
})
