import { invalid, quoteForMessage } from '../yaml/exactJson.ts'
import type { ConversionResult } from './mapping.ts'

const date = String.raw`(\d{4})-(\d{2})-(\d{2})`
const offset = String.raw`(Z|[+-]\d{2}(?::?\d{2})?)`
const extended = new RegExp(
  String.raw`^${date}(?:[T ](\d{2})(?::(\d{2})(?::(\d{2})(?:[.,](\d+))?)?)?${offset}?)?$`,
  'i',
)
const basic = new RegExp(
  String.raw`^(\d{4})(\d{2})(\d{2})(?:T(\d{2})(?:(\d{2})(?:(\d{2})(?:[.,](\d+))?)?)?${offset}?)?$`,
  'i',
)
const charactersMax = 100

interface Written {
  readonly date: string
  /** `hh:mm`; null for a date without a time. */
  readonly minute: string | null
  readonly second: string
  /** Begins with a point; empty if there is no fraction. */
  readonly fraction: string
  /** `Z`, or an offset such as +01:00; null for a local time. */
  readonly offset: string | null
  readonly endOfDay: boolean
}

/**
 * Converts an ISO 8601 date-time to UTC, with every digit of its fraction.
 * @param zone the zone of local times and of dates without a time; null refuses both
 */
export function convertToUtc(text: string, zone: string | null): ConversionResult {
  const written = parse(text)
  if (written === null)
    return invalid(
      `is not an ISO 8601 date-time like 2026-11-20T23:54:00+01:00: ${quoteForMessage(text)}`,
      'no_datetime',
    )
  if (written.offset === null && zone === null) return invalid(nameMissingZone(text, written), 'no_datetime')
  try {
    return written.offset === null
      ? fromLocal(written, zone as string, text)
      : writeUtc(fromOffset(written, written.offset), written.fraction, text)
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    return invalid(`is not a date of the calendar or a time of the day: ${quoteForMessage(text)}`, 'no_datetime')
  }
}

/** True for an IANA zone that this Node knows, or a fixed offset. */
export function isTimeZone(name: string): boolean {
  try {
    new Temporal.ZonedDateTime(0n, name)
    return true
  } catch {
    return false
  }
}

function parse(text: string): Written | null {
  if (text.length > charactersMax) return null
  const match = extended.exec(text) ?? basic.exec(text)
  if (match === null) return null
  const [, year, month, day, hour, minute = '00', second = '00', fraction = '', zone = null] = match
  const endOfDay = hour === '24' && minute === '00' && second === '00' && /^0*$/.test(fraction)
  if (second > '59') return null // Temporal would read second 60 as 59
  return {
    date: `${year}-${month}-${day}`,
    minute: hour === undefined ? null : `${endOfDay ? '00' : hour}:${minute}`,
    second,
    fraction: fraction === '' ? '' : `.${fraction}`,
    offset: zone?.toUpperCase() ?? null,
    endOfDay,
  }
}

function nameMissingZone(text: string, written: Written): string {
  const what = written.minute === null ? 'is a date without a time' : 'has no offset from UTC'
  return `${what}: ${quoteForMessage(text)}; name its zone in the mapping, for example timezone: Europe/Berlin`
}

function fromOffset(written: Written, utcOffset: string): Temporal.Instant {
  const instant = Temporal.Instant.from(`${written.date}T${written.minute}:${written.second}${utcOffset}`)
  return written.endOfDay ? instant.add({ hours: 24 }) : instant
}

/** A date without a time becomes the day's first instant. This is not 00:00 if the clocks change at midnight. */
function fromLocal(written: Written, zone: string, text: string): ConversionResult {
  if (written.minute === null) {
    const day = Temporal.PlainDate.from(written.date)
    const dayStart = day.toZonedDateTime(zone)
    return dayStart.toPlainDate().equals(day) ? writeUtc(dayStart.toInstant(), '', text) : skippedTime(zone, text)
  }
  const onClock = Temporal.PlainDateTime.from(`${written.date}T${written.minute}:${written.second}`)
  const local = written.endOfDay ? onClock.add({ days: 1 }) : onClock
  const earlier = local.toZonedDateTime(zone, { disambiguation: 'earlier' })
  const later = local.toZonedDateTime(zone, { disambiguation: 'later' })
  if (earlier.epochNanoseconds !== later.epochNanoseconds) {
    const repeated = earlier.toPlainDateTime().equals(local)
    return repeated
      ? invalid(
          `happens twice in ${zone}: ${quoteForMessage(text)} is ${earlier.toInstant()} or ${later.toInstant()}; send the offset`,
          'no_datetime',
        )
      : skippedTime(zone, text)
  }
  return writeUtc(earlier.toInstant(), written.fraction, text)
}

const skippedTime = (zone: string, text: string) =>
  invalid(`does not exist in ${zone}: ${quoteForMessage(text)} falls where the clocks go forward`, 'no_datetime')

function writeUtc(instant: Temporal.Instant, fraction: string, text: string): ConversionResult {
  const second = instant.toString()
  if (second.length !== 'yyyy-mm-ddThh:mm:ssZ'.length)
    return invalid(`is outside the years 0000 to 9999 in UTC: ${quoteForMessage(text)}`, 'no_datetime')
  return { kind: 'value', json: `"${second.slice(0, -1)}${fraction}Z"` }
}
