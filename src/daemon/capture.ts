import { boundText, textCharsMax } from '../boundText.ts'
import {
  type CaptureSession,
  readDueCaptureRetries,
  resumeCaptureOfTypes,
  skipRows,
  stopCaptureOfTypeBriefly,
  withCaptureLock,
} from '../ledger/capture.ts'
import { clearProblems } from '../ledger/problems.ts'
import { makeReportsDueAgain } from '../ledger/reports.ts'
import { toCapturedRecord, toRejectedRecord } from '../mapping/mapRecord.ts'
import type { CapturedRecord, OutboxRecord, RowStatus } from '../model/outbox.ts'
import { redactError } from '../observe/redact.ts'
import { type ClaimedRows, claimRow, claimRows, MarkIgnored, markRows, readClaimedRows } from '../outbox/claimRows.ts'
import { SourceFailed } from '../outbox/contentQueries.ts'
import { nameDocuments, readRecordContentsThatFit } from '../outbox/readRecordContents.ts'
import { mayHaveWaitingRows, readKey } from '../outbox/readRows.ts'
import { classifyDatabaseError } from '../postgres/database.ts'
import type { SleepFlagResult } from '../postgres/listener.ts'
import type { DaemonContext } from './context.ts'
import type { LoopPart } from './loop.ts'

/**
 * `again`: there may be more rows. `busy`: another instance captures. `full`: CAPTURE_WINDOW has too little room.
 * `waits`: the ledger may have lost data, so no instance captures, or it has the settings of another. `idle`: no row
 * waits. `rest`: all rows that can be captured now were captured.
 */
export type CaptureResult = 'again' | 'busy' | 'full' | 'waits' | 'rest' | 'idle'

interface Captured {
  rows: ClaimedRows
  read: readonly CapturedRecord[]
  records: readonly CapturedRecord[]
  unwrittenIds: readonly string[]
  heldTypes: CaptureSession['heldTypes']
}

/** New rows, or one row by its id. `rejectedFor`: the row is rejected for this reason, and not read. */
type Selection =
  | { kind: 'new'; rowsMax: number }
  | { kind: 'one'; outboxId: string }
  | { kind: 'rejected'; outboxId: string; rejectedFor: string }

type Attempt =
  /** As in `CaptureResult`. */
  | { kind: 'busy' | 'full' | 'waits' }
  /** `read`: number of rows that were read. */
  | { kind: 'captured'; read: number; hasMore: boolean }
  | Failure

interface Failure {
  kind: 'failed'
  /** The rows of which one may be the cause. Empty if the claim failed. */
  outboxIds: readonly string[]
  error: unknown
  /** True if the table refused a mark. The row is then not rejected, because its content is not the cause. */
  isMark: boolean
}

const batchMax = 500
/** With less room, new rows wait, because small batches cost more for each record. The records in the window are enough. */
const roomShareMin = 1 / 4
const fullWaitMs = 500
const sweepEveryMs = 1_000
/** After captured rows, others follow soon. Until then an insert needs no NOTIFY. */
const restMs = 25
/** The wait after a round that found no rows. Rows may also come without a NOTIFY. */
const idleMs: Readonly<Record<SleepFlagResult, number>> = {
  set: 0,
  // A row whose trigger was off, or whose NOTIFY was lost, waits this long.
  asleep: 10_000,
  // Until the transactions that inserted without a NOTIFY have ended.
  writers: 100,
  unavailable: sweepEveryMs,
}

/**
 * Captures rows in batches. A batch is one transaction:
 *
 *     begin; one instance captures at a time (an advisory lock)
 *     lock waiting rows, lowest first, and leave out those whose key has an earlier row that was not locked
 *     lock the documents that rows stand for, then read and map the contents, and insert the records
 *     mark the rows
 *     commit
 *
 * If a batch fails because of a row, smaller batches follow until that row is alone. The row is then rejected with the
 * reason, or skipped if it cannot be rejected or only its mark is refused. A skipped row is tried again with backoff.
 */
export class Capture implements LoopPart {
  readonly #daemon: DaemonContext
  #rowsMax = batchMax
  /** Records captured in this round. */
  #captured = 0

