import { isObject, nameKind, type PayloadObject, type PayloadValue, quote } from '../yaml/exactJson.ts'
import { didYouMean } from '../yaml/nearestWord.ts'
import type { EntryReader } from './entryReader.ts'
import { forms } from './outboxSchema.ts'
import type { OutboxTable } from './outboxTable.ts'

/** Reads where the payload is, or what it is built of; null where that is wrong. */
export function readPayloadEntry(entry: EntryReader, value: PayloadValue | undefined): OutboxTable['payload'] | null {
  if (typeof value === 'string')
    return entry.column(['payload'], value, { kind: 'column', column: value, encoding: 'utf-8' })
  if (!entry.isMapping(['payload'], value, 'a column, or { columns: … } to build it of the row')) return null
  if (Object.hasOwn(value, 'columns')) return readColumns(entry, value)
  const checked = entry.check(forms.payload.column, ['payload'], value, ['columns'])
  if (checked === null) return null
  const { column, encoding = 'utf-8' } = checked
  if (!isEncoding(encoding)) {
    const message = `unknown encoding ${quote(encoding)}${didYouMean(encoding, encodings) || `: known are ${encodings.join(', ')}`}`
    entry.report(['payload', 'encoding'], message)
  }
  return { kind: 'column', column, encoding: encoding.toLowerCase() }
}

function readColumns(entry: EntryReader, value: PayloadObject): OutboxTable['payload'] | null {
  const { columns, ...rest } = value
  entry.check(forms.payload.columns.omit({ columns: true }), ['payload'], rest, ['columns'])
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
      entry.report([...at, step], `must be a column's name, and is ${nameKind(column)}`)
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
