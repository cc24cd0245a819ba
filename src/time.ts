const unitMs: Record<string, number> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 }

/** Reads a duration such as 90s, 15m, 2h, 1h30m, 3d or 1w. */
export function parseDurationMs(text: string): number | null {
  if (!/^(\d{1,6}[smhdw])+$/.test(text)) return null
  return [...text.matchAll(/(\d+)([smhdw])/g)].reduce((ms, [, n, unit = '']) => ms + Number(n) * (unitMs[unit] ?? 0), 0)
}

/**
 * Reads an ISO 8601 date or time, by default in UTC, or a duration before `nowMs`, such as 2h. Returns null for other
 * texts, and before the year 1.
 */
export function parseEpochMs(text: string, nowMs: number): number | null {
  const epochMs = parseTime(text, nowMs)
  return epochMs === null || epochMs < yearOneMs ? null : epochMs
}

/** Postgres knows no year 0. */
const yearOneMs = Date.parse('0001-01-01T00:00:00Z')

function parseTime(text: string, nowMs: number): number | null {
  const agoMs = parseDurationMs(text)
  if (agoMs !== null) return nowMs - agoMs
  if (!/^\d{4}-\d{2}-\d{2}[^[]*$/.test(text)) return null
  const iso = text.replace(' ', 'T')
  try {
    if (/(Z|[+-]\d{2}(:?\d{2})?)$/i.test(iso.slice(10))) return Temporal.Instant.from(iso).epochMilliseconds
    return Temporal.PlainDateTime.from(iso).toZonedDateTime('UTC').epochMilliseconds
  } catch {
    return null
  }
}

/** `3 d 4 h`, `2 h 5 min`, `40 s`. */
export function formatDuration(durationMs: number): string {
  const s = Math.round(Math.abs(durationMs) / 1000)
  const two = (big: number, bigUnit: string, small: number, smallUnit: string) =>
    small > 0 ? `${big} ${bigUnit} ${small} ${smallUnit}` : `${big} ${bigUnit}`
  if (s < 60) return `${s} s`
  if (s < 600) return two(Math.floor(s / 60), 'min', s % 60, 's')
  if (s < 3_600) return `${Math.round(s / 60)} min`
  if (s < 86_400) return two(Math.floor(s / 3_600), 'h', Math.floor((s % 3_600) / 60), 'min')
  return two(Math.floor(s / 86_400), 'd', Math.floor((s % 86_400) / 3_600), 'h')
}

/** `2026-11-03 10:22:33Z`. */
export function formatInstant(epochMs: number): string {
  return formatIsoInstant(epochMs)
    .replace('T', ' ')
    .replace(/\.\d+Z$/, 'Z')
}

/** `2026-11-03T10:22:33.000Z`, for programs. */
export function formatIsoInstant(epochMs: number): string {
  return new Date(epochMs).toISOString()
}

export function formatIsoInstantOrNull(epochMs: number | null): string | null {
  return epochMs === null ? null : formatIsoInstant(epochMs)
}

/** Replaces fields such as `endedMs` by `ended` with an ISO time. */
export function replaceEpochMsByIsoTimes(fields: object): Record<string, unknown> {
  const shown = Object.entries(fields).map(([name, value]) =>
    name.endsWith('Ms') ? [name.slice(0, -2), formatIsoInstantOrNull(value as number | null)] : [name, value],
  )
  return Object.fromEntries(shown)
}

/** `2026-11-03 10:22:33Z (2 h ago)`. */
export function formatInstantAndDistance(epochMs: number, nowMs: number): string {
  const duration = formatDuration(nowMs - epochMs)
  return `${formatInstant(epochMs)} (${epochMs <= nowMs ? `${duration} ago` : `in ${duration}`})`
}
