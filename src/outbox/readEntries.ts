import { isObject, nameJsonKind, type PayloadObject, type PayloadValue, quoteForMessage } from '../yaml/exactJson.ts'
import { didYouMean } from '../yaml/nearestWord.ts'
import type { EntryReader } from './entryReader.ts'
import { outboxEntrySchemas } from './outboxSchema.ts'
import type { OutboxTable, WrittenColumn } from './outboxTable.ts'

export function readTypeEntry(entry: EntryReader, value: PayloadValue | undefined): OutboxTable['type'] | null {
  if (typeof value === 'string')
    return entry.column(['type'], value, { kind: 'column', column: value, values: new Map() })
  if (!entry.isMapping(['type'], value, 'the column with the type, or { constant: data }')) return null
  if (Object.hasOwn(value, 'constant')) {
    const checked = entry.check(outboxEntrySchemas.type.constant, ['type'], value)
    return checked && { kind: 'constant', type: checked.constant }
  }
  const checked = entry.check(outboxEntrySchemas.type.column, ['type'], value, ['constant'])
  return checked && { kind: 'column', column: checked.column, values: new Map(Object.entries(checked.values ?? {})) }
}

export function readCreatedAtEntry(entry: EntryReader, value: PayloadValue | undefined): OutboxTable['createdAt'] {
  if (value === undefined) return null
  if (typeof value === 'string')
    return entry.column(['created_at'], value, { column: value, unit: null, timezone: 'UTC' })
  if (!entry.isMapping(['created_at'], value, 'a column, or { column: …, unit: milliseconds }')) return null
  const checked = entry.check(outboxEntrySchemas.createdAt, ['created_at'], value)
  if (checked === null) return null
  const { column, unit = null, timezone = 'UTC' } = checked
  if (unit !== null && checked.timezone !== undefined)
    entry.report(['created_at', 'timezone'], 'a number since 1970 has no timezone: remove it, or the unit')
  if (!isTimezone(timezone))
    entry.report(
      ['created_at', 'timezone'],
      `unknown timezone ${quoteForMessage(timezone)}: write it like Europe/Berlin`,
    )
  return { column, unit, timezone }
}

export function readWriteEntry(entry: EntryReader, value: PayloadValue | undefined): WrittenColumn[] {
  if (value === undefined || !isObject(value)) return []
  return Object.entries(value).flatMap(([column, what]) => {
    const at = ['write', column]
    const spec = typeof what === 'string' ? { what } : what
    if (!entry.isMapping(at, spec, `one of ${outboxEntrySchemas.whats.join(', ')}, or { what: …, on: [completed] }`))
      return []
    if (typeof what === 'string' && !outboxEntrySchemas.whats.some((each) => each === what)) {
      entry.report(
        at,
        `must be one of ${outboxEntrySchemas.whats.join(', ')}, and is ${quoteForMessage(what)}${didYouMean(what, outboxEntrySchemas.whats)}`,
      )
      return []
    }
    const checked = entry.check(outboxEntrySchemas.write, at, spec)
    return checked ? [{ column, what: checked.what, on: checked.on ?? null }] : []
  })
}

function isTimezone(name: string): boolean {
  try {
    return new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions().timeZone !== ''
  } catch {
    return false
  }
}

export function readPayloadEntry(entry: EntryReader, value: PayloadValue | undefined): OutboxTable['payload'] | null {
  if (typeof value === 'string')
    return entry.column(['payload'], value, { kind: 'column', column: value, encoding: 'utf-8' })
  if (!entry.isMapping(['payload'], value, 'a column, or { columns: … } to build it from the row')) return null
  if (Object.hasOwn(value, 'columns')) return readColumns(entry, value)
  const checked = entry.check(outboxEntrySchemas.payload.column, ['payload'], value, ['columns'])
  if (checked === null) return null
  const { column, encoding = 'utf-8' } = checked
  if (!isEncoding(encoding)) {
    const message = `unknown encoding ${quoteForMessage(encoding)}${didYouMean(encoding, encodings) || `: known are ${encodings.join(', ')}`}`
    entry.report(['payload', 'encoding'], message)
  }
  return { kind: 'column', column, encoding: encoding.toLowerCase() }
}

function readColumns(entry: EntryReader, value: PayloadObject): OutboxTable['payload'] | null {
  const { columns, ...rest } = value
  entry.check(outboxEntrySchemas.payload.columns.omit({ columns: true }), ['payload'], rest, ['columns'])
  const at = ['payload', 'columns']
  if (columns === 'all') return { kind: 'columns', columns: null }
  const named = Array.isArray(columns)
    ? columns.map((column, i): [string | number, PayloadValue] => [i, column])
    : isObject(columns ?? null)
      ? Object.entries(columns as PayloadObject)
      : []
  if (named.length === 0) entry.report(at, '"columns" must be all, a list of columns, or name: column')
  for (const [step, column] of named) {
    if (typeof column !== 'string' || column === '')
      entry.report([...at, step], `must be a column's name, and is ${nameJsonKind(column)}`)
  }
  const pairs = named.map(([step, column]): [string, string] => [
    typeof step === 'number' ? String(column) : step,
    String(column),
  ])
  return { kind: 'columns', columns: new Map(pairs) }
}

const encodings = ['utf-8', 'base64', 'hex', 'windows-1252', 'iso-8859-1', 'utf-16le']

function isEncoding(name: string): boolean {
  try {
    return name === 'base64' || name === 'hex' || new TextDecoder(name).encoding !== ''
  } catch {
    return false
  }
}
