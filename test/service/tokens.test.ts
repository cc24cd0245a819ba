import { afterEach, expect, test, vi } from 'vitest'
import type { Clock } from '../../src/clock.ts'
import type { Answer, Breach } from '../../src/model/service.ts'
import type { TokenAnswer } from '../../src/service/client.ts'
import { TokenCache, type TokenFetchReason, type TokenSource } from '../../src/service/tokens.ts'
import { response } from '../support/answers.ts'

test('the first caller fetches a token, and the next gets the same', async () => {
  const { tokens, issuer } = setup()
  expect(tokens.expiresAtMs()).toBeNull()
  expect(await tokens.ready()).toEqual({ kind: 'token', accessToken: 't1' })
  expect(await tokens.ready()).toMatchObject({ accessToken: 't1' })
  expect(tokens.expiresAtMs()).toBe(3_600_000)
  expect(issuer.asked()).toBe(1)
})

test('callers at the same time share one request', async () => {
  const { tokens, issuer } = setup()
  const both = await Promise.all([tokens.ready(), tokens.ready(), tokens.ready()])
  expect(both.map((one) => one.kind === 'token' && one.accessToken)).toEqual(['t1', 't1', 't1'])
  expect(issuer.asked()).toBe(1)
})

test('after a refusal the next token counts as refused at its first 401, until the service has accepted it once', async () => {
  const { tokens } = setup()
  const answered = (name: string, status: number, method: 'GET' | 'POST' = 'POST') =>
    tokens.isRefusedAgain(name, response(status), method, `${name} ${method}`)
  await tokens.ready()
  tokens.used('t1', response(200))
  expect([answered('t1', 401), answered('t1', 401)]).toEqual([false, false])
  tokens.reject('t1')
  await tokens.ready()
  expect(answered('t1', 401)).toBe(false)
  expect(answered('t2', 401, 'GET')).toBe(false)
  expect([answered('t2', 401), answered('t2', 401)]).toEqual([true, true])
  tokens.reject('t2')
  await tokens.ready()
  expect([answered('t3', 200, 'GET'), answered('t3', 401)]).toEqual([false, true])
  expect([answered('t3', 400), answered('t3', 401)]).toEqual([false, false])
  expect(answered('nobody’s', 401)).toBe(false)
})

test('a record counts as refused again at a 401 to its second token, whatever the service accepts for others', async () => {
  const { tokens } = setup()
  const answered = (name: string, status: number, id: string) =>
    tokens.isRefusedAgain(name, response(status), 'GET', id)
  await tokens.ready()
  tokens.used('t1', response(200))
  expect([answered('t1', 401, 'r'), answered('t1', 401, 'r')]).toEqual([false, false])
  tokens.reject('t1')
  await tokens.ready()
  expect([answered('t2', 200, 'other'), answered('t2', 401, 'r')]).toEqual([false, true])
  expect([answered('t2', 200, 'r'), answered('t2', 401, 'r')]).toEqual([false, false])
})

test('a token that was accepted and then revoked does not count as refused again, even if it replaced a refused one', async () => {
  const { tokens } = setup()
  await tokens.ready()
  tokens.isRefusedAgain('t1', response(401), 'POST', 'a')
  tokens.reject('t1')
  await tokens.ready()
  expect(tokens.isRefusedAgain('t2', response(200), 'POST', 'b')).toBe(false)
  expect(tokens.isRefusedAgain('t2', response(401), 'POST', 'c')).toBe(false)
})

test('a token is renewed 5 minutes before it expires, in the background', async () => {
  const { tokens, issuer, clock } = setup()
  await tokens.ready()
  clock.advance(3_300_000 - 1)
  await tokens.ready()
  expect(issuer.asked()).toBe(1)
  clock.advance(1)
  expect(await tokens.ready()).toMatchObject({ accessToken: 't1' })
  await issuer.answered()
  expect(await tokens.ready()).toMatchObject({ accessToken: 't2' })
  expect(tokens.expiresAtMs()).toBe(3_300_000 + 3_600_000)
  expect(issuer.asked()).toBe(2)
})

