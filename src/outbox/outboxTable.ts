import { type State, states } from '../model.ts'
import { quoteIdentifier } from '../postgres/database.ts'
import { digestOf } from '../yaml/exactJson.ts'
import { formOf, type StateColumn } from './stateForms.ts'

/**
 * An outbox table as `mappings/outbox.yaml` describes it, or section 10's: where each part of a record is, which rows
 * wait, and what is written back. Names are as in the catalog, unquoted.
 */
export interface OutboxTable {
  /** How problems name the description; null for section 10's table. */
  readonly file: string | null
  /** Null: wherever the search path finds the table. */
  readonly schema: string | null
  readonly table: string
  readonly id: string
  /** The description promises that ids are unique: believed only if the catalog cannot say it. */
  readonly idPromised: boolean
  /** Rows are taken in this column's order. */
  readonly order: string | null
  /** A column that the database draws from a sequence as it inserts the row: lets the ledger remember a position. */
  readonly sequence: string | null
  readonly type: TypeSource
  readonly key: string | null
  readonly createdAt: CreatedAt | null
  readonly payload: PayloadSource
  /** A condition in SQL on the table's columns; rows outside are none of ours. */
  readonly filter: string | null
  /** Null: the rows do not say whether they wait. */
  readonly state: StateColumn | null
  readonly write: readonly WrittenColumn[]
  /** NOTIFY channel that announces new rows. */
  readonly channel: string | null
}

export type TypeSource =
  | { kind: 'constant'; type: string }
  /** `values` turns the column's text into a type; what it does not name stays as it is. */
  | { kind: 'column'; column: string; values: ReadonlyMap<string, string> }

export interface CreatedAt {
  readonly column: string
  /** Of a number since 1970; null for a column that holds a time. */
  readonly unit: 'seconds' | 'milliseconds' | 'microseconds' | null
  /** Where a time without zone is at home. */
  readonly timezone: string
}

export type PayloadSource =
  /** `encoding`: base64, hex, or the character set of a bytea. */
  | { kind: 'column'; column: string; encoding: string }
  /** A JSON object built of the row: names in the payload and the columns they come from; null: all columns. */
  | { kind: 'columns'; columns: ReadonlyMap<string, string> | null }

export interface WrittenColumn {
  readonly column: string
  readonly what: 'state' | 'transaction_id' | 'error_code' | 'error' | 'now'
  /** Written at these states and emptied when the record ends in another; null: written at every state. */
  readonly on: readonly State[] | null
}

/** The channel on which our own outbox table says that there are new rows. */
const outboxChannel = 'outboxd_outbox'

/** Describes a table such as migrations/outbox.sql creates. @param name name, or schema.name, as OUTBOX_TABLE has it */
export const standardTable = (name: string): OutboxTable => ({
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
  channel: outboxChannel,
})

/** Returns the description, or that of a table such as migrations/outbox.sql creates. */
export const describeTable = (table: OutboxTable | string): OutboxTable =>
  typeof table === 'string' ? standardTable(table) : table

/** Splits a name, or schema.name, as OUTBOX_TABLE has it. */
export function splitTableName(name: string): { schema: string | null; table: string } {
  const [first = '', second] = name.split('.')
  return second === undefined ? { schema: null, table: first } : { schema: first, table: second }
}

/** The table's name, quoted, with its schema if one was named. */
export const qualifiedName = ({ schema, table }: Pick<OutboxTable, 'schema' | 'table'>): string =>
  [...(schema === null ? [] : [schema]), table].map(quoteIdentifier).join('.')

/** A digest of how the table is read and written. Which table it is, the ledger compares by its name in the catalog. */
export const tableDigest = (table: OutboxTable): string =>
  digestOf({ ...table, file: null, schema: null, table: null, id: null, channel: null })

/** Whether a row says that it is taken as soon as it is; otherwise the ledger has to remember. */
export const isMarkedOnCapture = ({ state }: OutboxTable): boolean => formOf(state)?.isMarkedOnCapture ?? false
