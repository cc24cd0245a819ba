import type { z } from 'zod'
import type { State } from '../model.ts'
import { states } from '../model.ts'
import { isDigits, isObject, nameKind, type PayloadObject, type PayloadValue, quote } from '../yaml/exactJson.ts'
import type { FileProblem } from '../yaml/fileProblem.ts'
import { didYouMean } from '../yaml/nearestWord.ts'
import { explainIssue } from '../yaml/schemaProblem.ts'
import { YamlDocument, type YamlPath } from '../yaml/yamlDocument.ts'
import { forms, outboxFileSchema } from './outboxSchema.ts'

/** An outbox table as the file describes it; the store reads rows by it. */
export interface OutboxFile {
  file: string
  schema: string | null
  table: string
  id: string
  idPromised: boolean
  order: string | null
  sequence: string | null
  type: { kind: 'constant'; type: string } | { kind: 'column'; column: string; values: Map<string, string> }
  key: string | null
  createdAt: {
    column: string
    unit: 'seconds' | 'milliseconds' | 'microseconds' | null
    timezone: string
  } | null
  payload:
    | { kind: 'column'; column: string; encoding: string }
    | { kind: 'columns'; columns: Map<string, string> | null }
  filter: string | null
  state: OutboxState | null
  write: OutboxWrite[]
  channel: string | null
}

type OutboxState =
  | { kind: 'value'; column: string; waiting: (string | null)[]; values: Map<State, string> }
  | { kind: 'timestamp'; column: string; set: State[] }

interface OutboxWrite {
  column: string
  what: (typeof forms.whats)[number]
  on: State[] | null
}

/** Checks the text of an outbox.yaml and says everything that is wrong with it. Pure. @param file how problems name it */
export function readOutboxFile(
  file: string,
  text: string,
): { table: OutboxFile | null; problems: readonly FileProblem[] } {
  const document = new YamlDocument(file, text)
  const { content } = document
  const table = content === undefined ? null : new Reader(document).read(file, content)
  const problems = [...document.problems].sort((a, b) => a.line - b.line || a.column - b.column)
  return { table: problems.length === 0 ? table : null, problems }
}

/** Reads one document; what is wrong is noted there, and what it returns then is of no use. */
class Reader {
  readonly #document: YamlDocument
  constructor(document: YamlDocument) {
    this.#document = document
  }

  read(file: string, content: PayloadValue): OutboxFile | null {
    const top = this.#check(outboxFileSchema, [], content)
    if (!isObject(content)) return null
    const pieces = {
      type: this.#type(content.type),
      createdAt: this.#createdAt(content.created_at),
      payload: this.#payload(content.payload),
      state: this.#state(content.state),
      write: this.#write(content.write),
    }
    if (top !== null) this.#judge(top, pieces.state === 'none' ? null : pieces.state, pieces.write)
    if (top === null || pieces.type === null || pieces.payload === null || pieces.state === null) return null
    const state = pieces.state === 'none' ? null : pieces.state
    const { schema = null, table, id, order = null, sequence = null, key = null, filter = null, channel = null } = top
    const { type, createdAt, payload, write } = pieces
    const idPromised = top.id_unique !== undefined
    return {
      file,
      schema,
      table,
      id,
      idPromised,
      order,
      sequence,
      type,
      key,
      createdAt,
      payload,
      filter,
      state,
      write,
      channel,
    }
  }

