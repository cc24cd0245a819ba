import type { CaptureSession } from '../../ledger/capture.ts'
import type { CapturedRecord, DueCaptureWork, FailedRow } from '../../model/outbox.ts'
import type { ClaimedRows } from '../../outbox/claimRows.ts'
import type { Database } from '../../postgres/database.ts'
import {
  type CaptureFailure,
  type CaptureRowsDeps,
  type CaptureRowsResult,
  captureRows,
  type RowSource,
  toCapturedRecord,
  toRejectedRecord,
} from './captureRows.ts'
import type { SleepFlagKeeper } from './sleep.ts'

export interface CaptureDeps extends CaptureRowsDeps {
  /** The most queued submissions in the ledger. Further rows stay in the outbox, where they cost little. */
  queuedMax: number
  readDueCaptureWork(): Promise<DueCaptureWork>
  skipRows(rows: readonly FailedRow[]): Promise<void>
  forgetSkippedRow(outboxId: string): Promise<void>
  onBatchFailed(count: number, error: unknown): void
  stopCaptureOfTypeBriefly(type: string, error: unknown): Promise<void>
  resumeCaptureOfTypes(types: readonly string[]): Promise<void>
  onRowRejected(outboxId: string, error: unknown): void
  onRowSkipped(outboxId: string, error: unknown): void
}

export interface CaptureRoundsDeps {
  capture: CaptureDeps
  sleepFlagKeeper: SleepFlagKeeper
  /** Returns a number in [0, 1), new for each call. */
  random(): number
}

const sweepEveryMs = 1_000
/** While new rows notify this instance. A row whose trigger was off, or whose NOTIFY was lost, waits this long. */
const asleepSweepEveryMs = 5_000

export function createCaptureRounds({ capture, sleepFlagKeeper, random }: CaptureRoundsDeps) {
  let captured = 0

  const { runOnce } = createBatchCapture({
    ...capture,
    onCaptured(records) {
      captured += records.length
      capture.onCaptured(records)
    },
  })
  return {
    async runOnce(): Promise<number> {
      captured = 0
      const round = await runOnce()
      if (round === 'again') sleepFlagKeeper.stayAwake()
      else if (round === 'idle') await sleepFlagKeeper.fallAsleep(captured)
      return waitMs(round, random(), sleepFlagKeeper.isAsleep())
    },
  }
}

function waitMs(round: CaptureRoundResult, random: number, isAsleep: boolean): number {
  switch (round) {
    case 'again':
      return 0
    // Waits a random time, because otherwise the same instance would always come second.
    case 'busy':
      return 20 + 80 * random
    case 'waits':
      return sweepEveryMs
    // Rows may come without a NOTIFY. No cron job, because the wall clock may be set.
    case 'idle':
      return isAsleep ? asleepSweepEveryMs : sweepEveryMs
    default:
      return round satisfies never
  }
}

/**
 * `again`: there may be more rows. `busy`: another instance captures. `waits`: the ledger may have lost data, so no
 * instance captures, or it has the settings of another. `idle`: no row waits, or this instance cannot capture rows now.
 */
export type CaptureRoundResult = 'again' | 'busy' | 'waits' | 'idle'

/**
 * Captures in batches. If a batch fails because of a row, smaller batches follow until that row is alone. The row is
 * then rejected with the reason, or skipped if it cannot be rejected or only its mark is refused.
 */
