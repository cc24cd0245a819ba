import { expect, test } from 'vitest'
import type { RequestCounts } from '../../src/ledger/requestCounts.ts'
import {
  formatPercent,
  serviceAlarmMessages,
  servicePerformanceMessage,
} from '../../src/operations/serviceLevelTargets.ts'

const counts = (requests: number, failed: number, slow = 0) => ({ requests, failed, answered: requests, slow })
const message = (...given: Parameters<typeof counts>) => servicePerformanceMessage(ofSubmissions(counts(...given)))

test('the message compares a period with both targets', () => {
  expect(message(0, 0)).toBe('no request for a record')
  expect(message(1_000, 8, 11)).toBe(
    '99.2 % of 1000 submissions and polls succeeded (target 99 %), 98.9 % of the answers came within 2 s (below the target of 99 %)',
  )
  expect(servicePerformanceMessage(ofSubmissions({ requests: 2, failed: 2, answered: 0, slow: 0 }))).toBe(
    '0 % of 2 submissions and polls succeeded (below the target of 99 %)',
  )
})

test('a share is rounded down, so that a value below a target never reads as the target', () => {
  expect([1, 0.99999, 0.992, 0.98999, 0.29, 0].map(formatPercent)).toEqual([
    '100 %',
    '99.9 %',
    '99.2 %',
    '98.9 %',
    '29 %',
    '0 %',
  ])
})

const recent = (hour: RequestCounts, minutes = hour) => ({
  lastHour: ofSubmissions(hour),
  last5Minutes: ofSubmissions(minutes),
})
const ofSubmissions = (submit: RequestCounts) => ({ submit, status: counts(0, 0) })

test('the last hour is reported if a fifth of 100 requests failed or was slow, but not nine failures of nine', () => {
  expect(serviceAlarmMessages(recent(counts(100, 14, 14)))).toEqual([])
  expect(serviceAlarmMessages(recent(counts(9, 9, 9)))).toEqual([])
  expect(serviceAlarmMessages(recent(counts(0, 0)))).toEqual([])
  expect(serviceAlarmMessages(recent(counts(100, 20)))).toEqual([
    expect.stringMatching(/^In the last hour 20 of 100 requests failed .*outboxd check/),
  ])
  expect(serviceAlarmMessages(recent(counts(100, 0, 20)))).toEqual([
    expect.stringMatching(/^In the last hour 20 of 100 answers .* longer than its target of 2 s/),
  ])
})

test('an outage that ended five minutes ago is not reported', () => {
  expect(serviceAlarmMessages(recent(counts(100, 20, 20), counts(30, 1, 1)))).toEqual([])
  expect(serviceAlarmMessages(recent(counts(100, 20, 20), counts(0, 0)))).toEqual([])
})
