import { expect, test } from 'vitest'
import type { OutcomeToWrite } from '../../../src/daemon/dispatch/outcomeWriter.ts'
import { TokenRequests } from '../../../src/daemon/dispatch/tokenRequests.ts'
import type { Answer } from '../../../src/model/service.ts'
import { noAnswer, response } from '../../support/answers.ts'

/** Token requests of an instance, with this many free. */
function setup(limit: number, free = 100) {
  const state = { free, isLate: false }
  const freeMins: number[] = []
  const written: Pick<OutcomeToWrite, 'answeredRequests' | 'unsentRequests'>[] = []
  const requests = new TokenRequests(
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
    limit,
  )
  const spend = (answer: Answer, need: 'missing' | 'renewal' = 'missing') =>
    requests.spend(async (mayLeave) => (mayLeave() ? { answer } : null), need)
  return { requests, spend, state, freeMins, written }
}

const granted = response(200)

test('a token costs one request, which is over with the answer', async () => {
  const { spend, freeMins, written } = setup(100)
  expect(await spend(granted)).toEqual({ answer: granted })
  expect(freeMins).toEqual([1])
  expect(written).toEqual([{ answeredRequests: ['7'], unsentRequests: [] }])
})

test('a token request without an answer counts on', async () => {
  const { spend, written } = setup(100)
  await spend(noAnswer({ sent: true, cause: 'timeout' }))
  expect(written).toEqual([])
})

test('a token request that no connection took goes back', async () => {
  const { spend, written } = setup(100)
  await spend(noAnswer({ sent: false, cause: 'network' }))
  expect(written).toEqual([{ answeredRequests: [], unsentRequests: ['7'] }])
})

test('under a small limit a token is fetched only if another request is free to use it', async () => {
  expect(await setup(9, 2).spend(granted)).toEqual({ answer: granted })
  expect(await setup(9, 1).spend(granted)).toBe('not-now')
})

test('with a limit of one request, a token is not renewed before it expires, to save the request', async () => {
  const { requests, spend, freeMins } = setup(1)
  expect(requests.isOneAtATime()).toBe(true)
  expect(await spend(granted, 'renewal')).toBe('not-now')
  expect(freeMins).toEqual([])
  expect(await spend(granted)).toEqual({ answer: granted })
  expect(freeMins).toEqual([1])
})

test('the limit in use for all instances counts, not the configured one', async () => {
  const { requests, spend, freeMins } = setup(100)
  requests.limit = 1
  expect(requests.isOneAtATime()).toBe(true)
  await spend(granted)
  expect(freeMins).toEqual([1])
})

test('a request whose deadline passed before it could leave brings no token, and does not count', async () => {
  const { spend, state, written } = setup(100)
  state.isLate = true
  expect(await spend(granted)).toBe('not-now')
  expect(written).toEqual([{ answeredRequests: [], unsentRequests: ['7'] }])
})
