import type { State } from '../model.ts'
import { states } from '../model.ts'
import { type PayloadObject, type PayloadValue, quote } from '../yaml/exactJson.ts'
import type { EntryReader } from './entryReader.ts'
import { forms } from './outboxSchema.ts'
import type { StateColumn } from './outboxTable.ts'

/** Reads what says that a row waits; null where that is wrong. */
export function readStateEntry(entry: EntryReader, value: PayloadValue | undefined): StateColumn | 'none' | null {
  if (value === 'none') return 'none'
  const expected = 'none, or { status: … }, { timestamp: … } or { flag: … }'
  if (!entry.isMapping(['state'], value, expected)) return null
  if (Object.hasOwn(value, 'timestamp')) {
    const checked = entry.check(forms.state.timestamp, ['state'], value)
    return checked && { kind: 'timestamp', column: checked.timestamp, set: checked.set }
  }
  if (Object.hasOwn(value, 'flag')) return readFlag(entry, value)
  if (Object.hasOwn(value, 'status')) return readStatus(entry, value)
  entry.report(['state'], `"state" must be ${expected}`)
  return null
}

function readStatus(entry: EntryReader, value: PayloadObject): StateColumn | null {
  const checked = entry.check(forms.state.status, ['state'], value)
  if (!Object.hasOwn(value, 'new')) {
    entry.report(['state'], '"new" is missing: the value of a row that waits')
    return null
  }
  const waiting = readWaiting(entry, value.new)
  const values = new Map<State, string>()
  for (const state of states) {
    if (!Object.hasOwn(value, state)) continue
    const text = entry.scalar(['state', state], value[state])
    if (text !== null) setValue(entry, values, state, text, waiting)
  }
  // A row that does not map ends as it is taken; where the file has no word for that, it is at least no longer new.
  const queued = values.get('queued')
  if (queued !== undefined && !values.has('rejected')) values.set('rejected', queued)
  return checked && { kind: 'value', column: checked.status, waiting, values }
}

function readFlag(entry: EntryReader, value: PayloadObject): StateColumn | null {
  const checked = entry.check(forms.state.flag, ['state'], value)
  const waiting = readWaiting(entry, Object.hasOwn(value, 'new') ? value.new : false)
  const done = entry.scalar(['state', 'done'], value.done ?? true)
  if (checked === null || done === null) return null
  const values = new Map<State, string>()
  for (const state of checked.set) setValue(entry, values, state, done, waiting, 'done')
  if (values.has('queued')) values.set('rejected', done)
  return { kind: 'value', column: checked.flag, waiting, values }
}

function setValue(
  entry: EntryReader,
  values: Map<State, string>,
  state: State,
  text: string,
  waiting: readonly (string | null)[],
  key: string = state,
): void {
  if (waiting.includes(text)) {
    const why = `"${key}" is ${quote(text)}, which "new" is too: the row would be taken again and again`
    entry.report(['state', key], why)
  }
  values.set(state, text)
}

function readWaiting(entry: EntryReader, value: PayloadValue | undefined): (string | null)[] {
  const values = Array.isArray(value) ? value : [value ?? null]
  if (values.length === 0) entry.report(['state', 'new'], '"new" is empty: no row would ever wait')
  return values.map((each, i) =>
    each === null ? null : entry.scalar(Array.isArray(value) ? ['state', 'new', i] : ['state', 'new'], each),
  )
}
