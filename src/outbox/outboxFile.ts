import type { State } from '../model.ts'
import type { forms } from './outboxSchema.ts'

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

/** What says that a row waits, and what it is told. */
export type OutboxState =
  | { kind: 'value'; column: string; waiting: (string | null)[]; values: Map<State, string> }
  | { kind: 'timestamp'; column: string; set: State[] }

/** A column that is ours to write. */
export interface OutboxWrite {
  column: string
  what: (typeof forms.whats)[number]
  on: State[] | null
}
