import { readFileSync } from 'node:fs'
import path from 'node:path'
import type { z } from 'zod'
import { isObject, type PayloadValue } from '../yaml/exactJson.ts'
import { type FileProblem, FilesInvalid, YamlDocument } from '../yaml/yamlDocument.ts'
import { EntryReader } from './entryReader.ts'
import { outboxFileSchema } from './outboxSchema.ts'
import type { OutboxTable, WrittenColumn } from './outboxTable.ts'
import { readCreatedAtEntry, readPayloadEntry, readTypeEntry, readWriteEntry } from './readEntries.ts'
import { readStateEntry } from './stateEntries.ts'
import { type StateColumn, stateExpressions } from './stateForms.ts'

/**
 * Checks the text of an outbox.yaml.
 * @param file its name in messages
 */
export function readOutboxFile(
  file: string,
  text: string,
): { table: OutboxTable | null; problems: readonly FileProblem[] } {
  const document = new YamlDocument(file, text)
  const { content } = document
  const table = content === undefined ? null : readEntries(new EntryReader(document), file, content)
  const problems = [...document.problems].sort((a, b) => a.line - b.line || a.column - b.column)
  return { table: problems.length === 0 ? table : null, problems }
}

function readEntries(entry: EntryReader, file: string, content: PayloadValue): OutboxTable | null {
  const top = entry.check(outboxFileSchema, [], content)
  if (!isObject(content)) return null
  const pieces = {
    type: readTypeEntry(entry, content.type),
    createdAt: readCreatedAtEntry(entry, content.created_at),
    payload: content.payload === undefined ? idAsPayload(content.id) : readPayloadEntry(entry, content.payload),
    state: readStateEntry(entry, content.state),
    write: readWriteEntry(entry, content.write),
  }
  if (top !== null) {
    const state = pieces.state === 'none' ? null : pieces.state
    judge(entry, top, state, pieces.write)
    judgeWritten(entry, top, { ...pieces, state })
  }
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

/** For mapping files whose query (`source`) reads the rest. */
const idAsPayload = (id: PayloadValue | undefined): OutboxTable['payload'] | null =>
  typeof id === 'string' ? { kind: 'columns', columns: new Map([['id', id]]) } : null

/** Checks entries against each other. */
function judge(
  entry: EntryReader,
  top: z.infer<typeof outboxFileSchema>,
  state: StateColumn | null,
  write: readonly WrittenColumn[],
): void {
  // The cursor would pass a row before the row waits.
  if (top.sequence !== undefined && state !== null) {
    const why = '"sequence" is only for "state: none", where a row waits from its insert on: remove it'
    entry.reportKey(['sequence'], why)
  }
  if (top.sequence !== undefined && top.order !== undefined && top.order !== top.sequence)
    entry.reportKey(
      ['order'],
      '"order" and "sequence" are both given, and rows are captured in the order of "sequence": remove "order"',
    )
  for (const { column } of write)
    if (column === state?.column) entry.reportKey(['write', column], `"${column}" is written by "state" already`)
}

/**
 * Refuses to write to columns that identify or order a row, and to columns that the ERP fills. If the payload has
 * several columns, those that outboxd writes are left out of comparisons.
 */
function judgeWritten(
  entry: EntryReader,
  { id, id_unique, key, sequence }: z.infer<typeof outboxFileSchema>,
  {
    type,
    createdAt,
    payload,
    state,
    write,
  }: Pick<OutboxTable, 'createdAt' | 'state' | 'write'> & {
    [piece in 'type' | 'payload']: OutboxTable[piece] | null
  },
): void {
  const known = new Map<string | undefined, string>([
    [id, 'identifies the row ("id")'],
    [createdAt?.column, 'is the time that identifies the row ("created_at")'],
    [sequence, 'orders the rows ("sequence")'],
  ])
  const read = new Map<string | undefined, string>([
    [type?.kind === 'column' ? type.column : undefined, 'is read as the record\'s type ("type")'],
    [key, 'is read as the record\'s key ("key")'],
    [payload?.kind === 'column' ? payload.column : undefined, 'is read as the record\'s payload ("payload")'],
  ])
  const why = (name: string, what: string) => `"${name}" ${what}, and must not be written: name another column`
  for (const { column } of write) {
    const what = known.get(column) ?? read.get(column)
    if (what !== undefined && column !== state?.column) entry.reportKey(['write', column], why(column, what))
  }
  if (state === null || stateExpressions(state)?.writes.length === 0) return
  // The row's type and key are read before the write.
  const isKnownByTime = createdAt !== null && id_unique === undefined
  const what = known.get(state.column) ?? (isKnownByTime ? undefined : read.get(state.column))
  if (what !== undefined) entry.report(['state'], why(state.column, what))
}

export function loadOutboxFile(dir: string): OutboxTable | null {
  const file = path.join(dir, 'outbox.yaml')
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(file))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    const reason = error instanceof TypeError ? 'it is not UTF-8 text' : (error as Error).message
    throw new FilesInvalid([{ file, line: 1, column: 1, message: `the file cannot be read: ${reason}` }])
  }
  const { table, problems } = readOutboxFile(file, text)
  if (table === null) throw new FilesInvalid(problems)
  return table
}
