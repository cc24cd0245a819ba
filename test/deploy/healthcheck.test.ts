import { expect, test } from 'vitest'

// @ts-expect-error: the file that the image runs is not TypeScript
const { healthAddress } = await import('../../deploy/healthcheck.mjs')

const command = (...words: string[]) => ['node', '--max-semi-space-size=4', 'dist/main.js', ...words, ''].join('\0')

test.each<[string[], Record<string, string>, string]>([
  [['run'], { HTTP_HOST: '0.0.0.0' }, 'http://127.0.0.1:9464/livez'],
  [['run'], { HTTP_HOST: '::', HTTP_PORT: '80' }, 'http://[::1]:80/livez'],
  [['run'], { HTTP_HOST: 'fd00::1' }, 'http://[fd00::1]:9464/livez'],
  [['run'], {}, 'http://127.0.0.1:9464/livez'],
  [['sandbox'], { HTTP_HOST: '0.0.0.0' }, 'http://127.0.0.1:8080/_sandbox/health'],
  [['sandbox'], { SANDBOX_PORT: '8081', SANDBOX_HOST: '0.0.0.0' }, 'http://127.0.0.1:8081/_sandbox/health'],
  [['sandbox', '--port', '80', '--host=::'], { SANDBOX_PORT: '8081' }, 'http://[::1]:80/_sandbox/health'],
])('the health check of %j with %j asks %s', (words, env, address) => {
  expect(healthAddress(command(...words), env)).toBe(address)
})
