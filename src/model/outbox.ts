import type { State } from '../model.ts'

/** A row of the client's outbox as it was read: nothing parsed, every digit as the ERP wrote it. */
export interface OutboxRecord {
  /** The row's identity as text: a bigint or a uuid, whatever the table has. */
  outboxId: string
  type: string
  /** Records of one key are submitted in order; null means no order. */
  key: string | null
  /** JSON text; null where it could not be read, and then `unreadable` says why. */
  payload: string | null
  unreadable: string | null
  /** ISO 8601 text with microseconds; null where the table does not say. */
  createdAt: string | null
  /** Tells the row from another that has, or had, the same id; null where it was not read from the table. */
  stamp: string | null
}

/** A row that is put off, since it can neither be captured nor rejected, or its table refuses our mark. */
export interface SkippedRow {
  outboxId: string
  /** Whether the ledger has it, so that nobody behind it has to wait. */
  isCaptured: boolean
}

/** What a claim takes, and what it leaves where it is. */
export interface ClaimRequest {
  /** At most so many rows. */
  limit: number
  /** At most so many of one key. */
  lineMax: number
  /** Rows of these keys stay. */
  exceptKeys: readonly string[]
  /** These rows stay; those that are not captured hold back the rows of their key behind them. */
  skipped: readonly SkippedRow[]
  /** Rows of types that we do not know stay for those who do, and hold back the rows of their key behind them. */
  types: KnownTypes
}

export interface KnownTypes {
  /** Ours. */
  known: readonly string[]
  /** Those of other live instances; null: one of them may know any. */
  elsewhere: readonly string[] | null
}

/** Rows in hand. Disposed of without being marked, or when the marking is lost, they are as new as before. */
export interface ClaimedRows extends AsyncDisposable {
  /** In their order. */
  readonly outboxIds: readonly string[]
  /** Types of rows that were left to others. */
  readonly leftTypes: readonly string[]
  /** The ledger alone says that a row is taken: one that is not marked is not claimed again. */
  readonly isRemembered: boolean
  /** The first of the rows, as many as may be held in memory at once: at least one, where there is one. */
  read(): Promise<OutboxRecord[]>
  /**
   * Says on the rows what has become of them, and lets them go.
   *
   * @returns the ids of those that do not say so, and that we tell later: the table ignored it, or they are not in hand
   */
  mark(statuses: readonly RowStatus[]): Promise<string[]>
}

/** What a record has become, for its outbox row. */
export interface RowStatus {
  outboxId: string
  /** The row that is meant: another of the same id is told nothing. Left out or null: whichever has the id. */
  stamp?: string | null
  state: State
  transactionId: string | null
  errorCode: string | null
  error: string | null
}

/** What came of telling outbox rows their states. */
export type Telling<R extends RowStatus> =
  /** Another instance tells rows just now. */
  | { kind: 'busy' }
  | { kind: 'told'; rows: ToldRow<R>[] }
  /** Nothing was written, and at least one of these rows is why: the table refuses it, or waited for a lock (`isLock`). */
  | { kind: 'refused'; statuses: R[]; code: string; message: string; isLock: boolean }

/** What came of telling one row. */
export type ToldRow<R extends RowStatus> = { status: R } & (
  | { kind: 'written' } /** also where the row is gone, or says already that it is completed or discarded */
  /** By the process with this id, where that can be seen. */
  | { kind: 'locked'; holder: number | null }
  /** The table took the statement, and nothing changed. */
  | { kind: 'ineffective'; why: string }
  /** The id is another row's now. */
  | { kind: 'another' }
  /** It waits, and its contents are others than when it was taken: edited, or another row. */
  | { kind: 'differs' }
)
