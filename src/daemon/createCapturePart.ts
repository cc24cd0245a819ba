import { randomUUID, randomUUIDv7 } from 'node:crypto'
import { boundText, textCharsMax } from '../boundText.ts'
import {
  forgetSkippedRow,
  readDueCaptureRetries,
  resumeCaptureOfTypes,
  skipRows,
  stopCaptureOfTypeBriefly,
  withCaptureLock,
} from '../ledger/capture.ts'
import { makeReportsDueAgain } from '../ledger/reports.ts'
import { mapOutboxRecord } from '../mapping/mapRecord.ts'
import { redactError } from '../observe/redact.ts'
import { claimRow, claimRows, hasToWaitForKey, markRows, readClaimedRows } from '../outbox/claimRows.ts'
import { SourceFailed } from '../outbox/contentQueries.ts'
import { readRecordContentsThatFit } from '../outbox/readRecordContents.ts'
import { mayHaveWaitingRows } from '../outbox/readRows.ts'
import { classifyDatabaseError } from '../postgres/database.ts'
import { type CaptureDeps, createCaptureRounds } from './capture/capture.ts'
import type { CaptureFault } from './capture/captureRows.ts'
import { createSleepFlagKeeper } from './capture/sleep.ts'
import type { DaemonContext } from './context.ts'
import type { LoopPart } from './loop.ts'

type CaptureContext = Pick<
  DaemonContext,
  'clock' | 'config' | 'databases' | 'mappings' | 'log' | 'telemetry' | 'wakeups'
>

export function createCapturePart(daemon: CaptureContext): LoopPart {
  return createCaptureRounds({
    capture: captureDeps(daemon),
    sleepFlagKeeper: sleepOf(daemon),
    random: Math.random,
  })
}

function sleepOf({ clock, databases: { listener, outbox }, wakeups }: CaptureContext) {
  return createSleepFlagKeeper({
    setSleepFlag: async () => (await listener?.setSleepFlag()) ?? 'unavailable',
    isSleepFlagSet: () => listener?.isSleepFlagSet() ?? false,
    clearSleepFlag: () => listener?.clearSleepFlag(),
    hasNewRows: () => mayHaveWaitingRows(outbox),
    wake: wakeups.capture.wake,
    elapsedMs: clock.stopwatch(),
  })
}

function captureDeps({ config, databases, mappings, log, telemetry, wakeups }: CaptureContext): CaptureDeps {
  const { ledger, outbox } = databases
  return {
    queuedMax: config.captureWindow,
    claim: (db, request) => databases.raiseForeign(() => claimRows(outbox, db, request)),
    claimOne: (db, outboxId) => databases.raiseForeign(() => claimRow(outbox, db, outboxId)),
    readClaimedRows: (db, rows) => readClaimedRows(outbox, db, rows),
    markRows: (db, rows, statuses) => markRows(db, rows, statuses),
    hasToWaitForKey: (outboxId, order) => databases.raiseForeign(() => hasToWaitForKey(outbox, outboxId, order)),
    readRecordContents: (records) => readRecordContentsThatFit(outbox, mappings, records),
    withLock: (work) => withCaptureLock({ ...databases, sessions: async () => (await outbox.open()).db }, work),
    async readDueCaptureWork() {
      const { served, ...agenda } = await readDueCaptureRetries(ledger)
      return { ...agenda, hasNewRows: () => mayHaveWaitingRows(outbox, served) }
    },
    skipRows: (rows) => skipRows(ledger, rows),
    forgetSkippedRow: (outboxId) => forgetSkippedRow(ledger, outboxId),
    async reportLater(outboxIds) {
      await makeReportsDueAgain(ledger, outboxIds)
      wakeups.report.wake()
    },
    map(record, id) {
      const mapped = mapOutboxRecord(mappings, record, id)
      return mapped.kind === 'mapped' ? mapped : { ...mapped, fieldErrors: mapped.errors }
    },
    newId: randomUUIDv7,
    newKey: randomUUID,
    faultOf: toCaptureFault,
    onCaptured(records) {
      telemetry.captured(records)
      wakeups.dispatch.wake()
    },
    onBatchFailed: (count, error) =>
      log.warn('batch of rows could not be captured: the daemon tries smaller batches', { count, error }),
    onRowRejected: (outboxId, error) =>
      log.warn('outbox row could not be captured and was rejected', { outboxId, error }),
    async stopCaptureOfTypeBriefly(type, error) {
      const detail = error instanceof SourceFailed ? error.detail : ''
      await stopCaptureOfTypeBriefly(ledger, type, detail)
      log.error('record type is not captured: the query in its mapping file fails for all rows', { type, error })
    },
    resumeCaptureOfTypes: (types) => resumeCaptureOfTypes(ledger, types),
    onRowSkipped: (outboxId, error) =>
      log.error('outbox row was skipped: the daemon tries it again later', { outboxId, error }),
  }
}

/** @param isMarking true if rows were being marked, which the table's own triggers may refuse */
export function toCaptureFault(error: unknown, isMarking: boolean): CaptureFault {
  const { code, class: name } = redactError(error)
  const message = error instanceof Error ? error.message : String(error)
  const failed = error instanceof SourceFailed ? error : null
  return {
    blame: failed?.blame ?? classifyDatabaseError(error, isMarking ? 'mark' : 'claim'),
    type: failed?.blame === 'type' ? failed.type : null,
    code: code ?? name,
    message: boundText(message, textCharsMax.message),
  }
}