test('a token with a shorter life is renewed after half of it', async () => {
  const { tokens, issuer, clock } = setup()
  issuer.next(token('short', 120_000))
  await tokens.ready()
  clock.advance(59_999)
  await tokens.ready()
  expect(issuer.asked()).toBe(1)
  clock.advance(1)
  await tokens.ready()
  expect(issuer.asked()).toBe(2)
})

test('while an early renewal fails, the old token is used until it expires, and the issuer asked every 10 s', async () => {
  const { tokens, issuer, clock } = setup()
  await tokens.ready()
  clock.advance(3_300_000)
  issuer.next(refusal(500))
  expect(await tokens.ready()).toMatchObject({ accessToken: 't1' })
  await issuer.answered()
  expect(await tokens.ready()).toMatchObject({ accessToken: 't1' })
  expect(issuer.asked()).toBe(2)
  clock.advance(10_000)
  issuer.next(refusal(500))
  expect(await tokens.ready()).toMatchObject({ accessToken: 't1' })
  await issuer.answered()
  expect(issuer.asked()).toBe(3)
  clock.advance(290_000)
  issuer.next(refusal(500))
  expect(await tokens.ready()).toMatchObject({ kind: 'pause', pause: { reason: 'unreachable' } })
})

test('a refused secret is read again, and if it changed, the issuer is asked once more with another request', async () => {
  const { tokens, issuer, needs, giveNewSecret } = setup()
  issuer.next(refusal(401))
  issuer.next(token('second', 3_600_000))
  giveNewSecret()
  expect(await tokens.ready()).toMatchObject({ accessToken: 'second' })
  expect(needs).toHaveLength(2)
})

test.each([
  [401, 1, 2],
  [401, 0, 1],
  [500, 1, 1],
  [429, 1, 1],
])('an issuer that answers %i, with %i new secrets, is asked %i times, and then a pause follows', async (status, secrets, times) => {
  const { tokens, issuer, giveNewSecret } = setup()
  issuer.next(refusal(status))
  issuer.next(refusal(status))
  if (secrets > 0) giveNewSecret()
  expect((await tokens.ready()).kind).toBe('pause')
  expect(issuer.asked()).toBe(times)
})

test('a clock that is set back does not make a token last longer', async () => {
  const { tokens, clock } = setup()
  await tokens.ready()
  clock.advance(3_600_000)
  clock.setWall(0)
  expect(await tokens.ready()).toMatchObject({ accessToken: 't2' })
})

test('the life of a token counts from before its request', async () => {
  const { tokens, issuer, clock } = setup()
  issuer.during(() => clock.advance(20_000))
  await tokens.ready()
  expect(tokens.expiresAtMs()).toBe(3_600_000)
  expect(clock.nowMs()).toBe(20_000)
})

test('a rejected token is dropped, but its successor is not', async () => {
  const { tokens } = setup()
  await tokens.ready()
  tokens.reject('t1')
  expect(tokens.expiresAtMs()).toBeNull()
  await tokens.ready()
  tokens.reject('t1')
  expect(await tokens.ready()).toMatchObject({ accessToken: 't2' })
})

test('a refused token request leads to a pause', async () => {
  const { tokens, issuer } = setup()
  issuer.next(refusal(401))
  expect(await tokens.ready()).toMatchObject({ kind: 'pause', pause: { reason: 'unauthorized' } })
  expect(await tokens.ready()).toMatchObject({ kind: 'token' })
})

test('without a free request the issuer is not asked', async () => {
  const { tokens, issuer, budget } = setup()
  budget.free = 0
  expect(await tokens.ready()).toEqual({ kind: 'not-now' })
  expect(issuer.asked()).toBe(0)
})

test('a token without expires_in lasts 5 minutes, and a breach is counted', async () => {
  const { tokens, issuer, breaches } = setup()
  issuer.next(token('t', null))
  expect(await tokens.ready()).toMatchObject({ accessToken: 't' })
  expect(tokens.expiresAtMs()).toBe(300_000)
  expect(breaches).toEqual(['unreadable_answer'])
})

