import { expect, test } from 'vitest'
import type { CurrentPause } from '../../src/model/dispatch.ts'
import { PauseLog } from '../../src/observe/pauseLog.ts'

function setup() {
  const lines: Record<string, unknown>[] = []
  const level =
    (name: string) =>
    (event: string, fields: object = {}) =>
      void lines.push({ level: name, event, ...fields })
  const log = { info: level('info'), warn: level('warn'), error: level('error') }
  let nowMs = Date.parse('2026-11-21T10:00:00Z')
  const clock = {
    nowMs: () => nowMs,
    stopwatch: () => {
      const begunMs = nowMs
      return () => nowMs - begunMs
    },
  }
  const pauseLog = new PauseLog({ log, clock })
  const raised = (calls: Parameters<PauseLog['raised']>[0]) => pauseLog.raised(calls)
  const seen = (pauses: Parameters<PauseLog['seen']>[0]) => pauseLog.seen(pauses)
  return { raised, seen, lines, pass: (ms: number) => (nowMs += ms) }
}

const pause = (of: Partial<CurrentPause> = {}): CurrentPause => ({
  reason: 'throttled',
  leftMs: 1_000,
  forMs: 0,
  ...of,
})
const refused = (logDetail?: string) =>
  ({ reason: 'unauthorized', askedMs: null, detail: 'Jane Doe', ...(logDetail && { logDetail }) }) as const

test('a pause is logged once when it begins, and once when it ends, with its length', () => {
  const { seen, pass, lines } = setup()
  seen([])
  seen([pause()])
  pass(1_500)
  seen([pause({ leftMs: -500 })])
  seen([])
  seen([])
  expect(lines).toEqual([
    {
      level: 'warn',
      event: 'paused',
      reason: 'throttled',
      until: '2026-11-21T10:00:01.000Z',
      detail: '`outboxd status` says why',
    },
    { level: 'info', event: 'resumed', reason: 'throttled', lastedMs: 1_500 },
  ])
})

test('the instance that raised a pause logs the answer, only in our words', () => {
  const { raised, seen, lines } = setup()
  raised([{ reason: 'unavailable', askedMs: null, detail: 'Jane Doe', logDetail: 'the service answered 503' }])
  seen([pause({ reason: 'unavailable' })])
  expect(lines).toMatchObject([{ event: 'paused', detail: 'the service answered 503' }])
  expect(JSON.stringify(lines)).not.toContain('Jane')
})

test('each refused sign-in is logged as an error', () => {
  const { raised, seen, lines } = setup()
  raised([refused('the token issuer answered 401')])
  seen([pause({ reason: 'unauthorized', leftMs: 60_000 })])
  raised([refused()])
  expect(lines.map(({ level, event, detail }) => [level, event, detail])).toEqual([
    ['error', 'service refused our sign-in', 'the token issuer answered 401'],
    ['warn', 'paused', 'the token issuer answered 401'],
    ['error', 'service refused our sign-in', undefined],
  ])
})

test('an instance that starts during a pause counts its whole length, and does not log an operator’s reason', () => {
  const { seen, pass, lines } = setup()
  seen([pause({ reason: 'operator', leftMs: null, forMs: 60_000 })])
  pass(1_000)
  seen([pause()])
  expect(lines).toMatchObject([
    { event: 'paused', reason: 'operator', until: undefined },
    { event: 'paused', reason: 'throttled' },
    { event: 'resumed', reason: 'operator', lastedMs: 61_000 },
  ])
})
