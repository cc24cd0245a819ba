import fc from 'fast-check'
import { expect, test } from 'vitest'
import { convertToUtc } from '../../src/mapping/datetime.ts'
import { numRuns } from './mappingOf.ts'

// The oracle is Date's arithmetic on whole minutes and Intl's zones; the mapper uses Temporal.

const pad = (number: number, width = 2) => String(number).padStart(width, '0')

/** A date with a year below 100 needs setUTCFullYear; 400 years are a whole number of weeks and leap years. */
function partsAt(minutes: number): { year: number; month: number; day: number; hour: number; minute: number } {
  const date = new Date(minutes * 60_000)
  return {
    year: date.getUTCFullYear(),
    month: date.getUTCMonth() + 1,
    day: date.getUTCDate(),
    hour: date.getUTCHours(),
    minute: date.getUTCMinutes(),
  }
}

const leastMinutes = new Date('0000-01-04T00:00:00Z').getTime() / 60_000
const mostMinutes = new Date('9999-12-30T00:00:00Z').getTime() / 60_000
const minutes = fc.oneof(
  fc.integer({ min: leastMinutes, max: mostMinutes }),
  fc.integer({ min: Date.UTC(2000, 0) / 60_000, max: Date.UTC(2040, 0) / 60_000 }),
)
const fraction = fc.oneof(
  fc.constant(''),
  fc.array(fc.constantFrom(...'0123456789'), { minLength: 1, maxLength: 40 }).map((d) => d.join('')),
)

const instant = fc.record({
  minutes,
  second: fc.integer({ min: 0, max: 59 }),
  fraction,
  offset: fc.oneof(fc.integer({ min: -23 * 60 - 59, max: 23 * 60 + 59 }), fc.constantFrom(0, 60, -300, 330)),
  basic: fc.boolean(),
  between: fc.constantFrom('T', 't', ' '),
  mark: fc.constantFrom('.', ','),
  zulu: fc.constantFrom('Z', 'z', '+00:00', '-00:00', '+00', '+0000'),
  short: fc.boolean(),
  endOfDay: fc.boolean(),
})

test('every ISO 8601 instant becomes the same instant in UTC, to the last digit of its fraction', () => {
  fc.assert(
    fc.property(instant, (given) => {
      const written = write(given)
      const utc = partsAt(written.minutes)
      const tail = `${pad(written.second)}${written.fraction === '' ? '' : `.${written.fraction}`}`
      const expected = `${pad(utc.year, 4)}-${pad(utc.month)}-${pad(utc.day)}T${pad(utc.hour)}:${pad(utc.minute)}:${tail}Z`
      expect(convertToUtc(written.text, null)).toEqual({ kind: 'value', json: `"${expected}"` })
      expect(convertToUtc(written.text, 'Asia/Kathmandu')).toEqual({ kind: 'value', json: `"${expected}"` })
    }),
    { numRuns },
  )
})

type Instant = typeof instant extends fc.Arbitrary<infer T> ? T : never

/** One of the ways to write the instant; reduced forms drop what they cannot say, 24:00 moves to the day's end. */
function write(given: Instant): { text: string; minutes: number; second: number; fraction: string } {
  const atMidnight = given.endOfDay
  const localMinutes = given.minutes + given.offset
  const minutes = atMidnight ? Math.floor(localMinutes / 1440) * 1440 - given.offset : given.minutes
  const local = partsAt(minutes + given.offset)
  const day = atMidnight ? partsAt(minutes + given.offset - 1) : local
  const hour = pad(atMidnight ? 24 : local.hour)
  const second = given.short || atMidnight ? 0 : given.second
  const digits = given.short || atMidnight ? '' : given.fraction
  const [dash, colon] = given.basic ? ['', ''] : ['-', ':']
  const seconds = given.short ? '' : `${colon}${pad(second)}${digits === '' ? '' : given.mark + digits}`
  const size = Math.abs(given.offset)
  const offset = `${given.offset < 0 ? '-' : '+'}${pad(Math.floor(size / 60))}${colon}${pad(size % 60)}`
  return {
    text:
      `${pad(day.year, 4)}${dash}${pad(day.month)}${dash}${pad(day.day)}${given.basic ? 'T' : given.between}` +
      `${hour}${colon}${pad(local.minute)}${seconds}${given.offset === 0 ? given.zulu : offset}`,
    minutes,
    second,
    fraction: digits,
  }
}

