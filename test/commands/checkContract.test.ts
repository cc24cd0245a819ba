import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { check } from '../../src/commands/check.ts'
import { credentials, type Setup, setup } from '../sandbox/setup.ts'
import { type Fixture, openFixture } from './fixture.ts'

let fixture: Fixture
let service: Setup
beforeAll(async () => {
  fixture = await openFixture()
  service = await setup()
})
afterAll(async () => {
  await fixture[Symbol.asyncDispose]()
  await service[Symbol.asyncDispose]()
})
beforeEach(() => fixture.reset())

async function checkWith(contract: string): Promise<{ code: number; lines: string[] }> {
  const context = fixture.context(null, {
    SERVICE_BASE_URL: service.sandbox.url,
    SERVICE_AUTH_URL: service.sandbox.url,
    SERVICE_CLIENT_ID: credentials.clientId,
    SERVICE_CLIENT_SECRET: credentials.clientSecret,
    DISCOVERED_CONTRACT: contract,
  })
  const code = await check(context, { contract: true })
  const lines = context.printed().split('\n')
  return { code, lines: lines.filter((line) => /^\S+ +contract: /.test(line)) }
}

const discovered =
  'expires_in=seconds bad_token=401 status_unknown=404 order_status_unknown=404 unknown_path=404 other_method=405 rate_remaining=all submit_ok=200 e002=409'

test('a service that answers as it was discovered is ok, and nothing is created in it', async () => {
  const { code, lines } = await checkWith(discovered)
  expect(lines).toEqual([
    expect.stringMatching(/^ok +contract: as it was discovered: expires_in, .*; not asked: submit_ok, e002$/),
  ])
  expect(code).toBe(0)
  expect((await service.control('GET', '/transactions')).rows).toEqual([])
})

test('what has changed is a problem that says what it was', async () => {
  await service.control('PATCH', '/settings', { unknownIdStatus: 400, remainingHeader: 'none' })
  const { code, lines } = await checkWith(discovered)
  await service.control('DELETE', '/settings')
  expect(code).toBe(1)
  expect(lines).toEqual([
    expect.stringMatching(/^PROBLEM +contract: the service has changed: an unknown id gets 400, it was 404/),
    expect.stringMatching(/an unknown order gets 400, it was 404/),
    expect.stringMatching(/X-RateLimit-Remaining is on none, it was all/),
    expect.stringMatching(/^ok +contract: as it was discovered: expires_in/),
  ])
})

test('without what was discovered there is nothing to compare with', async () => {
  expect((await checkWith('')).lines).toEqual([
    expect.stringMatching(/^- +contract: not asked: DISCOVERED_CONTRACT is not set/),
  ])
})
