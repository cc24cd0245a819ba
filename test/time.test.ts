import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { formatDuration, formatInstant, formatInstantAndDistance, parseDurationMs, parseEpochMs } from '../src/time.ts'

const nowMs = Date.UTC(2026, 10, 3, 12)

describe('a duration', () => {
  test.each([
    ['90s', 90_000],
    ['15m', 900_000],
    ['2h', 7_200_000],
    ['1h30m', 5_400_000],
    ['3d', 259_200_000],
    ['1w', 604_800_000],
  ])('%s', (text, ms) => expect(parseDurationMs(text)).toBe(ms))

  test.each(['', '2', 'h', '2 h', '-2h', '2H', '2h ago', '1.5h', '2hours'])('%j is not a duration', (text) =>
    expect(parseDurationMs(text)).toBeNull())
})

describe('a moment', () => {
  test.each([
    ['2h', '2026-11-03T10:00:00.000Z'],
    ['2026-11-03T10:00:00Z', '2026-11-03T10:00:00.000Z'],
    ['2026-11-03 10:00+01:00', '2026-11-03T09:00:00.000Z'],
    ['2026-11-03T10:00:00.123Z', '2026-11-03T10:00:00.123Z'],
  ])('%s', (text, iso) => expect(new Date(parseEpochMs(text, nowMs) ?? 0).toISOString()).toBe(iso))

  test('without an offset is in UTC, whatever the time zone of the machine', () => {
    vi.stubEnv('TZ', 'Asia/Tokyo')
    onTestFinished(() => void vi.unstubAllEnvs())
    expect(new Date(nowMs).getHours()).toBe(21)
    expect(parseEpochMs('2026-11-03', nowMs)).toBe(Date.UTC(2026, 10, 3))
    expect(parseEpochMs('2026-11-03 14:30', nowMs)).toBe(Date.UTC(2026, 10, 3, 14, 30))
  })

  test.each([
    'yesterday',
    '03.11.2026',
    '2026-13-01',
    '2026-11-03T25:00',
    '2026-11-03x',
  ])('%s is not a moment', (text) => expect(parseEpochMs(text, nowMs)).toBeNull())
})

test('durations and moments are formatted for people', () => {
  expect([40_000, 125_000, 2_400_000, 7_500_000, 270_000_000].map(formatDuration)).toEqual([
    '40 s',
    '2 min 5 s',
    '40 min',
    '2 h 5 min',
    '3 d 3 h',
  ])
  expect(formatInstant(nowMs)).toBe('2026-11-03 12:00:00Z')
  expect(formatInstantAndDistance(nowMs - 3_600_000, nowMs)).toBe('2026-11-03 11:00:00Z (1 h ago)')
  expect(formatInstantAndDistance(nowMs + 60_000, nowMs)).toBe('2026-11-03 12:01:00Z (in 1 min)')
})
