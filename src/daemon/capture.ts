import { boundText, textCharsMax } from '../boundText.ts'
import {
  type CaptureSession,
  forgetSkippedRows,
  readDueCaptureRetries,
  resumeCaptureOfTypes,
  skipRows,
  stopCaptureOfTypeBriefly,
  withCaptureLock,
} from '../ledger/capture.ts'
import { makeReportsDueAgain } from '../ledger/reports.ts'
import { toCapturedRecord, toRejectedRecord } from '../mapping/mapRecord.ts'
import type { CapturedRecord, OutboxRecord, RowStatus } from '../model/outbox.ts'
import { redactError } from '../observe/redact.ts'
import {
  type ClaimedRows,
  claimRow,
  claimRows,
  hasToWaitForKey,
  markRows,
  readClaimedRows,
} from '../outbox/claimRows.ts'
import { SourceFailed } from '../outbox/contentQueries.ts'
import { nameDocuments, readRecordContentsThatFit } from '../outbox/readRecordContents.ts'
import { mayHaveWaitingRows } from '../outbox/readRows.ts'
import { classifyDatabaseError } from '../postgres/database.ts'
import type { Listener } from '../postgres/listener.ts'
import type { DaemonContext } from './context.ts'
import type { LoopPart } from './loop.ts'

export interface CaptureContext {
  config: Pick<DaemonContext['config'], 'captureWindow'>
  databases: Pick<DaemonContext['databases'], 'ledger' | 'outbox' | 'instance' | 'ownSettings'> & {
    history: Pick<DaemonContext['databases']['history'], 'stands'>
    listener: Pick<Listener, 'setSleepFlag' | 'clearSleepFlag'> | null
  }
  mappings: DaemonContext['mappings']
  log: Pick<DaemonContext['log'], 'warn' | 'error'>
  telemetry: Pick<DaemonContext['telemetry'], 'captured'>
  wakeups: Record<'dispatch' | 'report', { wake(): void }>
}

/**
 * `again`: there may be more rows. `busy`: another instance captures. `full`: CAPTURE_WINDOW has too little room.
 * `waits`: the ledger may have lost data, so no instance captures, or it has the settings of another. `idle`: no row
 * waits. `rest`: all rows that can be captured now were captured.
 */
export type CaptureResult = 'again' | 'busy' | 'full' | 'waits' | 'rest' | 'idle'

type Attempt =
  /** As in `CaptureResult`. */
  | { kind: 'busy' | 'full' | 'waits' }
  /** `read`: how many of the `claimed` rows were read. `unmarked`: ids of captured rows whose mark the table ignored. */
  | { kind: 'captured'; claimed: number; read: number; unmarked: readonly string[] }
  | Failure

interface Failure {
  kind: 'failed'
  outboxIds: readonly string[]
  error: unknown
  /** True if the table refused a mark. The row is then not rejected, because its content is not the cause. */
  isMark: boolean
}

interface Captured {
  rows: ClaimedRows
  read: number
  records: readonly CapturedRecord[]
  unmarked: readonly string[]
}

/** What an attempt captures. */
interface Selection {
  /** Resolves to null if CAPTURE_WINDOW has no room. */
  claim(session: CaptureSession): Promise<ClaimedRows | null>
  read(rows: ClaimedRows, session: CaptureSession): Promise<CapturedRecord[]>
}