  constructor(daemon: DaemonContext) {
    this.#daemon = daemon
  }

  async runOnce(): Promise<number> {
    this.#captured = 0
    const result = await this.captureOnce()
    if (result !== 'idle') this.#daemon.databases.listener?.clearSleepFlag()
    switch (result) {
      case 'again':
        return 0
      // Waits a random time, because otherwise the same instance would always come second.
      case 'busy':
        return 20 + 80 * Math.random()
      case 'full':
        return fullWaitMs
      case 'waits':
        return sweepEveryMs
      case 'rest':
        return this.#captured > 0 ? restMs : sweepEveryMs
      case 'idle':
        return idleMs[(await this.#daemon.databases.listener?.setSleepFlag()) ?? 'unavailable']
      default:
        return result satisfies never
    }
  }

  /** Returns as many of the first records as may be in memory at once. */
  protected readContents(records: readonly OutboxRecord[]): Promise<OutboxRecord[]> {
    return readRecordContentsThatFit(this.#daemon.databases.outbox, this.#daemon.mappings, records)
  }

  /** @throws errors that concern all rows, such as a lost connection */
  async captureOnce(): Promise<CaptureResult> {
    const { ledger, outbox } = this.#daemon.databases
    const { dueId, hasHeldTypes, whyStopped, served } = await readDueCaptureRetries(ledger)
    if (dueId !== null) {
      const tried = await this.#trySkippedRow(dueId)
      if (tried !== 'again' || whyStopped !== null) return tried
    }
    if (whyStopped !== null) throw new Error(whyStopped)
    // New rows are captured after each try of a skipped row, because many slow tries would hold them up.
    const result = hasHeldTypes || (await mayHaveWaitingRows(outbox, served)) ? await this.#captureNew() : 'idle'
    return dueId === null ? result : 'again'
  }

  /**
   * A batch takes the lowest ids, so halving its size isolates a failing row. A full batch raises the size by an eighth.
   */
  async #captureNew(): Promise<CaptureResult> {
    const rowsMax = this.#rowsMax
    const batch = await this.#capture({ kind: 'new', rowsMax })
    if (batch.kind === 'captured') {
      if (batch.read === rowsMax) this.#rowsMax = Math.min(batchMax, Math.ceil(rowsMax * 1.125))
      return batch.hasMore ? 'again' : 'rest'
    }
    if (batch.kind !== 'failed') return batch.kind
    const { error, outboxIds } = batch
    const [first] = outboxIds
    // If the claim itself fails, no single row is the cause.
    if (first === undefined) throw error
    if (error instanceof MarkIgnored) return this.#skip(outboxIds, batch)
    if (error instanceof SourceFailed && error.blame === 'type') return this.#stopType(error)
    if (outboxIds.length === 1) return this.#rejectOrSkip(first, batch)
    const { log } = this.#daemon
    log.warn('batch of rows could not be captured: the daemon tries smaller batches', {
      count: outboxIds.length,
      error,
    })
    this.#rowsMax = Math.ceil(Math.min(rowsMax, outboxIds.length) / 2)
    return 'again'
  }

  async #stopType(failed: SourceFailed): Promise<'again'> {
    const { type, detail } = failed
    await stopCaptureOfTypeBriefly(this.#daemon.databases.ledger, type, detail)
    this.#daemon.log.error('record type is not captured: the query in its mapping file fails for all rows', {
      type,
      error: failed,
    })
    return 'again'
  }

