import type { DueReport, Report, Telling, ToldReport } from '../../model.ts'
import { decideReport, type Outcome } from './decideReport.ts'

export interface ReportDeps {
  /** @returns what tells the milliseconds since */
  stopwatch(): () => number
  readDue(limits: { freshMax: number; againMax: number }): Promise<{ fresh: DueReport[]; again: DueReport[] }>
  /** Tells the rows what their submissions are now. @throws Error where none can be told, whichever it is */
  tell(due: readonly DueReport[]): Promise<Telling<Report>>
  write(told: readonly ToldReport[]): Promise<void>
}

const limits = { freshMax: 500, againMax: 50 }
/** After so long no further part is begun; what is left stays due. */
const partsMaxMs = 10_000
const parts = 10

/**
 * Tells the outbox rows what has become of their submissions, those last that could not be told before. While the ERP's
 * database is away the reports stay due.
 *
 * @returns whether there may be more
 */
export async function reportOnce(deps: ReportDeps): Promise<boolean> {
  const { fresh, again } = await deps.readDue(limits)
  const isThrough = (await tellAll(deps, fresh)) && (await tellAll(deps, again))
  return isThrough && (fresh.length === limits.freshMax || again.length === limits.againMax)
}

/**
 * Tells these. Where the table refuses them together, a tenth of them at a time, until those stand alone that it refuses.
 *
 * @returns false where another instance is at it
 */
async function tellAll(deps: ReportDeps, due: readonly DueReport[]): Promise<boolean> {
  const elapsedMs = deps.stopwatch()
  const waiting = due.length > 0 ? [due] : []
  while (elapsedMs() < partsMaxMs) {
    const part = waiting.shift()
    if (part === undefined) break
    const telling = await deps.tell(part)
    if (telling.kind === 'busy') return false
    if (telling.kind === 'told')
      await deps.write(telling.rows.map(({ status, ...outcome }) => toldReport(status, outcome)))
    else if (part.length > 1) waiting.unshift(...split(part))
    else await deps.write(telling.statuses.map((status) => toldReport(status, telling)))
  }
  return true
}

function toldReport(report: Report, outcome: Outcome): ToldReport {
  const { againInMs, problem } = decideReport(outcome, report.failures)
  // Rows that the ERP edits may be thousands: they are one problem, of the whole table.
  const subject = outcome.kind === 'differs' ? '' : report.outboxId
  const code = outcome.kind === 'refused' ? outcome.code : null
  return { report, againInMs, code, problem: problem && { ...problem, subject } }
}

function split<T>(all: readonly T[]): T[][] {
  const size = Math.ceil(all.length / parts)
  return Array.from({ length: Math.ceil(all.length / size) }, (_, i) => all.slice(i * size, (i + 1) * size))
}
