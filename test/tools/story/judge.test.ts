import { describe, expect, test } from 'vitest'
import type { Fault } from '../../../tools/story/faults.ts'
import { judge } from '../../../tools/story/judge.ts'
import type { Notification } from '../../../tools/story/notifications.ts'

const fault: Fault = {
  name: 'E003',
  what: 'the service is down',
  begin: async () => {},
  alerts: ['OutboxdPaused/unavailable'],
  also: ['OutboxdUncertain'],
  cause: { text: /is down/, runbook: /E003/, status: /is down/ },
}

function told(
  atMs: number,
  alertname: string,
  {
    status = 'firing' as const,
    reason = undefined as string | undefined,
    text = 'It is down.',
    group = alertname,
    receiver = 'on-call',
  } = {},
): Notification {
  const labels = { alertname, job: 'E003', ...(reason === undefined ? {} : { reason }) }
  const annotations = { summary: text, description: 'So it is.', runbook_url: 'docs/run/runbook.md#outboxdpaused' }
  return { atMs, receiver, groupKey: group, alerts: [{ status, labels, annotations }] }
}

const resolved = (atMs: number, alertname: string): Notification => {
  const notification = told(atMs, alertname)
  return { ...notification, alerts: notification.alerts.map((alert) => ({ ...alert, status: 'resolved' })) }
}

const paused = told(1_500, 'OutboxdPaused', { reason: 'unavailable' })
const status = 'The service is down.'
const section = () => 'E003 means that it is down'
const faulty = (notifications: Notification[], said = status, words = section as (url: string) => string | null) =>
  judge(fault, notifications, 1_000, said, words).faulty

test('nothing is at fault if the alert, the runbook and the status name the cause', () => {
  const { expected, calls, faulty } = judge(fault, [paused], 1_000, status, section)
  expect({ afterMs: expected?.afterMs, calls, faulty }).toEqual({ afterMs: 500, calls: 1, faulty: [] })
})

test('an alert that the fault allows beside its own is named, and is not at fault', () => {
  const { others, faulty } = judge(
    fault,
    [paused, told(2_000, 'OutboxdUncertain', { receiver: 'tickets' })],
    1_000,
    status,
    section,
  )
  expect({ others: others.map(({ name }) => name), faulty }).toEqual({ others: ['OutboxdUncertain'], faulty: [] })
})

describe('is at fault:', () => {
  test.each([
    ['no alert', faulty([]), 'was not told'],
    ['another reason', faulty([told(1_500, 'OutboxdPaused', { reason: 'throttled' })]), 'was not told'],
    [
      'an alert that the fault does not allow',
      faulty([told(1_200, 'OutboxdContractBreach'), paused]),
      'OutboxdContractBreach was told as well',
    ],
    [
      'an alert before anything was wrong',
      faulty([told(500, 'OutboxdUncertain'), paused]),
      'before anything was wrong',
    ],
    [
      'a text without the cause',
      faulty([told(1_500, 'OutboxdPaused', { reason: 'unavailable', text: 'Look.' })]),
      'text does not',
    ],
    ['a runbook without the cause', faulty([paused], status, () => 'Look around.'), 'does not name the cause'],
    ['an alert without a section', faulty([paused], status, () => null), 'does not name the cause'],
    [
      'a second call',
      faulty([paused, told(1_600, 'OutboxdPaused', { reason: 'unavailable', group: 'another' })]),
      'called 2 times',
    ],
    ['a status that says something else first', faulty([paused], 'All is well.'), 'status does not say it first'],
  ])('%s', (_what, words, expected) => {
    expect(words.join(' / ')).toContain(expected)
  })
})

test('notifications of an open incident are one call, and after its end the next one is a second call', () => {
  const { calls } = judge(
    fault,
    [paused, { ...paused, atMs: 1_800 }, resolved(2_000, 'OutboxdPaused'), { ...paused, atMs: 3_000 }],
    1_000,
    status,
    section,
  )
  expect(calls).toBe(2)
})
