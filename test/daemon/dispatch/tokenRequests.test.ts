import { expect, test } from 'vitest'
import type { DaemonContext } from '../../../src/daemon/context.ts'
import type { OutcomeToWrite } from '../../../src/daemon/dispatch/outcomeWriter.ts'
import { TokenRequests } from '../../../src/daemon/dispatch/tokenRequests.ts'
import type { Answer } from '../../../src/model/service.ts'
import { noAnswer, response } from '../../support/answers.ts'

const granted = response(200)

/** Token requests of an instance, with this many free. */
function setup(limit: number, free = 100) {
  const state = { free, isLate: false }
  const freeMins: number[] = []
  const written: Pick<OutcomeToWrite, 'answeredRequests' | 'unsentRequests'>[] = []
  let answer: Answer = granted
  const told: Answer[] = []
  const requests = new TokenRequests(
    {
      config: { rateLimit: { requests: limit } },
      client: { requestToken: async (mayLeave: () => boolean) => (mayLeave() ? { answer, token: null } : null) },
      credentials: { renew: () => false },
      telemetry: { requestDone: (_: unknown, answered: Answer) => void told.push(answered) },
    } as unknown as DaemonContext,
    {
      async claimTokenRequest(freeMin) {
        freeMins.push(freeMin)
        return state.free < freeMin ? null : { requestId: '7', mayLeave: () => !state.isLate }
      },
    },
    {
      async add({ answeredRequests, unsentRequests }) {
        written.push({ answeredRequests, unsentRequests })
      },
    },
  )
  const fetch = (given: Answer, need: 'missing' | 'renewal' = 'missing') => {
    answer = given
    return requests.fetch(need)
  }
  return { requests, fetch, state, freeMins, written, told }
}

test('a token costs one request, which is over with the answer', async () => {
  const { fetch, freeMins, written } = setup(100)
  expect(await fetch(granted)).toEqual({ answer: granted, token: null })
  expect(freeMins).toEqual([1])
  expect(written).toEqual([{ answeredRequests: ['7'], unsentRequests: [] }])
})

test('a token request without an answer counts on', async () => {
  const { fetch, written } = setup(100)
  await fetch(noAnswer({ sent: true, cause: 'timeout' }))
  expect(written).toEqual([])
})

test('a token request that no connection took goes back', async () => {
  const { fetch, written } = setup(100)
  await fetch(noAnswer({ sent: false, cause: 'network' }))
  expect(written).toEqual([{ answeredRequests: [], unsentRequests: ['7'] }])
})

test('under a small limit a token is fetched only if another request is free to use it', async () => {
  expect(await setup(9, 2).fetch(granted)).toEqual({ answer: granted, token: null })
  expect(await setup(9, 1).fetch(granted)).toBe('not-now')
})

test('with a limit of one request, a token is not renewed before it expires, to save the request', async () => {
  const { requests, fetch, freeMins } = setup(1)
  expect(requests.isOneAtATime()).toBe(true)
  expect(await fetch(granted, 'renewal')).toBe('not-now')
  expect(freeMins).toEqual([])
  expect(await fetch(granted)).toEqual({ answer: granted, token: null })
  expect(freeMins).toEqual([1])
})

test('the limit in use for all instances counts, not the configured one', async () => {
  const { requests, fetch, freeMins } = setup(100)
  requests.limit = 1
  expect(requests.isOneAtATime()).toBe(true)
  await fetch(granted)
  expect(freeMins).toEqual([1])
})

test('a request whose deadline passed before it could leave brings no token, and does not count', async () => {
  const { fetch, state, written } = setup(100)
  state.isLate = true
  expect(await fetch(granted)).toBe('not-now')
  expect(written).toEqual([{ answeredRequests: [], unsentRequests: ['7'] }])
})

test('a token request that its host could not send goes back, and is not told as an answer that failed', async () => {
  const { fetch, written } = setup(100)
  expect(await fetch(noAnswer({ sent: false, cause: 'host' }))).toBe('not-now')
  expect(written).toEqual([{ answeredRequests: [], unsentRequests: ['7'] }])
})