export function createBatchCapture(deps: CaptureDeps) {
  let limit = batchMax
  /**
   * A batch takes the lowest ids, so halving the limit isolates a failing row. A full batch raises the limit by an
   * eighth.
   */
  async function captureNew(): Promise<CaptureRoundResult> {
    const batch = await captureBatch(deps, limit)
    if (batch.kind === 'captured') {
      if (batch.rows === limit) limit = Math.min(batchMax, Math.ceil(limit * 1.125))
      return batch.hasMore ? 'again' : 'idle'
    }
    if (batch.kind !== 'failed') return batch.kind
    const { error, isMark, outboxIds } = batch
    const { type } = deps.faultOf(error, isMark)
    if (type !== null) {
      await deps.stopCaptureOfTypeBriefly(type, error)
      return 'again'
    }
    const [first = ''] = outboxIds
    if (outboxIds.length === 1) return captureAlone(deps, first, batch)
    deps.onBatchFailed(outboxIds.length, error)
    limit = Math.ceil(Math.min(limit, outboxIds.length) / 2)
    return 'again'
  }

  async function captureNewIfAny({ hasHeldTypes, hasNewRows }: DueCaptureWork): Promise<CaptureRoundResult> {
    return hasHeldTypes || (await hasNewRows()) ? captureNew() : 'idle'
  }

  return {
    async runOnce(): Promise<CaptureRoundResult> {
      const due = await deps.readDueCaptureWork()
      if (due.dueId === null) return captureNewIfAny(due)
      let tried: CaptureRoundResult
      try {
        tried = await captureAlone(deps, due.dueId, null)
      } catch (error) {
        // The error says that every row would fail. If new rows do not, the skipped row may be the cause.
        const round = await captureNewIfAny(due)
        await skip(deps, due.dueId, { error, isMark: false })
        return round === 'idle' ? 'again' : round
      }
      if (tried === 'busy' || tried === 'waits') return tried
      const round = await captureNewIfAny(due)
      return round === 'idle' ? tried : round
    },
  }
}

type Batch = Exclude<CaptureRowsResult, { kind: 'captured' }> | { kind: 'captured'; rows: number; hasMore: boolean }

const batchMax = 500

async function captureBatch(deps: CaptureDeps, limitMax: number): Promise<Batch> {
  let limit = 0
  let triedTypes: string[] = []
  const typesRead = new Set<string>()
  const result = await captureRows(deps, {
    async claim(session) {
      const { room, keyRowsMax, exceptKeys } = decideClaimLimits(session, deps.queuedMax)
      limit = Math.min(limitMax, room)
      if (limit <= 0) return null
      triedTypes = session.heldTypes.filter(({ isDue }) => isDue).map(({ type }) => type)
      return deps.claim(session.db, {
        limit,
        keyRowsMax,
        exceptKeys,
        skipped: session.skipped,
        heldTypes: session.heldTypes.filter(({ isDue }) => !isDue).map(({ type }) => type),
      })
    },
    async read(rows, { db }) {
      const records = await readRecords(deps, db, rows)
      for (const { type } of records) typesRead.add(type)
      return records
    },
  })
  // If the claim itself fails, no single row is the cause.
  if (result.kind === 'failed' && result.outboxIds.length === 0) throw result.error
  if (result.kind !== 'captured') return result
  const { claimed, read, unmarked } = result
  if (unmarked.length > 0) await deps.skipRows(unmarked.map(ignored))
  const released = triedTypes.filter((type) => typesRead.has(type) || claimed < limit)
  if (released.length > 0) await deps.resumeCaptureOfTypes(released)
  return { kind: 'captured', rows: read, hasMore: read > 0 && (read < claimed || claimed === limit) }
}

/**
 * Returns the room in the capture window. Records that wait behind a held record take no room, because they may stay
 * for days. A key with a held record, or with a fortieth of the window, gets no further rows.
 */
export function decideClaimLimits(
  { queued, waitingKeys }: Pick<CaptureSession, 'queued' | 'waitingKeys'>,
  captureWindow: number,
): { room: number; keyRowsMax: number; exceptKeys: string[] } {
  const stuck = waitingKeys.reduce((sum, line) => sum + (line.isHeld ? line.length : 0), 0)
  const keyRowsMax = Math.max(1, Math.floor(captureWindow / lineShare))
  const closed = waitingKeys.filter(({ length, isHeld }) => isHeld || length >= keyRowsMax)
  return { room: captureWindow - (queued - stuck), keyRowsMax, exceptKeys: closed.map(({ key }) => key) }
}

const lineShare = 40

/**
 * Captures one row, else rejects it, else skips it.
 *
 * @param failure how the row failed in a batch; null if the row was skipped before and is due again
 */
