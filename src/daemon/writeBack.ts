import { boundText } from '../boundText.ts'
import { onLedger } from '../ledger/capture.ts'
import {
  readDueReports,
  readReportsToWriteBack,
  tryLockWriteBack,
  writeReportResults,
  writeReportsBackAlone,
} from '../ledger/reports.ts'
import type { DueReport, Report, ReportResult, RowOutcome } from '../model/outbox.ts'
import { isEndState } from '../model/submission.ts'
import { writeBackOpeningSql, writeStatesToRows } from '../outbox/writeBack.ts'
import { beginTransaction, didSessionSurviveError, inTransaction } from '../postgres/database.ts'
import { errorCodeOf } from '../postgres/sqlState.ts'
import type { DaemonContext } from './context.ts'
import { decideWriteBack, type RowRefusal } from './decideWriteBack.ts'
import type { LoopPart } from './loop.ts'

type Attempt =
  /** Another instance writes back, or the ledger has the settings of another. */
  | { kind: 'busy' }
  /** `ended`: number of reports that were ticked off or put off. */
  | { kind: 'done'; ended: number }
  /** Postgres refused a row. Nothing was written. */
  | { kind: 'refused'; error: Error; reports: Report[] }

const limits = { freshMax: 500, aloneMax: 50 }
/** After this time no further row is written alone in a round. */
const aloneMaxMs = 5_000
/** Until this instance notices what others left to be written back, such as the outcomes of commands. */
const idleMs = 10_000
const gatherMs = 200

/**
 * Writes the states of records back to their outbox rows. A state is written and ticked off in one transaction:
 *
 *     begin; one instance writes back at a time (an advisory lock)
 *     read the states, without a lock, so that no record waits for triggers of the ERP
 *     lock the rows that are free, and write to them
 *     tick the states off, except those of records that have taken a step since
 *     commit
 *
 * If Postgres refuses a batch, its rows are written one by one. A row that is refused alone is tried again with backoff.
 */
export class WriteBack implements LoopPart {
  readonly #daemon: DaemonContext
  #isGathering = false

  constructor(daemon: DaemonContext) {
    this.#daemon = daemon
  }

  /** Begins a round in `gatherMs`, so that one round writes back all steps that are written until then. */
  onWritten(written: readonly unknown[]): void {
    if (written.length === 0 || this.#isGathering) return
    this.#isGathering = true
    setTimeout(() => {
      this.#isGathering = false
      this.#daemon.wakeups.report.wake()
    }, gatherMs).unref()
  }

  /** @throws Error if no row can be written: the database is away, a column is missing, or the table is locked */
  async runOnce(): Promise<number> {
    const { clock, databases } = this.#daemon
    const { fresh, alone } = await readDueReports(databases.ledger, limits)
    let ended = 0
    const attempt = fresh.length === 0 ? null : await this.#write(fresh)
    if (attempt?.kind === 'busy') return idleMs
    if (attempt?.kind === 'done') ended += attempt.ended
    if (attempt?.kind === 'refused') {
      if (fresh.length === 1) ended += await this.#putOff(attempt)
      else ended += await writeReportsBackAlone(databases.ledger, fresh)
    }
    const elapsedMs = clock.stopwatch()
    for (const report of alone) {
      if (elapsedMs() >= aloneMaxMs) return 0
      const attempt = await this.#write([report])
      if (attempt.kind === 'busy') return idleMs
      ended += attempt.kind === 'done' ? attempt.ended : await this.#putOff(attempt)
    }
    const isFull = fresh.length === limits.freshMax || alone.length === limits.aloneMax
    // If other sessions have locked all of these records, the next round would do the same again.
    return (isFull || attempt?.kind === 'refused') && ended > 0 ? 0 : idleMs
  }

  async #putOff({ error, reports }: Extract<Attempt, { kind: 'refused' }>): Promise<number> {
    const refusal = { code: String(errorCodeOf(error)), message: boundText(error.message, 200) }
    const results = reports.map((report) => resultOf(report, refusal))
    const tookMs = this.#daemon.clock.stopwatch()
    const ended = await inTransaction(this.#daemon.databases.ledger, (db) => writeReportResults(db, results))
    this.#daemon.telemetry.reported(results, tookMs())
    return ended
  }

  async #write(due: readonly DueReport[]): Promise<Attempt> {
    const attempt = await this.#tryToWrite(due)
    if (attempt.kind !== 'refused') return attempt
    // If the statement also fails without rows, no row is the cause.
    const empty = await this.#tryToWrite([])
    if (empty.kind === 'refused') throw empty.error
    return attempt
  }

  async #tryToWrite(due: readonly DueReport[]): Promise<Attempt> {
    const { outbox, history, hasOwnSettings } = this.#daemon.databases
    const tookMs = this.#daemon.clock.stopwatch()
    const table = await outbox.open()
    await using transaction = await beginTransaction(table.db, { openingSql: writeBackOpeningSql })
    const { db } = transaction
    const reports = await onLedger(db, async () => {
      // Another daemon may have set its settings since the round began.
      if (!(await tryLockWriteBack(db)) || !(await hasOwnSettings(db))) return null
      return readReportsToWriteBack({ ledger: db, history }, due)
    })
    if (reports === null) return { kind: 'busy' }
    try {
      const outcomes = await writeStatesToRows(db, table, reports)
      const results = reports.map((report, nth) => resultOf(report, outcomes[nth] as RowOutcome))
      const ended = await onLedger(db, () => writeReportResults(db, results))
      await transaction.commit()
      this.#daemon.telemetry.reported(results, tookMs())
      return { kind: 'done', ended }
    } catch (error) {
      if (!didSessionSurviveError(error)) throw error
      return { kind: 'refused', error: error as Error, reports }
    }
  }
}

function resultOf(report: Report, outcome: RowOutcome | RowRefusal): ReportResult {
  const { againInMs, problem } = decideWriteBack(outcome, report.failures, isEndState(report.state))
  const code = typeof outcome === 'string' ? null : outcome.code
  return { report, againInMs, code, problem: problem && { ...problem, subject: report.outboxId } }
}