  /** What only makes sense together. */
  #judge(top: z.infer<typeof outboxFileSchema>, state: OutboxState | null, write: readonly OutboxWrite[]): void {
    // A row that came to wait only after the position had passed it would never be seen.
    if (top.sequence !== undefined && state !== null) {
      const why = '"sequence" goes with "state: none" alone, where a row waits from its insert on: remove it'
      this.#document.reportKey(['sequence'], why)
    }
    if (top.sequence !== undefined && top.order !== undefined && top.order !== top.sequence)
      this.#document.reportKey(['order'], '"order" and "sequence" are both given: rows are taken in that of "sequence"')
    for (const { column } of write) {
      if (column === state?.column)
        this.#document.reportKey(['write', column], `"${column}" is written by "state" already`)
      else if (column === top.id)
        this.#document.reportKey(['write', column], `"${column}" is the id, which must not change`)
    }
  }

  #type(value: PayloadValue | undefined): OutboxFile['type'] | null {
    if (typeof value === 'string')
      return this.#column(['type'], value, { kind: 'column', column: value, values: new Map() })
    if (!this.#isMapping(['type'], value, 'the column with the type, or { constant: data }')) return null
    if (Object.hasOwn(value, 'constant')) {
      const checked = this.#check(forms.type.constant, ['type'], value)
      return checked && { kind: 'constant', type: checked.constant }
    }
    const checked = this.#check(forms.type.column, ['type'], value, ['constant'])
    return checked && { kind: 'column', column: checked.column, values: new Map(Object.entries(checked.values ?? {})) }
  }

  #createdAt(value: PayloadValue | undefined): OutboxFile['createdAt'] {
    if (value === undefined) return null
    if (typeof value === 'string')
      return this.#column(['created_at'], value, { column: value, unit: null, timezone: 'UTC' })
    if (!this.#isMapping(['created_at'], value, 'a column, or { column: …, unit: milliseconds }')) return null
    const checked = this.#check(forms.createdAt, ['created_at'], value)
    if (checked === null) return null
    const { column, unit = null, timezone = 'UTC' } = checked
    if (unit !== null && checked.timezone !== undefined)
      this.#document.report(['created_at', 'timezone'], 'a number since 1970 has no timezone: remove it, or the unit')
    if (!isTimezone(timezone))
      this.#document.report(
        ['created_at', 'timezone'],
        `unknown timezone ${quote(timezone)}: write it like Europe/Berlin`,
      )
    return { column, unit, timezone }
  }

  #payload(value: PayloadValue | undefined): OutboxFile['payload'] | null {
    if (typeof value === 'string')
      return this.#column(['payload'], value, { kind: 'column', column: value, encoding: 'utf-8' })
    if (!this.#isMapping(['payload'], value, 'a column, or { columns: … } to build it of the row')) return null
    if (Object.hasOwn(value, 'columns')) return this.#payloadColumns(value)
    const checked = this.#check(forms.payload.column, ['payload'], value, ['columns'])
    if (checked === null) return null
    const { column, encoding = 'utf-8' } = checked
    if (!isEncoding(encoding)) {
      const message = `unknown encoding ${quote(encoding)}${didYouMean(encoding, encodings) || `: known are ${encodings.join(', ')}`}`
      this.#document.report(['payload', 'encoding'], message)
    }
    return { kind: 'column', column, encoding: encoding.toLowerCase() }
  }

  #payloadColumns(value: PayloadObject): OutboxFile['payload'] | null {
    const { columns, ...rest } = value
    this.#check(forms.payload.columns.omit({ columns: true }), ['payload'], rest, ['columns'])
    const at = ['payload', 'columns']
    if (columns === 'all') return { kind: 'columns', columns: null }
    const named = Array.isArray(columns)
      ? columns.map((column, i): [string | number, PayloadValue] => [i, column])
      : isObject(columns ?? null)
        ? Object.entries(columns as PayloadObject)
        : []
    if (named.length === 0) this.#document.report(at, '"columns" must be all, a list of columns, or name: column')
    for (const [step, column] of named) {
      if (typeof column !== 'string' || column === '')
        this.#document.report([...at, step], `must be a column's name, and is ${nameKind(column)}`)
    }
    const pairs = named.map(([step, column]): [string, string] => [
      typeof step === 'number' ? String(column) : step,
      String(column),
    ])
    return { kind: 'columns', columns: new Map(pairs) }
  }

  #state(value: PayloadValue | undefined): OutboxState | 'none' | null {
    if (value === 'none') return 'none'
    const expected = 'none, or { status: … }, { timestamp: … } or { flag: … }'
    if (!this.#isMapping(['state'], value, expected)) return null
    if (Object.hasOwn(value, 'timestamp')) {
      const checked = this.#check(forms.state.timestamp, ['state'], value)
      return checked && { kind: 'timestamp', column: checked.timestamp, set: checked.set }
    }
    if (Object.hasOwn(value, 'flag')) return this.#flag(value)
    if (Object.hasOwn(value, 'status')) return this.#status(value)
    this.#document.report(['state'], `"state" must be ${expected}`)
    return null
  }

  #status(value: PayloadObject): OutboxState | null {
    const checked = this.#check(forms.state.status, ['state'], value)
    if (!Object.hasOwn(value, 'new')) {
      this.#document.report(['state'], '"new" is missing: the value of a row that waits')
      return null
    }
    const waiting = this.#waiting(value.new)
    const values = new Map<State, string>()
    for (const state of states) {
      if (!Object.hasOwn(value, state)) continue
      const text = this.#scalar(['state', state], value[state])
      if (text !== null) this.#setValue(values, state, text, waiting)
    }
    // A row that does not map ends as it is taken; where the file has no word for that, it is at least no longer new.
    const queued = values.get('queued')
    if (queued !== undefined && !values.has('rejected')) values.set('rejected', queued)
    return checked && { kind: 'value', column: checked.status, waiting, values }
  }

  #flag(value: PayloadObject): OutboxState | null {
    const checked = this.#check(forms.state.flag, ['state'], value)
    const waiting = this.#waiting(Object.hasOwn(value, 'new') ? value.new : false)
    const done = this.#scalar(['state', 'done'], value.done ?? true)
    if (checked === null || done === null) return null
    const values = new Map<State, string>()
    for (const state of checked.set) this.#setValue(values, state, done, waiting, 'done')
    if (values.has('queued')) values.set('rejected', done)
    return { kind: 'value', column: checked.flag, waiting, values }
  }

  #setValue(
    values: Map<State, string>,
    state: State,
    text: string,
    waiting: readonly (string | null)[],
    key: string = state,
  ): void {
    if (waiting.includes(text)) {
      const why = `"${key}" is ${quote(text)}, which "new" is too: the row would be taken again and again`
      this.#document.report(['state', key], why)
    }
    values.set(state, text)
  }

  #waiting(value: PayloadValue | undefined): (string | null)[] {
    const values = Array.isArray(value) ? value : [value ?? null]
    if (values.length === 0) this.#document.report(['state', 'new'], '"new" is empty: no row would ever wait')
    return values.map((each, i) =>
      each === null ? null : this.#scalar(Array.isArray(value) ? ['state', 'new', i] : ['state', 'new'], each),
    )
  }

  #write(value: PayloadValue | undefined): OutboxWrite[] {
    if (value === undefined || !isObject(value)) return []
    return Object.entries(value).flatMap(([column, what]) => {
      const at = ['write', column]
      const spec = typeof what === 'string' ? { what } : what
      if (!this.#isMapping(at, spec, `one of ${forms.whats.join(', ')}, or { what: …, on: [completed] }`)) return []
      if (typeof what === 'string' && !forms.whats.some((each) => each === what)) {
        this.#document.report(
          at,
          `must be one of ${forms.whats.join(', ')}, and is ${quote(what)}${didYouMean(what, forms.whats)}`,
        )
        return []
      }
      const checked = this.#check(forms.write, at, spec)
      return checked ? [{ column, what: checked.what, on: checked.on ?? null }] : []
    })
  }

  /** Text of a value as the database will read it. */
  #scalar(at: YamlPath, value: PayloadValue | undefined): string | null {
    if (typeof value === 'string') return value
    if (typeof value === 'boolean') return String(value)
    if (value !== undefined && isDigits(value)) return value.rawJSON
    this.#document.report(at, `must be a text, a number, true or false, and is ${nameKind(value ?? null)}`)
    return null
  }

  #column<T>(at: YamlPath, name: string, value: T): T | null {
    if (name !== '') return value
    this.#document.report(at, `"${at.at(-1)}" is empty`)
    return null
  }

  #isMapping(at: YamlPath, value: PayloadValue | undefined, expected: string): value is PayloadObject {
    if (value !== undefined && isObject(value)) return true
    const name = at.at(-1)
    const message =
      value === undefined
        ? `"${name}" is missing: ${expected}`
        : `"${name}" must be ${expected}, and is ${nameKind(value)}`
    this.#document.report(at, message)
    return false
  }

  /** @param more keys of the entry's other forms, for what to suggest */
  #check<T extends z.ZodObject>(
    schema: T,
    at: YamlPath,
    value: PayloadValue,
    more: readonly string[] = [],
  ): z.infer<T> | null {
    const checked = schema.safeParse(plainOf(value))
    if (checked.success) return checked.data
    for (const issue of checked.error.issues) {
      for (const { key, path: within, message } of explainIssue(issue, value, [
        ...Object.keys(schema.shape),
        ...more,
      ])) {
        if (key) this.#document.reportKey([...at, ...within], message)
        else this.#document.report([...at, ...within], message)
      }
    }
    return null
  }
}

const encodings = ['utf-8', 'base64', 'hex', 'windows-1252', 'iso-8859-1', 'utf-16le']

function isEncoding(name: string): boolean {
  try {
    return name === 'base64' || name === 'hex' || new TextDecoder(name).encoding !== ''
  } catch {
    return false
  }
}

function isTimezone(name: string): boolean {
  try {
    return new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions().timeZone !== ''
  } catch {
    return false
  }
}

/** The value with its numbers as doubles: good enough to check its shape. */
function plainOf(value: PayloadValue): unknown {
  if (isDigits(value)) return Number(value.rawJSON)
  if (Array.isArray(value)) return value.map(plainOf)
  if (!isObject(value)) return value
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, plainOf(member)]))
}