test('a success without a token is a breach and leads to a pause', async () => {
  const { tokens, issuer, breaches } = setup()
  issuer.next(refusal(200))
  expect(await tokens.ready()).toMatchObject({ kind: 'pause', pause: { reason: 'unreachable' } })
  expect(breaches).toEqual(['unreadable_answer'])
})

test('an error of the budget reaches the caller, and the next call tries again', async () => {
  const { tokens, budget } = setup()
  budget.broken = true
  await expect(tokens.ready()).rejects.toThrow('database')
  budget.broken = false
  expect(await tokens.ready()).toMatchObject({ kind: 'token' })
})

test('an error of the budget during an early renewal is no unhandled rejection', async () => {
  const { tokens, budget, clock } = setup()
  await tokens.ready()
  clock.advance(3_300_000)
  budget.broken = true
  expect(await tokens.ready()).toMatchObject({ accessToken: 't1' })
})

test('the budget learns whether a token is missing or only due for renewal', async () => {
  const { tokens, clock, needs } = setup()
  await tokens.ready()
  clock.advance(3_300_000)
  await tokens.ready()
  expect(needs).toEqual(['missing', 'renewal'])
})

test('with one request at a time, an expired token is still given to the request that it was fetched for', async () => {
  const { tokens, clock, issuer } = setup({ isOneAtATime: true })
  issuer.next(token('short', 60_000))
  await tokens.ready()
  clock.advance(60_050)
  expect(await tokens.ready()).toMatchObject({ accessToken: 'short' })
  tokens.used('short', response(201))
  expect(await tokens.ready()).toMatchObject({ accessToken: 't2' })
})

test('a 401 to a token that may have expired is due to its age, even if another token has replaced it', async () => {
  const { tokens, clock, issuer } = setup()
  issuer.next(token('short', 10_000))
  await tokens.ready()
  tokens.used('short', response(200))
  const answeredAfter = (tookMs: number, status = 401) =>
    tokens.isRefusedForAge('short', { ...response(status), tookMs } as Answer)
  clock.advance(5_000)
  expect(answeredAfter(3_000)).toBe(false)
  expect(answeredAfter(4_000)).toBe(true)
  tokens.reject('short')
  await tokens.ready()
  clock.advance(5_000)
  expect(answeredAfter(0)).toBe(true)
  expect(answeredAfter(0, 403)).toBe(false)
  expect(tokens.isRefusedForAge('nobody’s', response(401))).toBe(false)
})

test('after five tokens in a row refused for their age, a 401 counts as a refusal until a request is accepted', async () => {
  const { tokens, clock, issuer } = setup()
  const turns: boolean[] = []
  const turn = async (name: string) => {
    issuer.next(token(name, 2_000))
    await tokens.ready()
    clock.advance(2_000)
    // Several requests were in flight with the same token.
    for (let n = 0; n < 3; n++) turns.push(tokens.isRefusedForAge(name, response(401)))
    tokens.used(name, response(401))
    tokens.reject(name)
  }
  for (let n = 1; n <= 5; n++) await turn(`t${n}`)
  expect(turns).toEqual(Array(15).fill(true))
  await turn('t6')
  expect(turns.slice(15)).toEqual([false, false, false])
  tokens.used('t6', response(404))
  await turn('t7')
  expect(turns.slice(18)).toEqual([true, true, true])
})

test('a token that is refused too young is kept, and used again after 1, 2 and 5 s before it counts as refused', async () => {
  const { tokens, clock, issuer } = setup()
  const refusedOnce = () => {
    const isExcused = tokens.isRefusedForAge('t1', response(401))
    tokens.reject('t1')
    return isExcused
  }
  await tokens.ready()
  for (const waitMs of [1_000, 2_000, 5_000]) {
    // Requests that were in flight with it are refused, too.
    expect([refusedOnce(), refusedOnce()]).toEqual([true, true])
    clock.advance(waitMs - 1)
    expect(await tokens.ready()).toEqual({ kind: 'not-now' })
    clock.advance(1 + response(401).tookMs)
    expect(await tokens.ready()).toMatchObject({ accessToken: 't1' })
  }
  expect(refusedOnce()).toBe(false)
  expect(await tokens.ready()).toMatchObject({ accessToken: 't2' })
  expect(issuer.asked()).toBe(2)
})

