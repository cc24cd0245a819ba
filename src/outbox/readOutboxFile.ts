import { readFileSync } from 'node:fs'
import path from 'node:path'
import { findMisnamedOutboxFiles, outboxFileName } from '../mapping/loadMappings.ts'
import { isObject, type PayloadObject, type PayloadValue } from '../yaml/exactJson.ts'
import { type FileProblem, FilesInvalid, wholeFile, YamlDocument } from '../yaml/yamlDocument.ts'
import { checkSchema, readEntry } from './entryReader.ts'
import {
  createdAtEntry,
  ourOutboxFileSchema,
  outboxFileSchema,
  payloadEntry,
  typeEntry,
  writtenColumnEntry,
} from './outboxSchema.ts'
import { type OutboxTable, standardOutboxTable, type WrittenColumn } from './outboxTable.ts'
import { readStateEntry } from './stateEntries.ts'
import { stateExpressions } from './stateForms.ts'

/** @param ourTable OUTBOX_TABLE, which a file without `table` is about */
export function parseOutboxFile(
  file: string,
  text: string,
  ourTable = 'outbox',
): { table: OutboxTable | null; problems: readonly FileProblem[] } {
  const document = new YamlDocument(file, text)
  const { content } = document
  const table = content === undefined ? null : readTable(document, content, ourTable)
  const problems = [...document.problems].sort((a, b) => a.line - b.line || a.column - b.column)
  return { table: problems.length === 0 ? table : null, problems }
}

function readTable(document: YamlDocument, content: PayloadValue, ourTable: string): OutboxTable | null {
  if (isObject(content) && Object.keys(content).every((key) => Object.hasOwn(ourOutboxFileSchema.shape, key))) {
    const ours = checkSchema(document, ourOutboxFileSchema, [], content)
    return ours && { ...standardOutboxTable(ourTable), changes: ours.changes ?? 'once', start: ours.start ?? null }
  }
  const top = checkSchema(document, outboxFileSchema, [], content)
  if (!isObject(content)) return null
  const type = readEntry(document, ['type'], content.type, typeEntry)
  const createdAt =
    content.created_at === undefined ? null : readEntry(document, ['created_at'], content.created_at, createdAtEntry)
  const payload = content.payload === undefined ? 'id' : readEntry(document, ['payload'], content.payload, payloadEntry)
  const state = readStateEntry(document, content.state)
  const columns = Object.entries(isObject(content.write ?? null) ? (content.write as PayloadObject) : {})
  const write = columns.map(([column, value]): WrittenColumn | null => {
    const checked = readEntry(document, ['write', column], value, writtenColumnEntry)
    return checked && { column, what: checked.what, on: checked.on ?? null }
  })
  if (top === null || type === null || payload === null || state === null || document.problems.length > 0) return null
  const {
    schema = null,
    table,
    id,
    order = null,
    sequence = null,
    key = null,
    filter = null,
    changes = 'once',
    start = null,
    channel = null,
  } = top
  const read: OutboxTable = {
    ...{ file: document.file, schema, table, id, order, sequence, key, filter, changes, start, channel },
    idPromised: top.id_unique !== undefined,
    type:
      'constant' in type
        ? { kind: 'constant', type: type.constant }
        : { kind: 'column', column: type.column, values: new Map(Object.entries(type.values ?? {})) },
    createdAt: createdAt && {
      column: createdAt.column,
      unit: createdAt.unit ?? null,
      timezone: createdAt.timezone ?? 'UTC',
    },
    payload: payloadOf(payload === 'id' ? { columns: { id } } : payload),
    state: state === 'none' ? null : state,
    write: write.filter((each) => each !== null),
  }
  judge(document, read)
  return read
}

function payloadOf(
  checked: { column: string; encoding?: string | undefined } | { columns: 'all' | string[] | Record<string, string> },
): OutboxTable['payload'] {
  if ('column' in checked)
    return { kind: 'column', column: checked.column, encoding: (checked.encoding ?? 'utf-8').toLowerCase() }
  const { columns } = checked
  if (columns === 'all') return { kind: 'columns', columns: null }
  const pairs = Array.isArray(columns) ? columns.map((name): [string, string] => [name, name]) : Object.entries(columns)
  return { kind: 'columns', columns: new Map(pairs) }
}

/**
 * Reports contradicting entries, and writes to columns that identify or order a row or that the ERP fills.
 */
function judge(document: YamlDocument, table: OutboxTable): void {
  const { id, key, sequence, order, createdAt, type, payload, state, write } = table
  // With a state, a row may begin to wait after the cursor has passed the row.
  if (sequence !== null && state !== null)
    document.reportKey(
      ['sequence'],
      '"sequence" is only for "state: none", where a row waits from its insert on: remove "sequence"',
    )
  if (sequence !== null && order !== null && order !== sequence)
    document.reportKey(
      ['order'],
      '"order" and "sequence" are both given, and rows are captured in the order of "sequence": remove "order"',
    )
  const known = new Map<string | null | undefined, string>([
    [id, 'identifies the row ("id")'],
    [createdAt?.column, 'is the time that identifies the row ("created_at")'],
    [sequence, 'orders the rows ("sequence")'],
  ])
  const read = new Map<string | null, string>([
    [type.kind === 'column' ? type.column : null, 'is read as the record\'s type ("type")'],
    [key, 'is read as the record\'s key ("key")'],
    [payload.kind === 'column' ? payload.column : null, 'is read as the record\'s payload ("payload")'],
  ])
  const why = (name: string, what: string) => `"${name}" ${what}, and must not be written: name another column`
  for (const { column } of write) {
    const what = known.get(column) ?? read.get(column)
    if (column === state?.column) document.reportKey(['write', column], `"${column}" is written by "state" already`)
    else if (what !== undefined) document.reportKey(['write', column], why(column, what))
  }
  if (state === null || stateExpressions(state)?.writes.length === 0) return
  // The state may use the column of type, key or payload: it is read before.
  const what = known.get(state.column)
  if (what !== undefined) document.report(['state'], why(state.column, what))
}

/** Reads how the outbox is to be read: as outbox.yaml says, or as `outboxd migrate --outbox` creates it. */
export const loadOutboxTable = ({
  mappingsDir,
  outboxTable,
}: {
  mappingsDir: string
  outboxTable: string
}): OutboxTable => loadOutboxFile(mappingsDir, outboxTable) ?? standardOutboxTable(outboxTable)

/** @param ourTable as in `parseOutboxFile` */
export function loadOutboxFile(dir: string, ourTable = 'outbox'): OutboxTable | null {
  const file = path.join(dir, outboxFileName)
  let text: string
  try {
    const misnamed = findMisnamedOutboxFiles(dir)
    if (misnamed.length > 0) throw new FilesInvalid(misnamed)
    text = new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(file))
  } catch (error) {
    if (error instanceof FilesInvalid) throw error
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    const reason = error instanceof TypeError ? 'it is not UTF-8 text' : (error as Error).message
    throw new FilesInvalid([{ file, message: `the file cannot be read: ${reason}`, ...wholeFile }])
  }
  const { table, problems } = parseOutboxFile(file, text, ourTable)
  if (table === null) throw new FilesInvalid(problems)
  return table
}