const batchMax = 500
/** With less room, new rows wait, because small batches cost more for each record. The records in the window are enough. */
const roomShareMin = 1 / 4
const fullWaitMs = 500
const sweepEveryMs = 1_000
/** After captured rows, others follow soon. Until then an insert needs no NOTIFY. */
const restMs = 25
/** Until the transactions that inserted without a NOTIFY have ended. */
const writersMs = 100
/** While new rows notify this instance. A row whose trigger was off, or whose NOTIFY was lost, waits this long. */
const asleepSweepEveryMs = 5_000

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
  readonly #context: CaptureContext
  #rowsMax = batchMax
  /** Records captured in this round. */
  #captured = 0

  constructor(context: CaptureContext) {
    this.#context = context
  }

  async runOnce(): Promise<number> {
    this.#captured = 0
    const result = await this.captureOnce()
    if (result !== 'idle') this.#context.databases.listener?.clearSleepFlag()
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
        return this.#fallAsleep()
      default:
        return result satisfies never
    }
  }

  /** Rows may also come without a NOTIFY. No cron job, because the wall clock may be set. */
  async #fallAsleep(): Promise<number> {
    const result = (await this.#context.databases.listener?.setSleepFlag()) ?? 'unavailable'
    switch (result) {
      case 'set':
        return 0
      case 'asleep':
        return asleepSweepEveryMs
      case 'writers':
        return writersMs
      case 'unavailable':
        return sweepEveryMs
      default:
        return result satisfies never
    }
  }

  /** Returns as many of the first records as may be in memory at once. */
  protected readContents(records: readonly OutboxRecord[]): Promise<OutboxRecord[]> {
    return readRecordContentsThatFit(this.#context.databases.outbox, this.#context.mappings, records)
  }

  /** @throws errors that concern all rows, such as a lost connection */
  async captureOnce(): Promise<CaptureResult> {
    const { ledger, outbox } = this.#context.databases
    const { dueId, hasHeldTypes, served } = await readDueCaptureRetries(ledger)
    const captureNewIfAny = async () =>
      hasHeldTypes || (await mayHaveWaitingRows(outbox, served)) ? this.#captureNew() : 'idle'
    if (dueId === null) return captureNewIfAny()
    let tried: CaptureResult
    try {
      tried = await this.#trySkippedRow(dueId)
    } catch (error) {
      // The error says that every row would fail. If new rows do not, the skipped row may be the cause.
      const result = await captureNewIfAny()
      await this.#skip(dueId, { error, isMark: false })
      return result === 'idle' ? 'again' : result
    }
    if (tried !== 'again') return tried
    const result = await captureNewIfAny()
    return result === 'idle' || result === 'full' ? tried : result
  }

  /**
   * A batch takes the lowest ids, so halving its size isolates a failing row. A full batch raises the size by an eighth.
   */
  async #captureNew(): Promise<CaptureResult> {
    const rowsMax = this.#rowsMax
    const batch = await this.#captureBatch(rowsMax)
    if (batch.kind !== 'failed') {
      if (batch.kind !== 'captured') return batch.kind
      if (batch.rows === rowsMax) this.#rowsMax = Math.min(batchMax, Math.ceil(rowsMax * 1.125))
      return batch.hasMore ? 'again' : 'rest'
    }
    const { error, outboxIds } = batch
    const [first] = outboxIds
    // If the claim itself fails, no single row is the cause.
    if (first === undefined) throw error
    if (error instanceof SourceFailed && error.blame === 'type') return this.#stopType(error)
    if (outboxIds.length === 1) return this.#rejectOrSkip(first, batch)
    const { log } = this.#context
    log.warn('batch of rows could not be captured: the daemon tries smaller batches', {
      count: outboxIds.length,
      error,
    })
    this.#rowsMax = Math.ceil(Math.min(rowsMax, outboxIds.length) / 2)
    return 'again'
  }

  async #captureBatch(
    rowsMax: number,
  ): Promise<Exclude<Attempt, { kind: 'captured' }> | { kind: 'captured'; rows: number; hasMore: boolean }> {
    const { config, databases } = this.#context
    let limit = 0
    let triedTypes: string[] = []
    const typesRead = new Set<string>()
    const attempt = await this.#capture({
      claim: async (session) => {
        const { room, keyRowsMax, exceptKeys } = decideClaimLimits(session, config.captureWindow)
        if (room < config.captureWindow * roomShareMin) return null
        limit = Math.min(rowsMax, room)
        triedTypes = session.heldTypes.filter(({ isDue }) => isDue).map(({ type }) => type)
        return claimRows(databases.outbox, session.db, {
          limit,
          keyRowsMax,
          exceptKeys,
          skipped: session.skipped,
          heldTypes: session.heldTypes.filter(({ isDue }) => !isDue).map(({ type }) => type),
        })
      },
      read: async (rows, session) => {
        const records = await this.#readRecords(rows, session)
        for (const { type } of records) typesRead.add(type)
        return records
      },
    })
    if (attempt.kind !== 'captured') return attempt
    const { claimed, read, unmarked } = attempt
    if (unmarked.length > 0) await skipRows(databases.ledger, unmarked.map(withIgnoredMark))
    const released = triedTypes.filter((type) => typesRead.has(type) || claimed < limit)
    if (released.length > 0) await resumeCaptureOfTypes(databases.ledger, released)
    return { kind: 'captured', rows: read, hasMore: read > 0 && (read < claimed || claimed === limit) }
  }

  async #stopType(failed: SourceFailed): Promise<'again'> {
    const { type, detail } = failed
    await stopCaptureOfTypeBriefly(this.#context.databases.ledger, type, detail)
    this.#context.log.error('record type is not captured: the query in its mapping file fails for all rows', {
      type,
      error: failed,
    })
    return 'again'
  }

  /** Captures a row that was skipped and is due again, else rejects it, else skips it. */
  async #trySkippedRow(outboxId: string): Promise<CaptureResult> {
    const { config, databases } = this.#context
    let turn = 'unknown' as 'unknown' | 'behind' | 'now'
    const attempt = await this.#capture({
      claim: async (session) => {
        const wasCaptured = session.skipped.some((row) => row.outboxId === outboxId && row.isCaptured)
        const { room, exceptKeys } = decideClaimLimits(session, config.captureWindow)
        if (!wasCaptured && room <= 0) return null
        const order = { exceptKeys, skipped: session.skipped }
        turn = !wasCaptured && (await hasToWaitForKey(databases.outbox, outboxId, order)) ? 'behind' : 'now'
        return turn === 'behind' ? null : claimRow(databases.outbox, session.db, outboxId)
      },
      read: (rows, session) => this.#readRecords(rows, session),
    })
    if (turn === 'behind') {
      // The scan of new rows keeps the order of keys, so it takes the row when its turn comes.
      await forgetSkippedRows(databases.ledger, [outboxId])
      return 'again'
    }
    if (attempt.kind !== 'failed') return this.#forget(outboxId, attempt)
    // Reading the earlier rows of the key failed, which is not the fault of this row.
    return turn === 'unknown' ? this.#skip(outboxId, attempt) : this.#rejectOrSkip(outboxId, attempt)
  }

  /** The rejected record keeps its key if possible, because with KEY_ON_FAILURE=block the next ones wait behind it. */
  async #rejectOrSkip(outboxId: string, failure: Failure): Promise<CaptureResult> {
    if (failure.isMark || blameOf(failure) !== 'piece') return this.#skip(outboxId, failure)
    const why = boundText(messageOf(failure.error), textCharsMax.message)
    let attempt = await this.#reject(outboxId, why, (key) => key)
    // The key itself may be the cause.
    if (attempt.kind === 'failed' && !attempt.isMark && blameOf(attempt) === 'piece')
      attempt = await this.#reject(outboxId, why, () => null)
    if (attempt.kind === 'failed') return this.#skip(outboxId, attempt)
    if (attempt.kind === 'captured')
      this.#context.log.warn('outbox row could not be captured and was rejected', { outboxId, error: failure.error })
    return this.#forget(outboxId, attempt)
  }

  #reject(outboxId: string, why: string, keyOf: (key: string | null) => string | null): Promise<Attempt> {
    let key: string | null = null
    return this.#capture({
      claim: async ({ db }) => {
        const row = await claimRow(this.#context.databases.outbox, db, outboxId)
        key = keyOf(row.key)
        return row
      },
      read: async () => [{ ...toRejectedRecord(outboxId, `the row cannot be captured: ${why}`), key }],
    })
  }

  async #forget(outboxId: string, attempt: Exclude<Attempt, Failure>): Promise<CaptureResult> {
    if (attempt.kind !== 'captured') return attempt.kind
    const { ledger } = this.#context.databases
    if (attempt.unmarked.length > 0) await skipRows(ledger, attempt.unmarked.map(withIgnoredMark))
    else await forgetSkippedRows(ledger, [outboxId])
    return 'again'
  }

  async #skip(outboxId: string, failure: Pick<Failure, 'error' | 'isMark'>): Promise<'again'> {
    const { databases, log } = this.#context
    await skipRows(databases.ledger, [{ outboxId, isCaptured: false, detail: whySkipped(failure) }])
    log.error('outbox row was skipped: the daemon tries it again later', { outboxId, error: failure.error })
    return 'again'
  }

  async #readRecords(rows: ClaimedRows, { db, lockDocuments }: CaptureSession): Promise<CapturedRecord[]> {
    const { databases, mappings } = this.#context
    const { outbox } = databases
    const claimed = await nameDocuments(outbox, mappings, await readClaimedRows(outbox, db, rows))
    await lockDocuments(claimed)
    const records = await this.readContents(claimed)
    return records.map((record) => toCapturedRecord(mappings, record))
  }

  /** Captures and marks rows in one transaction. @throws errors that concern all rows, such as a lost connection */
  async #capture({ claim, read }: Selection): Promise<Attempt> {
    const { databases, telemetry, wakeups } = this.#context
    let outboxIds: readonly string[] = []
    let isMark = false
    let captured: Captured | 'waits' | 'full' | null
    try {
      const sessions = (await databases.outbox.open()).db
      const { changes } = databases.outbox.described
      captured = await withCaptureLock(databases, sessions, async (session) => {
        if (!session.mayCapture) return 'waits'
        const rows = await claim(session)
        if (rows === null) return 'full'
        outboxIds = rows.outboxIds
        const all = outboxIds.length === 0 ? [] : await read(rows, session)
        outboxIds = all.map((record) => record.outboxId)
        const { records } = all.length === 0 ? { records: [] } : await session.insert(all, changes)
        // Rows in conflict are not marked, so they are not among the failed rows.
        outboxIds = records.map((record) => record.outboxId)
        isMark = true // also for the COMMIT, where deferred triggers of the table run
        const unmarked = records.length === 0 ? [] : await markRows(session.db, rows, toMarks(records))
        return { rows, read: all.length, records, unmarked }
      })
    } catch (error) {
      if (blameOf({ error, isMark }) === 'everyone') throw error
      return { kind: 'failed', outboxIds, error, isMark }
    }
    if (captured === null) return { kind: 'busy' }
    if (captured === 'waits' || captured === 'full') return { kind: captured }
    const { rows, records, unmarked } = captured
    if (records.length > 0) {
      this.#captured += records.length
      telemetry.captured(records)
      wakeups.dispatch.wake()
    }
    if (unmarked.length > 0) {
      await makeReportsDueAgain(databases.ledger, unmarked)
      wakeups.report.wake()
    }
    return {
      kind: 'captured',
      claimed: rows.outboxIds.length,
      read: captured.read,
      unmarked: rows.table.form === 'marked' ? unmarked : [],
    }
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

