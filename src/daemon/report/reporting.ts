import { type ReportDeps, reportOnce, rowsMax } from './report.ts'

export interface ReportingDeps extends ReportDeps {
  /** Begins a round. */
  wake(): void
}

/** Tells the outbox rows what becomes of their submissions, round after round. */
export interface Reporting {
  /** One round. @returns after how many milliseconds to begin the next, unless woken before */
  runOnce(): Promise<number>
  /** Steps were written: begins a round in a moment, for them and what comes until then. */
  onWritten(written: readonly unknown[]): void
}

const idleMs = 2_000
const gatherMs = 50

export function createReporting({ wake, ...deps }: ReportingDeps): Reporting {
  let isGathering = false
  let rowsAtOnce = rowsMax
  return {
    async runOnce() {
      const round = await reportOnce(deps, rowsAtOnce)
      rowsAtOnce = round.rowsAtOnce
      return round.hasMore ? 0 : idleMs
    },
    onWritten(written) {
      if (written.length === 0 || isGathering) return
      isGathering = true
      setTimeout(() => {
        isGathering = false
        wake()
      }, gatherMs).unref()
    },
  }
}
