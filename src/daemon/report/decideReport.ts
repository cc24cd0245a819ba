import type { ProblemKind, RowOutcome } from '../../model.ts'

export type WriteBackOutcome =
  | RowOutcome
  | { kind: 'refused'; code: string; message: string; why: 'row' | 'lock' }
  /** The row's triggers took longer than the statement timeout. */
  | { kind: 'slow' }

export interface ReportDecision {
  againInMs: number | null
  problem: { kind: ProblemKind; detail: string; retryInMs: number } | null
}

const lockedMaxMs = 30_000
const refusedMinMs = 5_000
const refusedMaxMs = 600_000
/** A lock becomes a problem after this time. */
const longLockMs = 5_000

/**
 * A lock passes soon. A refusal lasts until the table is changed.
 *
 * @param failures number of failed tries in a row; for the missing row of an ended record, only those that found no row
 * @param hasEnded false if the record has not ended, so that a later report follows
 */
export function decideReport(outcome: WriteBackOutcome, failures: number, hasEnded = true): ReportDecision {
  switch (outcome.kind) {
    case 'written':
      return { againInMs: null, problem: null }
    case 'locked':
      return decideLockedRow(`${holderMessage(outcome.holder)} has the row locked`, failures)
    case 'gone':
      return decideMissingRow(failures, hasEnded)
    case 'in_hand':
      return { againInMs: lockedMs(0), problem: null }
    case 'ineffective':
      return putOff('mark_ineffective', outcome.why, failures)
    case 'another':
      return putOff('row_conflict', anotherMessage, failures)
    case 'refused': {
      const message = `SQLSTATE ${outcome.code}: ${outcome.message}`
      return outcome.why === 'lock' ? decideLockedRow(message, failures) : putOff('report_refused', message, failures)
    }
    case 'slow':
      return putOff('report_refused', slowMessage, failures)
    default:
      return outcome satisfies never
  }
}

const anotherMessage = 'the ledger knows a different row with this id, so nothing is written back to this row'

const slowMessage =
  'the update of this row took longer than 10 s, so the daemon ended the update. Check the triggers of the table'

const holderMessage = (holder: number | null) => (holder === null ? 'a session' : `the session with pid ${holder}`)

/** Tries each hour for a day, because a detached partition may come back. */
function decideMissingRow(failures: number, hasEnded: boolean): ReportDecision {
  if (failures >= goneTriesMax) return { againInMs: null, problem: null }
  const problem = hasEnded ? ({ kind: 'row_missing', detail: goneMessage, retryInMs: goneAgainMs } as const) : null
  return { againInMs: goneAgainMs, problem }
}

const goneAgainMs = 3_600_000
const goneTriesMax = 24
const goneMessage =
  'no row has this id, so its outcome is not written back. The ERP deleted the row, or detached its partition. The daemon tries each hour for a day, then gives up'

const lockedMs = (failures: number) => Math.min(lockedMaxMs, 1_000 * 2 ** Math.min(failures, 10))

function decideLockedRow(detail: string, failures: number): ReportDecision {
  const againInMs = lockedMs(failures)
  const waitedMs = Array.from({ length: Math.min(failures, 10) }, (_, i) => lockedMs(i)).reduce((a, b) => a + b, 0)
  const isLong = waitedMs >= longLockMs
  return { againInMs, problem: isLong ? { kind: 'report_locked', detail, retryInMs: againInMs } : null }
}

function putOff(kind: ProblemKind, detail: string, failures: number): ReportDecision {
  const againInMs = Math.min(refusedMaxMs, refusedMinMs * 2 ** Math.min(failures, 10))
  return { againInMs, problem: { kind, detail, retryInMs: againInMs } }
}