  /** Captures a row that was skipped and is due again, else rejects it, else skips it. */
  async #trySkippedRow(outboxId: string): Promise<CaptureResult> {
    const attempt = await this.#capture({ kind: 'one', outboxId })
    if (attempt.kind !== 'failed') return this.#forget(outboxId, attempt)
    // If the claim fails, such as for an earlier row of the key, this row is not rejected.
    return attempt.outboxIds.length === 0 ? this.#skip([outboxId], attempt) : this.#rejectOrSkip(outboxId, attempt)
  }

  /** The rejected record keeps its key, because with KEY_ON_FAILURE=block the next ones wait behind it. */
  async #rejectOrSkip(outboxId: string, failure: Failure): Promise<CaptureResult> {
    if (failure.isMark || blameOf(failure) !== 'piece') return this.#skip([outboxId], failure)
    const rejectedFor = boundText(messageOf(failure.error), textCharsMax.message)
    const attempt = await this.#capture({ kind: 'rejected', outboxId, rejectedFor })
    if (attempt.kind === 'failed') return this.#skip([outboxId], attempt)
    if (attempt.kind === 'captured' && attempt.read > 0)
      this.#daemon.log.warn('outbox row could not be captured and was rejected', { outboxId, error: failure.error })
    return this.#forget(outboxId, attempt)
  }

  /** A row that was not claimed is taken by the scan of new rows when its turn comes. */
  async #forget(outboxId: string, attempt: Exclude<Attempt, Failure>): Promise<CaptureResult> {
    if (attempt.kind !== 'captured') return attempt.kind
    await clearProblems(this.#daemon.databases.ledger, 'row_skipped', [outboxId])
    return 'again'
  }

  async #skip(outboxIds: readonly string[], failure: Pick<Failure, 'error' | 'isMark'>): Promise<'again'> {
    const { databases, log } = this.#daemon
    const { error } = failure
    await skipRows(databases.ledger, outboxIds, whySkipped(failure))
    for (const outboxId of outboxIds)
      log.error('outbox row was skipped: the daemon tries it again later', { outboxId, error })
    return 'again'
  }

  /**
   * Captures and marks rows in one transaction.
   * @throws errors that concern all rows, such as a lost connection, if new rows are captured
   */
  async #capture(selection: Selection): Promise<Attempt> {
    const { databases, telemetry, wakeups } = this.#daemon
    const { ledger, outbox } = databases
    let outboxIds: readonly string[] = []
    let isMark = false
    let captured: Captured | 'waits' | 'full' | null
    try {
      captured = await withCaptureLock(databases, (await outbox.open()).db, async (session) => {
        if (!session.mayCapture) return 'waits'
        const rows = await this.#claim(selection, session)
        if (rows === null) return 'full'
        outboxIds = rows.outboxIds
        const read = outboxIds.length === 0 ? [] : await this.#readRecords(selection, rows, session)
        outboxIds = read.map((record) => record.outboxId)
        const records = read.length === 0 ? [] : await session.insert(read, outbox.described.changes)
        // Rows in conflict are not marked, so they are not among the failed rows.
        outboxIds = records.map((record) => record.outboxId)
        isMark = true // also for the COMMIT, where deferred triggers of the table run
        const unwrittenIds = records.length === 0 ? [] : await markRows(session.db, rows, toMarks(records))
        return { rows, read, records, unwrittenIds, heldTypes: session.heldTypes }
      })
    } catch (error) {
      // A row that was skipped must not stop the capture of new rows.
      if (selection.kind === 'new' && blameOf({ error, isMark }) === 'everyone') throw error
      return { kind: 'failed', outboxIds: error instanceof MarkIgnored ? error.outboxIds : outboxIds, error, isMark }
    }
    if (captured === null) return { kind: 'busy' }
    if (captured === 'waits' || captured === 'full') return { kind: captured }
    const { rows, read, records, unwrittenIds, heldTypes } = captured
    if (records.length > 0) {
      this.#captured += records.length
      telemetry.captured(records)
      wakeups.dispatch.wake()
    }
    if (unwrittenIds.length > 0) {
      await makeReportsDueAgain(ledger, unwrittenIds)
      wakeups.report.wake()
    }
    const typesRead = new Set(read.map(({ type }) => type))
    const working = heldTypes.flatMap(({ type, isDue }) =>
      isDue && (typesRead.has(type) || !rows.hasMore) ? [type] : [],
    )
    if (selection.kind === 'new' && working.length > 0) await resumeCaptureOfTypes(ledger, working)
    return {
      kind: 'captured',
      read: read.length,
      hasMore: read.length > 0 && (rows.hasMore || read.length < rows.outboxIds.length),
    }
  }

  /** @returns null if CAPTURE_WINDOW has no room */
  async #claim(selection: Selection, session: CaptureSession): Promise<ClaimedRows | null> {
    const { config, databases } = this.#daemon
    const { outbox } = databases
    const { db, skippedIds, heldTypes } = session
    const { room, keyRowsMax, exceptKeys } = decideClaimLimits(session, config.captureWindow)
    if (selection.kind !== 'new') return room <= 0 ? null : claimRow(outbox, db, selection.outboxId, exceptKeys)
    if (room < config.captureWindow * roomShareMin) return null
    return claimRows(outbox, db, {
      limit: Math.min(selection.rowsMax, room),
      keyRowsMax,
      exceptKeys,
      skippedIds,
      heldTypes: heldTypes.filter(({ isDue }) => !isDue).map(({ type }) => type),
    })
  }

  async #readRecords(
    selection: Selection,
    rows: ClaimedRows,
    { db, lockDocuments }: CaptureSession,
  ): Promise<CapturedRecord[]> {
    const { databases, mappings } = this.#daemon
    const { outbox } = databases
    if (selection.kind === 'rejected') {
      const why = `the row cannot be captured: ${selection.rejectedFor}`
      return [{ ...toRejectedRecord(selection.outboxId, why), key: readKey(rows.key).key }]
    }
    const claimed = await nameDocuments(outbox, mappings, await readClaimedRows(outbox, db, rows))
    await lockDocuments(claimed)
    const records = await this.readContents(claimed)
    return records.map((record) => toCapturedRecord(mappings, record))
  }
}

