import { expect, test } from 'vitest'
import type { CurrentPause } from '../../src/model.ts'
import { createPauseLog } from '../../src/observe/pauseLog.ts'

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
  return { ...createPauseLog({ log, clock }), lines, pass: (ms: number) => (nowMs += ms) }
}

const pause = (of: Partial<CurrentPause> = {}): CurrentPause => ({
  reason: 'throttled',
  leftMs: 1_000,
  forMs: 0,
  ...of,
})
const refused = (logDetail?: string) =>
  ({ reason: 'unauthorized', askedMs: null, detail: 'Jane Doe', ...(logDetail && { logDetail }) }) as const

test('a pause is told when it begins and when it ends, once each, with how long it lasted', () => {
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

test('the instance that raised it says what was answered, in our words alone', () => {
  const { raised, seen, lines } = setup()
  raised([{ reason: 'unavailable', askedMs: null, detail: 'Jane Doe', logDetail: 'the service answered 503' }])
  seen([pause({ reason: 'unavailable' })])
  expect(lines).toMatchObject([{ event: 'paused', detail: 'the service answered 503' }])
  expect(JSON.stringify(lines)).not.toContain('Jane')
})

test('that the service does not let us in is an error each time that it says so', () => {
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

test('an instance that comes into a pause says for how long it has stood; an operator’s reason is not said', () => {
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