/** Without the row's data, which the text of the error may quote. */
function whySkipped(failure: Pick<Failure, 'error' | 'isMark'>): string {
  const { code, class: name } = redactError(failure.error)
  const what = code ?? name
  if (failure.isMark)
    return `the table refuses the mark (${what}), so the row is not captured, and rows of its key wait behind it. Check the table's triggers and constraints`
  if (blameOf(failure) === 'moment')
    return `the row could not be captured (${what}: a lock, or too little time or memory), and rows of its key wait behind it. The daemon tries again by itself`
  return `the row can be neither captured nor rejected (${what}), and rows of its key wait behind it. Fix the row, or delete it from the outbox`
}

const withIgnoredMark = (outboxId: string) => ({
  outboxId,
  isCaptured: true,
  detail:
    "the row was captured and is sent once, but the table ignores its mark, so the row still looks new. Check the table's triggers and row-level security",
})

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/** If the ledger had the record before, the report corrects the mark. */
const toMarks = (records: readonly CapturedRecord[]): RowStatus[] =>
  records.map(({ outboxId, created, error, discarded = null }) => {
    const stateOfMapped = error === null ? 'queued' : 'rejected'
    const state = discarded === null ? stateOfMapped : 'discarded'
    return { outboxId, created, state, transactionId: null, errorCode: null, error: discarded ?? error }
  })