/**
 * Returns the room in the capture window. Records that wait behind a held record take no room, because they may stay
 * for days. A key with a held record, or with a fortieth of the window, gets no further rows, unless they are of
 * documents.
 */
export function decideClaimLimits(
  { queued, waitingKeys }: Pick<CaptureSession, 'queued' | 'waitingKeys'>,
  captureWindow: number,
): { room: number; keyRowsMax: number; exceptKeys: string[] } {
  const stuck = waitingKeys.reduce((sum, line) => sum + (line.isHeld ? line.length : 0), 0)
  const keyRowsMax = Math.max(1, Math.floor(captureWindow / lineShare))
  const closed = waitingKeys.filter(
    ({ length, isHeld, isOfDocuments }) => !isOfDocuments && (isHeld || length >= keyRowsMax),
  )
  return { room: captureWindow - (queued - stuck), keyRowsMax, exceptKeys: closed.map(({ key }) => key) }
}

const lineShare = 40

function blameOf({ error, isMark }: Pick<Failure, 'error' | 'isMark'>): 'moment' | 'piece' | 'type' | 'everyone' {
  if (error instanceof SourceFailed) return error.blame
  // The table's own triggers may refuse a mark.
  return classifyDatabaseError(error, isMark ? 'mark' : 'claim')
}

/** With the message of Postgres only for a mark, as for an outcome, because the messages of other errors quote the row. */
function whySkipped(failure: Pick<Failure, 'error' | 'isMark'>): string {
  const { error, isMark } = failure
  const { code, class: name } = redactError(error)
  const what = code ?? name
  if (error instanceof MarkIgnored)
    return "the table ignores the mark, so the row is not captured, and rows of its key wait behind it. Check the table's triggers and row-level security"
  const blame = blameOf(failure)
  if (isMark && blame !== 'everyone')
    return `the table refuses the mark (${what}: ${boundText(messageOf(error), 200)}), so the row is not captured, and rows of its key wait behind it. Check the table's triggers and constraints`
  const because = blame === 'moment' ? ': a lock, or too little time or memory' : ''
  if (blame !== 'piece')
    return `the row could not be captured (${what}${because}), and rows of its key wait behind it. The daemon tries again by itself`
  return `the row can be neither captured nor rejected (${what}), and rows of its key wait behind it. Fix the row, or delete it from the outbox`
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/** If the ledger had the record before, the report corrects the mark. */
const toMarks = (records: readonly CapturedRecord[]): RowStatus[] =>
  records.map(({ outboxId, created, error, discarded = null }) => {
    const stateOfMapped = error === null ? 'queued' : 'rejected'
    const state = discarded === null ? stateOfMapped : 'discarded'
    return { outboxId, created, state, transactionId: null, errorCode: null, error: discarded ?? error }
  })
