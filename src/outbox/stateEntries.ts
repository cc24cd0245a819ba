import { z } from 'zod'
import { type State, states } from '../model.ts'
import { type PayloadObject, type PayloadValue, quoteForMessage } from '../yaml/exactJson.ts'
import type { EntryReader } from './entryReader.ts'
import type { StateColumn } from './stateForms.ts'

const column = z.string().min(1)
const scalar = z.union([z.string(), z.number(), z.boolean()])
const scalarOrNull = z.union([scalar, z.null()])
const value = z.union([scalarOrNull, z.array(scalarOrNull)])
export const stateListSchema = z.array(z.enum(states)).min(1)
const perState = Object.fromEntries(states.map((state) => [state, z.unknown().optional()])) as Record<
  State,
  z.ZodOptional<z.ZodUnknown>
>

const timestamp = z.strictObject({
  timestamp: column.describe('A time column. NULL means that the row waits.'),
  set: stateListSchema.describe('The states at which the value is written; [queued] means at capture.'),
})

const perStateJson = scalar.describe('With status: the value that is written at this state.')

const flag = z.strictObject({
  flag: column.describe('A boolean or number column.'),
  new: z.unknown().optional(),
  done: z.unknown().optional(),
  set: stateListSchema.describe('The states at which the value is written; [queued] means at capture.'),
})

const status = z.strictObject({
  status: column.describe('A status column with values of its own.'),
  new: z.unknown().optional(),
  ...perState,
})

interface StateEntry {
  /** The entry's JSON Schema, for editors. */
  json: z.ZodObject
  read(entry: EntryReader, value: PayloadObject): StateColumn | null
}

const entriesOfForms: Record<StateColumn['kind'], Record<string, StateEntry>> = {
  value: {
    status: {
      json: status.extend({
        new: value.describe('The value, or a list of values, of a row that waits. null stands for NULL.'),
        ...z.object(Object.fromEntries(states.map((state) => [state, perStateJson.optional()]))).shape,
      }),
      read: readStatus,
    },
    flag: {
      json: flag.extend({
        new: value
          .describe('The value, or a list of values, of a row that waits. Default with flag: false.')
          .optional(),
        done: scalar.describe('With flag: the value that is written. Default: true.').optional(),
      }),
      read: readFlag,
    },
  },
  timestamp: {
    timestamp: {
      json: timestamp,
      read(entry, value) {
        const checked = entry.check(timestamp, ['state'], value)
        return checked && { kind: 'timestamp', column: checked.timestamp, set: checked.set }
      },
    },
  },
}

const stateEntries = new Map(Object.values(entriesOfForms).flatMap((entries) => Object.entries(entries)))

export const stateEntryJsonSchemas = [...stateEntries.values()].map(({ json }) => json)

export function readStateEntry(entry: EntryReader, value: PayloadValue | undefined): StateColumn | 'none' | null {
  if (value === 'none') return 'none'
  const keys = [...stateEntries.keys()].map((key) => `{ ${key}: … }`)
  const expected = `none, or ${keys.slice(0, -1).join(', ')} or ${keys.at(-1)}`
  if (!entry.isMapping(['state'], value, expected)) return null
  for (const [key, { read }] of stateEntries) if (Object.hasOwn(value, key)) return read(entry, value)
  entry.report(['state'], `"state" must be ${expected}`)
  return null
}

function readStatus(entry: EntryReader, value: PayloadObject): StateColumn | null {
  const checked = entry.check(status, ['state'], value)
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
  // A rejected row ends without being sent. If the file has no value for rejected, the row gets the value for queued,
  // and no longer waits.
  const queued = values.get('queued')
  if (queued !== undefined && !values.has('rejected')) values.set('rejected', queued)
  return checked && { kind: 'value', column: checked.status, waiting, values }
}

function readFlag(entry: EntryReader, value: PayloadObject): StateColumn | null {
  const checked = entry.check(flag, ['state'], value)
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
    const why = `"${key}" is ${quoteForMessage(text)}, the same as "new": the row would be captured again and again`
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
