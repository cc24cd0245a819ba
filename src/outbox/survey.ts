import { setTimeout } from 'node:timers/promises'
import { clearProblems, raiseProblems } from '../ledger/problems.ts'
import { conflictsMax, raiseRowConflicts } from '../ledger/rowConflicts.ts'
import type { Database } from '../postgres/database.ts'
import type { Outbox } from './outbox.ts'
import { clearOutdatedRowConflicts } from './rowConflicts.ts'
import { nullIfCanceled, readNextSliceBounds, sliceRowsMax } from './slices.ts'
import {
  countUnknownStatuses,
  readRowsBehindPosition,
  rowsBehindPositionMessage,
  type UnknownStatus,
  unknownStatusMessage,
} from './unclaimedRows.ts'

/** What a survey of the table has found so far: rows that capture never reads. */
export interface TableSurvey {
  /** Null if reading them took too long. */
  idsBehind: readonly string[] | null
  /** Null if counting took too long. */
  statuses: readonly UnknownStatus[] | null
  /** True if the survey stopped before the table's end. */
  isCut: boolean
  upToId: string | null
}

const begun: TableSurvey = { idsBehind: [], statuses: [], isCut: false, upToId: null }

/** The most ids in memory. */
const idsBehindMax = 10_000

interface SurveyOptions {
  /** Asked between two slices: false stops the survey. */
  goOn(): boolean | Promise<boolean>
  sliceRows?: number
  previousPart?: TableSurvey | undefined
}

export async function surveyTable(
  outbox: Outbox,
  { goOn, sliceRows = sliceRowsMax, previousPart = begun }: SurveyOptions,
): Promise<TableSurvey> {
  let { idsBehind, statuses, upToId } = previousPart
  for (;;) {
    const table = await outbox.open()
    const slice = await readNextSliceBounds(table.db, table.rows, upToId, sliceRows)
    if (idsBehind !== null && idsBehind.length < idsBehindMax) {
      const more = await nullIfCanceled(() =>
        outbox.queryTable((asked) => readRowsBehindPosition(outbox, asked, slice)),
      )
      await raiseRowConflicts(outbox.ledger, more?.conflicts.slice(0, conflictsMax) ?? [])
      idsBehind = more && [...idsBehind, ...more.ids]
    }
    if (statuses !== null) {
      const counted = statuses
      statuses = await nullIfCanceled(() => outbox.queryTable((asked) => countUnknownStatuses(asked, slice, counted)))
    }
    upToId = slice.upTo
    if (upToId === null || !(await goOn())) return { idsBehind, statuses, isCut: upToId !== null, upToId }
  }
}

/** Leaves the database time for the ERP's own statements. */
const betweenSlicesMs = 100

/** A round ends after this time, because a loop with a long round is reported as stuck. The next round continues. */
const roundMaxMs = 20_000

/** Surveys the table in rounds, and keeps the problems that it finds. */
export class TableSurveys {
  readonly #outbox: Outbox
  readonly #sliceRows: number
  #part: TableSurvey | undefined

  constructor(outbox: Outbox, sliceRows = sliceRowsMax) {
    this.#outbox = outbox
    this.#sliceRows = sliceRows
  }

  /** @returns true if the survey has reached the table's end; false if the next round continues */
  async runOnce(mayGoOn: () => boolean): Promise<boolean> {
    const until = performance.now() + roundMaxMs
    const goOn = async () => {
      await setTimeout(betweenSlicesMs)
      return mayGoOn() && performance.now() < until
    }
    const found = await surveyTable(this.#outbox, { goOn, sliceRows: this.#sliceRows, previousPart: this.#part })
    await updateProblems(this.#outbox.ledger, found)
    this.#part = found.isCut ? found : undefined
    return !found.isCut
  }
}

async function updateProblems(ledger: Database, { idsBehind, statuses, isCut }: TableSurvey): Promise<void> {
  const isWhole = !isCut
  if (idsBehind !== null && idsBehind.length > 0)
    await raiseProblem(ledger, 'rows_passed_over', rowsBehindPositionMessage(idsBehind, isCut))
  else if (idsBehind !== null && isWhole) await clearProblems(ledger, 'rows_passed_over', null)
  if (statuses !== null && statuses.length > 0)
    await raiseProblem(ledger, 'unknown_status', unknownStatusMessage(statuses, isCut))
  else if (statuses !== null && isWhole) await clearProblems(ledger, 'unknown_status', null)
}

const raiseProblem = (ledger: Database, kind: 'rows_passed_over' | 'unknown_status', detail: string): Promise<void> =>
  raiseProblems(ledger, [{ kind, subject: '', detail, retryInMs: null }])

/**
 * Deletes problems that no daemon has renewed for five minutes, because the daemon ended or its filter changed.
 * Problems of rows that the ledger records as skipped stay.
 */
export async function clearStaleProblems(outbox: Outbox): Promise<void> {
  await outbox.ledger.query(
    `delete from outboxd.problem p where seen_at < clock_timestamp() - interval '5 minutes'
       and (kind in ('foreign_outbox', 'foreign_service') or kind = 'row_skipped'
         and not exists (select from outboxd.skipped_row s where left(s.outbox_id, 500) = p.subject))`,
  )
  await clearOutdatedRowConflicts(outbox)
}