const zones = [
  'Europe/Berlin',
  'America/New_York',
  'Australia/Lord_Howe',
  'Africa/Cairo',
  'Asia/Kolkata',
  'Pacific/Apia',
  'UTC',
]
const formats = new Map(
  zones.map((timeZone) => [
    timeZone,
    new Intl.DateTimeFormat('en-CA', { timeZone, hourCycle: 'h23', dateStyle: 'short', timeStyle: 'medium' }),
  ]),
)

function onClock(zone: string, epochMinutes: number): string {
  const parts = formats.get(zone)?.formatToParts(epochMinutes * 60_000) ?? []
  const of = (type: string) => parts.find((part) => part.type === type)?.value ?? ''
  return `${of('year')}-${of('month')}-${of('day')}T${of('hour')}:${of('minute')}`
}

test('every local time of a zone becomes its instant in UTC, or an error if the zone has it twice', () => {
  const transitions = [
    Date.UTC(2026, 2, 29, 1),
    Date.UTC(2026, 9, 25, 1),
    Date.UTC(2026, 10, 1, 6),
    Date.UTC(2026, 3, 4, 15),
  ]
  const near = fc
    .tuple(fc.constantFrom(...transitions), fc.integer({ min: -180, max: 180 }))
    .map(([at, by]) => at / 60_000 + by)
  const any = fc.integer({ min: Date.UTC(1980, 0) / 60_000, max: Date.UTC(2036, 0) / 60_000 })
  fc.assert(
    fc.property(fc.constantFrom(...zones), fc.oneof(near, any), (zone, at) => {
      const local = onClock(zone, at)
      const twins = [30, 60, 24 * 60]
        .flatMap((by) => [at - by, at + by])
        .filter((other) => onClock(zone, other) === local)
      const utc = partsAt(at)
      const expected = `"${utc.year}-${pad(utc.month)}-${pad(utc.day)}T${pad(utc.hour)}:${pad(utc.minute)}:00.10Z"`
      const converted = convertToUtc(`${local}:00.10`, zone)
      if (twins.length === 0) expect(converted).toEqual({ kind: 'value', json: expected })
      else expect(converted).toMatchObject({ kind: 'invalid', message: expect.stringContaining('happens twice') })
    }),
    { numRuns },
  )
})

test('a local time that the zone skips is an error', () => {
  for (let minute = 0; minute < 60; minute++) {
    const text = `2026-03-29T02:${pad(minute)}:59.999`
    expect(convertToUtc(text, 'Europe/Berlin')).toMatchObject({ message: expect.stringContaining('does not exist') })
  }
  expect(convertToUtc('2011-12-30T12:00', 'Pacific/Apia')).toMatchObject({
    message: expect.stringContaining('does not exist'),
  })
})

test('a date becomes the instant of its midnight, to the second; a day that the zone skips is an error', () => {
  for (const zone of ['Europe/Berlin', 'Africa/Monrovia', 'America/New_York', 'Pacific/Apia', '+05:30'])
    for (const day of ['1880-07-01', '1960-01-01', '2026-11-20'])
      expect(convertToUtc(day, zone)).toEqual(convertToUtc(`${day}T00:00:00`, zone))
  expect(convertToUtc('1893-04-01', 'Europe/Berlin')).toEqual(convertToUtc('1893-03-31T23:06:32Z', null))
  expect(convertToUtc('2011-12-30', 'Pacific/Apia')).toMatchObject({
    message: 'does not exist in Pacific/Apia: "2011-12-30" falls where the clocks go forward',
  })
})

test('any text becomes a UTC text or an error, never a crash', () => {
  const alphabet = fc.constantFrom(...'0123456789-+:.,TZtz W/[]')
  const near = fc.array(alphabet, { maxLength: 30 }).map((characters) => characters.join(''))
  const sample = '2026-11-20T23:54:00.5+01:00'
  const broken = fc
    .tuple(fc.nat(sample.length), alphabet)
    .map(([at, c]) => sample.slice(0, at) + c + sample.slice(at + 1))
  fc.assert(
    fc.property(fc.oneof(near, broken, fc.string()), fc.constantFrom(null, 'Europe/Berlin'), (text, zone) => {
      const converted = convertToUtc(text, zone)
      if (converted.kind === 'value') expect(converted.json).toMatch(/^"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"$/)
      else expect(converted.message.length).toBeLessThan(400)
    }),
    { numRuns },
  )
})
