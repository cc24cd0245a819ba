import { boundText } from '../boundText.ts'
import { onLedger } from '../ledger/capture.ts'
import { readDueReports, readReportsToWriteBack, tryLockWriteBack, writeReportResults } from '../ledger/reports.ts'
import type { DueReport, Report, ReportResult, RowOutcome } from '../model/outbox.ts'
import { isEndState } from '../model/submission.ts'
import { writeBackOpeningSql, writeStatesToRows } from '../outbox/writeBack.ts'
import { beginTransaction, didSessionSurviveError, inTransaction } from '../postgres/database.ts'
import { errorCodeOf, isStatementCanceled } from '../postgres/sqlState.ts'
import type { DaemonContext } from './context.ts'
import { decideWriteBack, type RowRefusal } from './decideWriteBack.ts'
import type { LoopPart } from './loop.ts'

interface WriteBackContext {
  clock: Pick<DaemonContext['clock'], 'stopwatch'>
  databases: Pick<DaemonContext['databases'], 'ledger' | 'outbox' | 'hasOwnSettings'> & {
    history: Pick<DaemonContext['databases']['history'], 'stands'>
  }
  telemetry: Pick<DaemonContext['telemetry'], 'reported'>
  wakeups: { report: Pick<DaemonContext['wakeups']['report'], 'wake'> }
}

type CurrentReport = Report & { misses: number }

type Attempt =
  /** Another instance writes back, or the ledger has the settings of another. */
  | { kind: 'busy' }
  | { kind: 'done' }
  /** Postgres refused a row. Nothing was written. */
  | { kind: 'refused'; error: Error; reports: CurrentReport[] }

const limits = { freshMax: 500, againMax: 50 }
const batchRowsMax = limits.freshMax
/** After a slower batch the size does not grow, because of the statement timeout. */
const quickMs = 2_500
/** After this time no further batch begins, and after half of it no further row alone. */
const roundMaxMs = 10_000
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
 * After a statement that was too slow, the next batches are half as large.
 */
export class WriteBack implements LoopPart {
  readonly #context: WriteBackContext
  #rowsMax = batchRowsMax
  /** Ids of the submissions of a refused batch, until each was tried alone. */
  readonly #alone = new Set<string>()
  #isGathering = false
  /** Each second round begins with the rows that are tried again, so that neither kind keeps the other from its turn. */
  #beginsWithAgain = false

  constructor(context: WriteBackContext) {
    this.#context = context
  }

  /** Begins a round in `gatherMs`, so that one round writes back all steps that are written until then. */
  onWritten(written: readonly unknown[]): void {
    if (written.length === 0 || this.#isGathering) return
    this.#isGathering = true
    setTimeout(() => {
      this.#isGathering = false
      this.#context.wakeups.report.wake()
    }, gatherMs).unref()
  }

  /** @throws Error if no row can be written: the database is away, a column is missing, or the table is locked */
  async runOnce(): Promise<number> {
    const { fresh, again } = await readDueReports(this.#context.databases.ledger, limits)
    const elapsedMs = this.#context.clock.stopwatch()
    const alone = fresh.filter(({ submissionId }) => this.#alone.has(submissionId))
    const inBatch = fresh.filter(({ submissionId }) => !this.#alone.has(submissionId))
    // Another instance may have written the others.
    this.#alone.clear()
    for (const { submissionId } of alone) this.#alone.add(submissionId)
    this.#beginsWithAgain = !this.#beginsWithAgain
    for (const report of this.#beginsWithAgain ? [...again, ...alone] : [...alone, ...again]) {
      if (elapsedMs() >= roundMaxMs / 2) break
      if ((await this.#writeBatch([report])) === 'busy') return idleMs
    }
    for (let from = 0; from < inBatch.length; ) {
      if (elapsedMs() >= roundMaxMs) return 0
      const batch = inBatch.slice(from, from + this.#rowsMax)
      const result = await this.#writeBatch(batch)
      if (result === 'busy') return idleMs
      if (result === 'refused') return 0
      if (result === 'done') from += batch.length
    }
    const isFull = fresh.length === limits.freshMax || again.length === limits.againMax
    return isFull || this.#alone.size > 0 ? 0 : idleMs
  }

  /** Puts off a row that is refused alone, which counts as done. */
  async #writeBatch(batch: readonly DueReport[]): Promise<'busy' | 'done' | 'slow' | 'refused'> {
    const elapsedMs = this.#context.clock.stopwatch()
    const attempt = await this.#write(batch)
    if (attempt.kind === 'busy') return 'busy'
    if (attempt.kind === 'refused' && batch.length > 1) {
      if (isStatementCanceled(attempt.error)) {
        this.#rowsMax = Math.ceil(batch.length / 2)
        return 'slow'
      }
      for (const { submissionId } of batch) this.#alone.add(submissionId)
      return 'refused'
    }
    if (attempt.kind === 'refused') await this.#putOff(attempt.reports, attempt.error)
    else if (batch.length === this.#rowsMax && elapsedMs() < quickMs)
      this.#rowsMax = Math.min(batchRowsMax, Math.ceil(this.#rowsMax * 1.5))
    for (const { submissionId } of batch) this.#alone.delete(submissionId)
    return 'done'
  }

  async #putOff(reports: readonly CurrentReport[], error: Error): Promise<void> {
    const refusal = { code: String(errorCodeOf(error)), message: boundText(error.message, 200) }
    const results = reports.map((report) => resultOf(report, refusal))
    const tookMs = this.#context.clock.stopwatch()
    await inTransaction(this.#context.databases.ledger, (db) => writeReportResults(db, results))
    this.#context.telemetry.reported(results, tookMs())
  }

  async #write(due: readonly DueReport[]): Promise<Attempt> {
    const attempt = await this.#tryToWrite(due)
    if (attempt.kind !== 'refused' || isStatementCanceled(attempt.error)) return attempt
    // If the statement also fails without rows, no row is the cause.
    const empty = await this.#tryToWrite([])
    if (empty.kind === 'refused') throw empty.error
    return attempt
  }

  async #tryToWrite(due: readonly DueReport[]): Promise<Attempt> {
    const { outbox, history, hasOwnSettings } = this.#context.databases
    const tookMs = this.#context.clock.stopwatch()
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
      await onLedger(db, () => writeReportResults(db, results))
      await transaction.commit()
      this.#context.telemetry.reported(results, tookMs())
      return { kind: 'done' }
    } catch (error) {
      if (!didSessionSurviveError(error)) throw error
      return { kind: 'refused', error: error as Error, reports }
    }
  }
}

function resultOf({ misses, ...report }: CurrentReport, outcome: RowOutcome | RowRefusal): ReportResult {
  const hasEnded = isEndState(report.state)
  // Locks and refusals say nothing about a missing row, so they must not end the tries for it.
  const failures = outcome === 'gone' && hasEnded ? misses : report.failures
  const { againInMs, problem } = decideWriteBack(outcome, failures, hasEnded)
  const code = typeof outcome === 'string' ? null : outcome.code
  return { report, againInMs, code, problem: problem && { ...problem, subject: report.outboxId } }
}
