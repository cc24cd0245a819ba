import type { Changes } from '../model/outbox.ts'
import { type State, states } from '../model/submission.ts'
import { quoteIdentifier } from '../postgres/database.ts'
import { shortDigestOf } from '../yaml/exactJson.ts'
import { type StateColumn, stateExpressions } from './stateForms.ts'

/** An outbox table as `outbox.yaml` describes it. Names are unquoted, as in the catalog. */
export interface OutboxTable {
  /** The file's name for messages; null for the standard table. */
  readonly file: string | null
  /** Null: the search path finds the table. */
  readonly schema: string | null
  readonly table: string
  readonly id: string
  /** True if `outbox.yaml` promises unique ids, because the table's catalog cannot show them. */
  readonly idPromised: boolean
  readonly order: string | null
  /** A column that a sequence fills at the insert, for the form append-only. */
  readonly sequence: string | null
  readonly type: TypeSource
  readonly key: string | null
  readonly createdAt: CreatedAt | null
  readonly payload: PayloadSource
  readonly filter: string | null
  /** Null: rows do not show whether they wait. */
  readonly state: StateColumn | null
  readonly write: readonly WrittenColumn[]
  /** What becomes of a document that changes after it was sent. */
  readonly changes: Changes
  /** Where a new ledger begins: `now`, `beginning` or `id:N`. Null if `outbox.yaml` does not say. */
  readonly start: string | null
  readonly channel: string | null
}

type TypeSource =
  | { kind: 'constant'; type: string }
  | { kind: 'column'; column: string; values: ReadonlyMap<string, string> }

export interface CreatedAt {
  readonly column: string
  /** Null for a column that holds a time. */
  readonly unit: 'seconds' | 'milliseconds' | 'microseconds' | null
  readonly timezone: string
}

type PayloadSource =
  /** `encoding`: base64, hex, or the character set of a bytea. */
  | { kind: 'column'; column: string; encoding: string }
  /** A JSON object of columns, each under its name in the payload. Null stands for all columns. */
  | { kind: 'columns'; columns: ReadonlyMap<string, string> | null }

export interface WrittenColumn {
  readonly column: string
  readonly what: 'state' | 'transaction_id' | 'error_code' | 'error' | 'now'
  /** Written at these states, and emptied when the record ends in a different state. Null stands for every state. */
  readonly on: readonly State[] | null
}

const outboxChannel = 'outboxd_outbox'

/** Describes a table that `migrate --outbox` creates. @param name name, or schema.name */
export const standardOutboxTable = (name: string): OutboxTable => ({
  ...splitTableName(name),
  file: null,
  id: 'id',
  idPromised: false,
  order: 'id',
  sequence: null,
  type: { kind: 'column', column: 'type', values: new Map() },
  key: 'key',
  createdAt: { column: 'created_at', unit: null, timezone: 'UTC' },
  payload: { kind: 'column', column: 'payload', encoding: 'utf-8' },
  filter: null,
  state: { kind: 'value', column: 'status', waiting: ['new'], values: new Map(states.map((state) => [state, state])) },
  write: [
    { column: 'transaction_id', what: 'transaction_id', on: null },
    { column: 'error_code', what: 'error_code', on: null },
    { column: 'error', what: 'error', on: null },
    { column: 'updated_at', what: 'now', on: null },
  ],
  changes: 'once',
  start: null,
  channel: outboxChannel,
})

export const toOutboxTable = (table: OutboxTable | string): OutboxTable =>
  typeof table === 'string' ? standardOutboxTable(table) : table

export function splitTableName(name: string): { schema: string | null; table: string } {
  const [first = '', second] = name.split('.')
  return second === undefined ? { schema: null, table: first } : { schema: first, table: second }
}

export const qualifiedNameSql = ({ schema, table }: Pick<OutboxTable, 'schema' | 'table'>): string =>
  [...(schema === null ? [] : [schema]), table].map(quoteIdentifier).join('.')

interface DescribedColumn {
  readonly column: string
  /** The entry of `outbox.yaml` that names the column. */
  readonly entry: string
  readonly isWritten: boolean
}

/** A payload of all columns adds none. */
export function listColumnsNamedInOutboxFile({
  payload,
  type,
  createdAt,
  state,
  write,
  ...table
}: OutboxTable): DescribedColumn[] {
  const payloadColumns = payload.kind === 'column' ? [payload.column] : [...(payload.columns?.values() ?? [])]
  const read: [string, string | null | undefined][] = [
    ['id', table.id],
    ['order', table.order],
    ['sequence', table.sequence],
    ['type', type.kind === 'column' ? type.column : null],
    ['key', table.key],
    ['created_at', createdAt?.column],
    ['state', state?.column],
    ...payloadColumns.map((column): [string, string] => ['payload', column]),
  ]
  const isStateWritten = (stateExpressions(state)?.writes.length ?? 0) > 0
  return [
    ...read.flatMap(([entry, column]) =>
      typeof column === 'string' ? [{ column, entry, isWritten: entry === 'state' && isStateWritten }] : [],
    ),
    ...write.map(({ column }) => ({ column, entry: 'write', isWritten: true })),
  ]
}

/** A digest of how the table is read and written. Leaves out the table's name, which the ledger compares separately. */
export const tableAccessDigest = (table: OutboxTable): string =>
  shortDigestOf({ ...table, file: null, schema: null, table: null, id: null, start: null, channel: null })

/**
 * How the daemon knows which rows are captured:
 *
 *     marked        the capture writes to the row, which then no longer waits
 *     end only      only the end is written: the ledger has no record of the row
 *     append-only   nothing is written: the row's number is above the position in the ledger, which has no record of it
 */
export type TableForm = 'marked' | 'end only' | 'append-only'

export function tableFormOf({ state }: Pick<OutboxTable, 'state'>): TableForm {
  const form = stateExpressions(state)
  if (form === null) return 'append-only'
  return form.isMarkedOnCapture ? 'marked' : 'end only'
}
