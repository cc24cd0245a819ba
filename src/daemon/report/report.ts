import { type DueReport, endStates, type Report, type ReportResult, type WriteBackResult } from '../../model.ts'
import { decideReport, type WriteBackOutcome } from './decideReport.ts'

interface CurrentReport extends Report {
  /** Tries in a row that found no row, while the record had ended. */
  misses: number
}

export interface ReportDeps {
  stopwatch(): () => number
  readDue(limits: { freshMax: number; againMax: number }): Promise<{ fresh: DueReport[]; again: DueReport[] }>
  /** @throws Error if the table as a whole cannot be written */
  writeBack(due: readonly DueReport[]): Promise<WriteBackResult<CurrentReport>>
  writeResults(results: readonly ReportResult[]): Promise<void>
}

const limits = { freshMax: 500, againMax: 50 }
/** After this time no further batch begins, unless a refused batch is being split. The other reports stay due. */
const partsMaxMs = 10_000
const parts = 10

const reportRowsMax = limits.freshMax
/** After a slower batch the size does not grow, because of the statement timeout. */
const quickMs = 2_500

/**
 * Writes outcomes back to the rows whose reports are due. Rows that failed before come last. If the table refuses a
 * batch, the batch is split into tenths until the refused row is alone. After a slow statement, batches are halved.
 *
 * @param rowsAtOnce the batch size that the previous round returned
 */
export async function writeOutcomesBackOnce(
  deps: ReportDeps,
  rowsAtOnce = reportRowsMax,
): Promise<{ hasMore: boolean; rowsAtOnce: number }> {
  const { fresh, again } = await deps.readDue(limits)
  const elapsedMs = deps.stopwatch()
  let most = rowsAtOnce
  let waiting = [...chunks(fresh, most), ...chunks(again, most)]
  // A refused batch that takes longer than `partsMaxMs` must be split, too, or each round would try only that batch.
  let isBeingSplit = false
  while (waiting.length > 0 && (elapsedMs() < partsMaxMs || isBeingSplit)) {
    const [part = [], ...rest] = waiting
    waiting = rest
    const beginsMs = elapsedMs()
    const result = await deps.writeBack(part)
    if (result.kind === 'busy') return { hasMore: false, rowsAtOnce: most }
    isBeingSplit = result.kind === 'refused' && part.length > 1
    if (result.kind === 'done') {
      await deps.writeResults(result.rows.map(({ status, ...outcome }) => resultOf(status, outcome)))
      if (part.length === most && elapsedMs() - beginsMs < quickMs)
        most = Math.min(reportRowsMax, Math.ceil(most * 1.5))
    } else if (part.length > 1 && result.kind === 'slow') {
      most = Math.ceil(part.length / 2)
      waiting = [part, ...waiting].flatMap((each) => chunks(each, most))
    } else if (isBeingSplit) waiting.unshift(...chunks(part, Math.ceil(part.length / parts)))
    else await deps.writeResults(result.statuses.map((status) => resultOf(status, result)))
  }
  const isFull = fresh.length === limits.freshMax || again.length === limits.againMax
  return { hasMore: isFull || waiting.length > 0, rowsAtOnce: most }
}

function resultOf({ misses, ...report }: CurrentReport, outcome: WriteBackOutcome): ReportResult {
  const hasEnded = endStates.some((state) => state === report.state)
  // Locks and refusals say nothing about a missing row, so they must not end the tries for it.
  const failures = outcome.kind === 'gone' && hasEnded ? misses : report.failures
  const { againInMs, problem } = decideReport(outcome, failures, hasEnded)
  const code = outcome.kind === 'refused' ? outcome.code : null
  return { report, againInMs, code, problem: problem && { ...problem, subject: report.outboxId } }
}

function chunks<T>(all: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(all.length / size) }, (_, i) => all.slice(i * size, (i + 1) * size))
}

export interface ReportRoundsDeps extends ReportDeps {
  wake(): void
}

export type ReportRounds = ReturnType<typeof createReportRounds>

const idleMs = 2_000
const gatherMs = 50

export function createReportRounds({ wake, ...deps }: ReportRoundsDeps) {
  let isGathering = false
  let rowsAtOnce = reportRowsMax
  return {
    async runOnce(): Promise<number> {
      const round = await writeOutcomesBackOnce(deps, rowsAtOnce)
      rowsAtOnce = round.rowsAtOnce
      return round.hasMore ? 0 : idleMs
    },
    /** Begins a round in 50 ms, so that one round reports all steps that are written until then. */
    onWritten(written: readonly unknown[]): void {
      if (written.length === 0 || isGathering) return
      isGathering = true
      setTimeout(() => {
        isGathering = false
        wake()
      }, gatherMs).unref()
    },
  }
}
