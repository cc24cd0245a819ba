import type { OutboxIdentity, ServedOutbox, StartPosition } from '../ledger/servedOutbox.ts'
import type { ClaimedRows, OutboxRecord, RowStatus, RowsRequest, Telling } from '../model.ts'
import type { HiddenRows } from './beforeStart.ts'
import type { SeenRow } from './cursorStore.ts'
import type { OutboxHistory } from './history.ts'
import type { LockedRow } from './lockedRows.ts'
import type { PassedSlice } from './passedRows.ts'
import type { SaidRow } from './saidRows.ts'
import type { TakenRow } from './takenRows.ts'
import type { RowTrial } from './tryRow.ts'
import type { TypeCount } from './typeCounts.ts'
import type { UnknownStatus } from './unknownStatuses.ts'

/** What is left in the outbox. */
export interface OutboxBacklog {
  waiting: number
  /** Creation of the oldest row that waits, epoch milliseconds; null where none does, or the table does not say. */
  oldestMs: number | null
}

/** The client's outbox: read by the rows' own state or by the ledger's memory, written only in the columns that are ours. */
export interface Outbox {
  /** Claims rows that wait, in their order. Only one at a time may claim: order by key stands on it. */
  claim(request: RowsRequest): Promise<ClaimedRows>
  /** Claims the row of this id; none where it does not wait, or someone else has it in hand. */
  claimOne(outboxId: string): Promise<ClaimedRows>
  /** Ids of the first rows that wait and that another session may have locked, so that no claim takes them; cheap. */
  readMarked(): Promise<string[]>
  /** Those of these rows that wait and that another session has locked at this moment. */
  findLocked(outboxIds: readonly string[]): Promise<LockedRow[]>
  /** Rows that wait and that a daemon has claimed and not marked yet, and that the ledger does not know. None where no row is ever locked. */
  readInHand(): Promise<SeenRow[]>
  /** The row as it is now, whatever its state; null where there is none of that id. */
  readRecord(outboxId: string): Promise<OutboxRecord | null>
  /** Whether the row of this id says that it waits; true of a table whose rows never say it. */
  saysThatItWaits(outboxId: string): Promise<boolean>
  /** The rows that wait, in the order in which they would be claimed; locks and changes nothing. */
  readNew(limit: number): Promise<OutboxRecord[]>
  /** Whether any row waits, or may; cheap. @param served where it has just been read */
  hasNew(served?: ServedOutbox): Promise<boolean>
  /**
   * Writes states to rows that were claimed, but for those that somebody has locked.
   *
   * @param read what to write, asked when nobody else writes any
   * @throws Error where nothing could be written, whatever the rows
   */
  report<R extends RowStatus>(read: () => Promise<R[]>): Promise<Telling<R>>
  /** Tries on one row that waits what the daemon writes, and takes it back. */
  tryRow(): Promise<RowTrial>
  backlog(): Promise<OutboxBacklog>
  /** The types of rows that wait, and how many each has, among some 10,000 of them. */
  countTypes(): Promise<TypeCount[]>
  /** The rows that wait; null once anything was ever captured. */
  readHistory(): Promise<OutboxHistory | null>
  /** Which table it is, whether or not it is the one that the ledger belongs to. @throws OutboxTableUnusable */
  identify(): Promise<OutboxIdentity>
  /**
   * Sees that the table can be used and is the ledger's; a ledger that knows none belongs to it from now on.
   *
   * @throws OutboxTableUnusable, ForeignOutbox
   */
  adopt(who: string): Promise<void>
  /** Does nothing where the table can be read as described and is the ledger's. @throws OutboxTableUnusable, ForeignOutbox */
  tryTable(): Promise<void>
  /**
   * The rows of a slice, in the order of ids, that say they are under way.
   *
   * @param after        the id that ended the slice before
   * @param isWaitingToo also those that wait and name a transaction
   * @returns `unknown`: those that the ledger does not know; `known`: the ids of those that it does, as the rows that they are, where they say otherwise of what has ended; `upTo`: the id that ends it, null for the last; `canTell`: whether rows say that they are under way
   */
  readTaken(
    after: string | null,
    isWaitingToo?: boolean,
  ): Promise<{ unknown: TakenRow[]; known: string[]; upTo: string | null; canTell: boolean }>
  /** What the rows of these ids say of their records, as far as they are the rows that the ledger knows. */
  readSaid(outboxIds: readonly string[]): Promise<SaidRow[]>
  /**
   * The rows of a slice that wait behind the position up to which the table was read, and that the ledger does not know.
   *
   * @param after the id that ended the slice before
   * @returns null where rows say themselves that they wait, there is no position yet, or the slice takes too long to read
   */
  readPassedOver(after: string | null, sliceRows: number): Promise<PassedSlice | null>
  /**
   * Counts the rows of a slice, in the order of ids, by statuses that the description does not name.
   *
   * @param after the id that ended the slice before
   * @returns null if rows have no such status, or the slice takes too long to read
   */
  readUnknownStatuses(
    after: string | null,
    sliceRows: number,
  ): Promise<{ unknown: UnknownStatus[]; upTo: string | null } | null>
  /** Those of these ids that are in the table, whatever their rows say. */
  findPresent(outboxIds: readonly string[]): Promise<ReadonlySet<string>>
  /** Conflicts of rows that the ERP has taken out or put right are over. */
  reviewConflicts(): Promise<void>
  /** The start position of this moment. @throws OutboxTableUnusable where there is none to be had */
  findNow(): Promise<StartPosition>
  /** @returns why a start position cannot be used; null where it can. @throws OutboxTableUnusable */
  tryStart(start: StartPosition): Promise<string | null>
  /** The rows that say that they wait before a start position: the ledger's own, where none is given. Null: they cannot say so */
  readHidden(start?: StartPosition): Promise<HiddenRows | null>
  /** What is no mistake of the table or its description, and may not be what was meant: clauses. */
  findRemarks(): Promise<string[]>
  /** Whether a row lies before the ledger's start position. */
  liesBefore(outboxId: string): Promise<boolean>
  /** The channel that announces new rows; null where the table has no such trigger. */
  readonly channel: string | null
  /** The table's name, quoted, with its schema where one was named. */
  readonly qualified: string
  /** Whether a row says that it is taken as soon as it is. */
  readonly saysTaken: boolean
}
