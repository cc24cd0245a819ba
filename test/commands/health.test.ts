import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { command, healthAddress } from '../../src/commands/health.ts'
import type { CommandContext } from '../../src/commands/terminal/context.ts'

test.each<[string[], Record<string, string>, string]>([
  [['run'], { HTTP_HOST: '0.0.0.0' }, 'http://127.0.0.1:9464/livez'],
  [['run'], { HTTP_HOST: '::', HTTP_PORT: '80' }, 'http://[::1]:80/livez'],
  [['run'], { HTTP_HOST: 'fd00::1' }, 'http://[fd00::1]:9464/livez'],
  [['run'], {}, 'http://127.0.0.1:9464/livez'],
  [['sandbox'], { HTTP_HOST: '0.0.0.0' }, 'http://127.0.0.1:8080/_sandbox/health'],
  [['sandbox'], { SANDBOX_PORT: '8081', SANDBOX_HOST: '0.0.0.0' }, 'http://127.0.0.1:8081/_sandbox/health'],
  [['sandbox', '--port', '80', '--host=::'], { SANDBOX_PORT: '8081' }, 'http://[::1]:80/_sandbox/health'],
])('the health check of %j with %j asks %s', (words, env, address) => {
  const first = ['node', '--max-semi-space-size=4', 'dist/main.js', ...words, '']
  expect(healthAddress(first, env)).toBe(address)
})

interface Health {
  exitCode: number
  printed: string
}

/** Checks a daemon that answers with `status`, or not at all if that is null. */
async function checkHealth(status: number | null): Promise<Health> {
  const server = createServer((_, answer) => answer.writeHead(status ?? 0).end('the loop capture stopped\n'))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  if (status === null) await new Promise((resolve) => server.close(resolve))
  else onTestFinished(() => void server.close())
  let printed = ''
  const stderr = { write: (text: string) => (printed += text) }
  const context = { env: { HTTP_PORT: String(port) }, stderr } as unknown as CommandContext
  const exitCode = await command.action(context, {})
  return { exitCode, printed: printed.replaceAll(String(port), 'PORT') }
}

test('a daemon that answers 200 is healthy', async () => {
  expect(await checkHealth(200)).toEqual({ exitCode: 0, printed: '' })
})

test.each([
  ['the answer says', 503, 'the loop capture stopped'],
  ['the system says', null, 'connect ECONNREFUSED 127.0.0.1:PORT'],
])('one that does not is not, and the check prints what %s', async (_, status, problem) => {
  const printed = `outboxd: http://127.0.0.1:PORT/livez: ${problem}\n`
  expect(await checkHealth(status)).toEqual({ exitCode: 1, printed })
})