test('a token that was accepted once, or that replaces a refused one, is not kept after a 401', async () => {
  const { tokens } = setup()
  await tokens.ready()
  tokens.used('t1', response(200))
  expect(tokens.isRefusedForAge('t1', response(401))).toBe(false)
  tokens.isRefusedAgain('t1', response(401), 'POST', 'r')
  tokens.reject('t1')
  await tokens.ready()
  expect(tokens.isRefusedForAge('t2', response(401))).toBe(false)
})

afterEach(() => void vi.useRealTimers())

test('callers wait at most 10 s for an issuer that hangs, and then get the pause that it causes', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  const { tokens, issuer } = setup()
  const hanging = Promise.withResolvers<TokenAnswer>()
  issuer.next(hanging.promise)
  for (let n = 0; n < 2; n++) {
    const asked = tokens.ready()
    await vi.advanceTimersByTimeAsync(10_000)
    expect(await asked).toEqual({ kind: 'not-now' })
  }
  hanging.resolve(refusal(503))
  await vi.advanceTimersByTimeAsync(0)
  expect(await tokens.ready()).toMatchObject({ kind: 'pause' })
  expect(issuer.asked()).toBe(1)
  expect(await tokens.ready()).toMatchObject({ kind: 'token' })
  expect(vi.getTimerCount()).toBe(0)
})

function setup({ isOneAtATime = false } = {}) {
  const clock = handClock()
  const budget = { free: 100, broken: false }
  const breaches: Breach[] = []
  const needs: TokenFetchReason[] = []
  const queued: (TokenAnswer | Promise<TokenAnswer>)[] = []
  let asked = 0
  let newSecrets = 0
  let meanwhile = () => {}
  let answered = Promise.resolve()
  const source: TokenSource = {
    isOneAtATime: () => isOneAtATime,
    renewSecret: () => newSecrets-- > 0,
    async fetch(need) {
      needs.push(need)
      if (budget.broken) throw new Error('the database is away')
      if (budget.free-- <= 0) return 'not-now'
      asked++
      const done = Promise.withResolvers<void>()
      answered = done.promise
      meanwhile()
      // Resolves after the caller has received the answer.
      setImmediate(done.resolve)
      return queued.shift() ?? token(`t${asked}`, 3_600_000)
    },
  }
  const options = { clock, refreshMs: 300_000, breached: (kind: Breach) => void breaches.push(kind) }
  const tokens = new TokenCache(source, options)
  const issuer = {
    asked: () => asked,
    next: (answer: TokenAnswer | Promise<TokenAnswer>) => queued.push(answer),
    during: (work: () => void) => {
      meanwhile = work
    },
    answered: () => answered,
  }
  const giveNewSecret = () => {
    newSecrets++
  }
  return { tokens, issuer, clock, budget, breaches, needs, giveNewSecret }
}

function token(accessToken: string, lifetimeMs: number | null): TokenAnswer {
  return { answer: response(200), token: { accessToken, lifetimeMs } }
}

function refusal(status: number): TokenAnswer {
  return { answer: response(status), token: null }
}

function handClock(): Clock & { advance(ms: number): void; setWall(ms: number): void } {
  let wallMs = 0
  let monotonicMs = 0
  return {
    nowMs: () => wallMs,
    stopwatch() {
      const startedMs = monotonicMs
      return () => monotonicMs - startedMs
    },
    advance(ms) {
      wallMs += ms
      monotonicMs += ms
    },
    setWall(ms) {
      wallMs = ms
    },
  }
}