async function captureAlone(
  deps: CaptureDeps,
  outboxId: string,
  failure: CaptureFailure | null,
): Promise<CaptureRoundResult> {
  if (failure === null) {
    let wasCaptured = false
    let turn = 'unknown' as 'unknown' | 'behind' | 'now'
    const { claim, read } = selectUnchanged(deps, outboxId)
    const result = await captureRows(deps, {
      async claim(session) {
        wasCaptured = session.skipped.some((row) => row.outboxId === outboxId && row.isCaptured)
        const { room, exceptKeys } = decideClaimLimits(session, deps.queuedMax)
        if (!wasCaptured && room <= 0) return null
        const order = { exceptKeys, skipped: session.skipped }
        turn = !wasCaptured && (await deps.hasToWaitForKey(outboxId, order)) ? 'behind' : 'now'
        return turn === 'behind' ? null : claim(session)
      },
      read,
    })
    if (turn === 'behind') {
      // The scan of new rows keeps the order of keys, so it takes the row when its turn comes.
      await deps.forgetSkippedRow(outboxId)
      return 'again'
    }
    if (result.kind !== 'failed') return forget(deps, outboxId, result)
    // Reading the earlier rows of the key failed, which is not the fault of this row.
    if (turn === 'unknown') return skip(deps, outboxId, result)
    return captureAlone(deps, outboxId, result)
  }
  const { blame, message } = deps.faultOf(failure.error, failure.isMark)
  if (failure.isMark || blame !== 'piece') return skip(deps, outboxId, failure)
  let result = await rejectRow(deps, { outboxId, why: message, keepsKey: true })
  // The key itself may be the cause.
  if (result.kind === 'failed' && !result.isMark && deps.faultOf(result.error, false).blame === 'piece')
    result = await rejectRow(deps, { outboxId, why: message, keepsKey: false })
  if (result.kind === 'failed') return skip(deps, outboxId, result)
  if (result.kind === 'captured') deps.onRowRejected(outboxId, failure.error)
  return forget(deps, outboxId, result)
}

/** The rejected record keeps its key if possible, because with KEY_ON_FAILURE=block the next ones wait behind it. */
function rejectRow(
  deps: CaptureDeps,
  { outboxId, why, keepsKey }: { outboxId: string; why: string; keepsKey: boolean },
): Promise<CaptureRowsResult> {
  let key: string | null = null
  return captureRows(deps, {
    async claim({ db }) {
      const row = await deps.claimOne(db, outboxId)
      if (keepsKey) key = row?.key ?? null
      return row
    },
    read: async () => [toRejectedRecord(deps, { outboxId, key, why })],
  })
}

function selectUnchanged(deps: CaptureDeps, outboxId: string): RowSource {
  return {
    claim: ({ db }) => deps.claimOne(db, outboxId),
    read: (rows, { db }) => readRecords(deps, db, rows),
  }
}

const readRecords = async (deps: CaptureDeps, db: Database, rows: ClaimedRows): Promise<CapturedRecord[]> =>
  (await deps.readRecordContents(await deps.readClaimedRows(db, rows))).map((row) => toCapturedRecord(deps, row))

type Tried = Exclude<CaptureRowsResult, { kind: 'failed' }>

async function forget(deps: CaptureDeps, outboxId: string, outcome: Tried): Promise<CaptureRoundResult> {
  if (outcome.kind !== 'captured') return outcome.kind
  if (outcome.unmarked.length > 0) await deps.skipRows(outcome.unmarked.map(ignored))
  else await deps.forgetSkippedRow(outboxId)
  return 'again'
}

async function skip(deps: CaptureDeps, outboxId: string, { error, isMark }: CaptureFailure): Promise<'again'> {
  const { code, blame } = deps.faultOf(error, isMark)
  const detail = isMark
    ? `the table refuses the mark (${code}), so the row is not captured, and rows of its key wait behind it. Check the table's triggers and constraints`
    : blame === 'moment'
      ? `the row could not be captured (${code}: a lock, or too little time or memory), and rows of its key wait behind it. The daemon tries again by itself`
      : `the row can be neither captured nor rejected (${code}), and rows of its key wait behind it. Fix the row, or delete it from the outbox`
  await deps.skipRows([{ outboxId, isCaptured: false, detail }])
  deps.onRowSkipped(outboxId, error)
  return 'again'
}

const ignored = (outboxId: string) => ({
  outboxId,
  isCaptured: true,
  detail:
    "the row was captured and is sent once, but the table ignores its mark, so the row still looks new. Check the table's triggers and row-level security",
})
