import { expect, test } from 'vitest'
import { command as check } from '../../../src/commands/check.ts'
import { setup } from '../../sandbox/setup.ts'
import { openForFile } from '../../support/openForFile.ts'
import { serviceEnvironment } from '../../support/serviceEnvironment.ts'
import { startTurning } from '../../support/turningService.ts'
import { openFixtureForFile } from '../fixture.ts'

const fixture = openFixtureForFile()
const service = openForFile(() => setup())

async function checkWith(
  contract: string,
  url = service.sandbox.url,
): Promise<{ code: number; lines: string[]; printed: string; messages: string }> {
  const context = fixture.context(null, {
    ...serviceEnvironment(service.sandbox.url),
    SERVICE_BASE_URL: url,
    REQUEST_TIMEOUT_SECONDS: '1',
    DISCOVERED_CONTRACT: contract,
  })
  const code = await check.action(context, { contract: true })
  const printed = context.printed()
  return {
    code,
    lines: printed.split('\n').filter((line) => /^\S+ +contract: /.test(line)),
    printed,
    messages: context.messages(),
  }
}

const discovered =
  'expires_in=seconds bad_token=401 status_unknown=404 order_status_unknown=404 unknown_path=404 rate_remaining=all submit_ok=200 e002=409'

test('check --contract says ok if the service answers as discovered, and creates no record in it', async () => {
  const { code, lines } = await checkWith(discovered)
  expect(lines).toEqual([
    expect.stringMatching(/^ok +contract: unchanged: expires_in, .*; not checked: submit_ok, e002$/),
  ])
  expect(code).toBe(0)
  expect((await service.control('GET', '/transactions')).rows).toEqual([])
})

test('each changed answer of the service is a problem, with the former answer', async () => {
  await service.control('PATCH', '/settings', { unknownIdStatus: 400, remainingHeader: 'none' })
  const { code, lines } = await checkWith(discovered)
  await service.control('DELETE', '/settings')
  expect(code).toBe(1)
  expect(lines).toEqual([
    expect.stringMatching(/^PROBLEM +contract: the service has changed: an unknown id gets 400, it was 404/),
    expect.stringMatching(/an unknown order gets 400, it was 404/),
    expect.stringMatching(/X-RateLimit-Remaining is on none, it was all/),
    expect.stringMatching(/^ok +contract: unchanged: expires_in/),
  ])
})

test('a changed answer that equals the answer to another question is reported as a change of the service', async () => {
  const { lines } = await checkWith('status_unknown=400 order_status_unknown=404 unknown_path=404')
  expect(lines[0]).toMatch(/^PROBLEM +contract: the service has changed: an unknown id gets 404, it was 400/)
})

test('--contract without DISCOVERED_CONTRACT exits with 2 and checks nothing', async () => {
  const { code, lines, messages } = await checkWith('')
  expect({ code, lines }).toEqual({ code: 2, lines: [] })
  expect(messages).toContain('DISCOVERED_CONTRACT, which is not set')
})

test.each([
  ['a page', { status: 200, body: '<h1>Sign in</h1>' }, /was answered 200 <h1>Sign in/],
  [
    'a page that says that there is nothing',
    { status: 404, body: '<h1>Not found</h1>' },
    /it was 401\. Check that SERVICE_BASE_URL/,
  ],
  ['a redirect', { status: 302, body: '' }, /not checked: .*was answered 302, a redirect to/],
])('if %s answers instead of the service, check reports the answer and a problem of the service', async (_, answer, shown) => {
  await using other = await startTurning(() => answer)
  const { code, lines, printed } = await checkWith(discovered, other.url)
  expect(code).toBe(1)
  expect(lines[0]).toMatch(shown)
  expect(printed).toMatch(/PROBLEM +service: /)
})

test.each([
  ['is down', { status: 503, body: '' }, /the service says that it is down/],
  ['hangs', null, /no answer/],
])('while the service %s, the contract is not compared, whatever the form of the token', async (_, answer, shown) => {
  await using other = await startTurning(() => answer)
  const { lines } = await checkWith(discovered, other.url)
  expect(lines).toEqual([expect.stringMatching(shown)])
  await service.control('PATCH', '/settings', { tokenForm: 'opaque', expiresInUnit: 'minutes' })
  const opaque = await checkWith(discovered, other.url)
  await service.control('DELETE', '/settings')
  expect(opaque.lines).toEqual([expect.stringMatching(new RegExp(`^- .*not checked: .*${shown.source}`))])
})
