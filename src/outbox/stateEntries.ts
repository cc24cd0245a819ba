import { z } from 'zod'
import { type State, states } from '../model/submission.ts'
import { isExactNumber, isObject, type PayloadValue, quoteForMessage } from '../yaml/exactJson.ts'
import type { YamlDocument } from '../yaml/yamlDocument.ts'
import { type OutboxFileEntry, readEntry } from './entryReader.ts'
import type { StateColumn } from './stateForms.ts'

const column = z.string().min(1)
const scalar = z.union([z.string(), z.number(), z.boolean()], { error: 'must be a text, a number, true or false' })
const scalarOrNull = z.union([scalar, z.null()], { error: 'must be a text, a number, true, false or null' })
const waitingValue = z.union([scalarOrNull, z.array(scalarOrNull).min(1)], {
  error: 'must be a value, or a list of values',
})
export const stateListSchema = z.array(z.enum(states)).min(1)

const setStates = stateListSchema.describe('The states at which the value is written; [queued] means at capture.')
const perState = scalar.describe('With status: the value that is written at this state.').optional()

/** The forms of `state` in outbox.yaml. Their first keys tell them apart. */
const entriesOfForms = {
  value: {
    status: z.strictObject({
      status: column.describe('A status column with the values of the ERP.'),
      new: waitingValue.describe('The value, or a list of values, of a row that waits. null stands for NULL.'),
      ...z.object(Object.fromEntries(states.map((state) => [state, perState]))).shape,
    }),
    flag: z.strictObject({
      flag: column.describe('A boolean or number column.'),
      new: waitingValue
        .describe('The value, or a list of values, of a row that waits. Default with flag: false.')
        .optional(),
      done: scalar.describe('With flag: the value that is written. Default: true.').optional(),
      set: setStates,
    }),
  },
  timestamp: {
    timestamp: z.strictObject({
      timestamp: column.describe('A time column. NULL means that the row waits.'),
      set: setStates,
    }),
  },
} satisfies Record<StateColumn['kind'], Record<string, z.ZodObject>>

const {
  value: { status, flag },
  timestamp: { timestamp },
} = entriesOfForms

export const stateEntry: OutboxFileEntry<typeof status | typeof flag | typeof timestamp> = {
  forms: [status, flag, timestamp],
  defaultForm: null,
  expected: 'none, or { status: … }, { flag: … } or { timestamp: … }',
}

export function readStateEntry(document: YamlDocument, value: PayloadValue | undefined): StateColumn | 'none' | null {
  if (value === 'none') return 'none'
  const checked = readEntry(document, ['state'], value, stateEntry)
  // Reads the values from the file itself, where a number keeps its digits.
  if (checked === null || value === undefined || !isObject(value)) return null
  if ('timestamp' in checked) return { kind: 'timestamp', column: checked.timestamp, set: checked.set }
  const waiting = [Object.hasOwn(value, 'new') ? (value.new ?? null) : false].flat().map(textOf)
  const values = new Map<State, string>()
  const write = (state: State, text: string | null, key: string) => {
    if (waiting.includes(text)) {
      const why = `"${key}" is ${quoteForMessage(text ?? '')}, the same as "new": the row would be captured again and again`
      document.report(['state', key], why)
    }
    values.set(state, text ?? '')
  }
  if ('flag' in checked) {
    const done = textOf(value.done ?? true)
    for (const state of checked.set) write(state, done, 'done')
  } else {
    for (const state of states) if (Object.hasOwn(value, state)) write(state, textOf(value[state] ?? null), state)
  }
  // A rejected record is never sent. If the file has no value for rejected, the row gets the value for queued, so that
  // the row no longer waits.
  const queued = values.get('queued')
  if (queued !== undefined && !values.has('rejected')) values.set('rejected', queued)
  return { kind: 'value', column: 'flag' in checked ? checked.flag : checked.status, waiting, values }
}

function textOf(value: PayloadValue): string | null {
  if (value === null) return null
  return isExactNumber(value) ? value.rawJSON : String(value)
}
