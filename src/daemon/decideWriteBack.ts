import type { RowOutcome } from '../model/outbox.ts'
import type { ProblemKind } from '../model/problem.ts'

/** `message` is Postgres's own. */
export interface RowRefusal {
  code: string
  message: string
}

export interface WriteBackDecision {
  /** Null if the outcome need not be written back again. */
  againInMs: number | null
  problem: { kind: ProblemKind; detail: string; retryInMs: number } | null
}

const lockedMaxMs = 30_000
const refusedMinMs = 5_000
const refusedMaxMs = 600_000
const missingAgainMs = 3_600_000
const missingTriesMax = 24

/**
 * Decides when to try again. A lock passes soon. A refusal lasts until somebody changes the table. A missing row may
 * come back with its partition, so the daemon tries each hour for up to a day: earlier locks and refusals count, too.
 *
 * @param failures number of failed tries in a row
 * @param hasEnded false if the record has not ended, so that a later state follows
 */
export function decideWriteBack(
  outcome: RowOutcome | RowRefusal,
  failures: number,
  hasEnded: boolean,
): WriteBackDecision {
  switch (outcome) {
    case 'written':
      return { againInMs: null, problem: null }
    case 'gone':
      if (failures >= missingTriesMax || !hasEnded) return { againInMs: null, problem: null }
      return putOff('row_missing', missingMessage, missingAgainMs)
    case 'another':
      return putOff('row_conflict', anotherMessage, backoffMs(failures))
    case 'unchanged':
      return putOff('mark_ineffective', unchangedMessage, backoffMs(failures))
    case 'locked':
      return decideLocked(lockedMessage, failures)
    default: {
      const message = `SQLSTATE ${outcome.code}: ${outcome.message}`
      return isLock(outcome) ? decideLocked(message, failures) : putOff('report_refused', message, backoffMs(failures))
    }
  }
}

const missingMessage =
  'no row has this id, so its outcome is not written back. The ERP deleted the row, or detached its partition. The daemon tries each hour for up to a day, then gives up'
const anotherMessage = 'the ledger knows a different row with this id, so nothing is written back to this row'
const unchangedMessage = 'the update changed nothing: a BEFORE trigger suppresses it, or sets the state back'
const lockedMessage = 'another session has the row locked, or row-level security hides it from updates'

const putOff = (kind: ProblemKind, detail: string, againInMs: number): WriteBackDecision => ({
  againInMs,
  problem: { kind, detail, retryInMs: againInMs },
})

const backoffMs = (failures: number) => Math.min(refusedMaxMs, refusedMinMs * 2 ** Math.min(failures, 10))

/** A lock is a problem from its fourth try on, after 7 s. */
function decideLocked(detail: string, failures: number): WriteBackDecision {
  const againInMs = Math.min(lockedMaxMs, 1_000 * 2 ** Math.min(failures, 10))
  return failures < 3 ? { againInMs, problem: null } : putOff('report_locked', detail, againInMs)
}

/** A lock timeout or a deadlock, most likely within a trigger. */
const isLock = ({ code }: RowRefusal) => code === '55P03' || code === '40P01'
