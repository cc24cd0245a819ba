import { setTimeout } from 'node:timers/promises'
import { clearProblems, raiseProblems } from '../ledger/problems.ts'
import {
  conflictsMax,
  differentRowMessage,
  findRepeatedIds,
  type RowConflict,
  raiseRowConflicts,
} from '../ledger/rowConflicts.ts'
import { type Database, queryOne } from '../postgres/database.ts'
import { columnTextSql } from './columns.ts'
import { findFailingIds } from './failingRows.ts'
import type { OpenTable } from './openTable.ts'
import type { Outbox } from './outbox.ts'
import { idCharsMax, prunedNumberSql } from './rowExpressions.ts'
import { isInSliceSql, readSliceAfter, sliceRowsMax, type TableSlice } from './slices.ts'
import { stateExpressions } from './stateForms.ts'

/** The most ids in memory. */
const idsBehindMax = 10_000

/** Rows that capture never reads, as far as the survey has come. */
export interface Survey {
  readonly upToId: string | null
  /** Rows behind the position of an append-only table. */
  readonly idsBehind: readonly string[]
  readonly statuses: readonly UnknownStatus[]
  /** True once the survey has reached the table's end. */
  readonly isWhole: boolean
}

const nothingSurveyed: Survey = { upToId: null, idsBehind: [], statuses: [], isWhole: false }

/**
 * Looks through the table, slice by slice.
 *
 * @param goOn asked between two slices: false ends the survey
 * @param begun a survey to continue
 */
export async function surveyTable(
  outbox: Outbox,
  goOn: () => boolean | Promise<boolean>,
  begun = nothingSurveyed,
  sliceRows = sliceRowsMax,
): Promise<Survey> {
  let { upToId, idsBehind, statuses } = begun
  for (;;) {
    const slice = await readSliceAfter(await outbox.open(), upToId, sliceRows)
    const behind = await outbox.queryTable((table) => readRowsBehindPosition(table, slice))
    await raiseRowConflicts(outbox.ledger, behind.conflicts.slice(0, conflictsMax))
    idsBehind = [...idsBehind, ...behind.ids].slice(0, idsBehindMax)
    const counted = statuses
    statuses = await outbox.queryTable((table) => countUnknownStatuses(table, slice, counted))
    upToId = slice.upTo
    const isWhole = upToId === null
    if (isWhole || !(await goOn())) return { upToId, idsBehind, statuses, isWhole }
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
  #survey = nothingSurveyed

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
    const survey = await surveyTable(this.#outbox, goOn, this.#survey, this.#sliceRows)
    // First, so that a survey whose result cannot be written does not go on at the table's start.
    this.#survey = survey.isWhole ? nothingSurveyed : survey
    await updateProblems(this.#outbox.ledger, survey)
    return survey.isWhole
  }
}

async function updateProblems(ledger: Database, { idsBehind, statuses, isWhole }: Survey): Promise<void> {
  const details = {
    rows_passed_over: idsBehind.length === 0 ? null : rowsBehindPositionMessage(idsBehind, !isWhole),
    unknown_status: statuses.length === 0 ? null : unknownStatusMessage(statuses, !isWhole),
  }
  for (const kind of ['rows_passed_over', 'unknown_status'] as const) {
    const detail = details[kind]
    if (detail !== null) await raiseProblems(ledger, [{ kind, subject: '', detail, retryInMs: null }])
    else if (isWhole) await clearProblems(ledger, kind, null)
  }
}

/**
 * Deletes problems that are over, although no daemon says so: the daemon ended, or the ERP changed the row. The problem of
 * a row for which the filter fails has no `retry_at`, and is raised every few seconds.
 *
 * @param mayReadTable false if this daemon's description of the table is not the ledger's
 */
export async function clearStaleProblems(outbox: Outbox, mayReadTable: () => Promise<boolean>): Promise<void> {
  const { hasRowProblems } = await queryOne<{ hasRowProblems: boolean }>(
    outbox.ledger,
    `with over as (
       delete from outboxd.problem
       where kind = 'row_skipped' and retry_at is null and seen_at < clock_timestamp() - interval '1 minute'
     )
     select exists (select from outboxd.problem where kind in ('row_conflict', 'row_skipped')) as "hasRowProblems"`,
  )
  if (hasRowProblems && (await mayReadTable())) await clearProblemsOfChangedRows(await outbox.open())
}

/**
 * Clears conflicts and skips of rows that the ERP has deleted or renumbered, conflicts of rows that it has corrected, and
 * skips of rows that no longer wait. A skip under an id that the ledger has cut stays until its next try.
 */
async function clearProblemsOfChangedRows({ db, rows }: OpenTable): Promise<void> {
  const { from, id, idType, idText, isOtherRow, mayWait } = rows
  const { rows: problems } = await db.query<{ subject: string }>(
    `select subject from outboxd.problem
     where kind = 'row_conflict' or kind = 'row_skipped' and char_length(subject) <= ${idCharsMax}`,
  )
  const subjects = problems.map(({ subject }) => subject)
  // An id that does not fit the column's present type is that of no row.
  const unfit = new Set(await findFailingIds(subjects, (part) => db.query(`select $1::${idType}[]`, [part])))
  await db.query(
    `with standing as materialized (
       select ${idText} collate "C" as id, bool_or(${isOtherRow}) or count(*) > 1 as "isInConflict", bool_or(${mayWait}) as waits
       from ${from} where ${id} = any($2::${idType}[]) group by 1
     )
     delete from outboxd.problem
     where kind in ('row_conflict', 'row_skipped') and subject = any($1)
       and (select case kind when 'row_conflict' then "isInConflict" else waits end from standing where id = subject) is not true`,
    [subjects, subjects.filter((subject) => !unfit.has(subject))],
  )
}

/**
 * Reads the rows of a slice that lie behind the position of an append-only table and have no record, or one of a
 * different row. Leaves out numbers up to which retention may have deleted records.
 *
 * Such a row came later than the position: its number was drawn ahead, a partition was attached, or a policy was
 * lifted. A row in conflict is one of a sequence that was set back. Two rows with one id do not count here.
 */
async function readRowsBehindPosition(
  { db, form, rows: expressions }: OpenTable,
  { after, upTo }: TableSlice,
): Promise<{ ids: string[]; conflicts: readonly RowConflict[] }> {
  if (form !== 'append-only') return { ids: [], conflicts: [] }
  const { from, waits, isAhead, number, id, idText, isOtherRow, recordOfIdJson } = expressions
  const { rows } = await db.query<{ outboxId: string; record: { state: string; recorded: string } | null }>(
    `select ${idText} as "outboxId", ${recordOfIdJson} as record from ${from}
     where ${waits} and not (${isAhead}) and ${number} > ${prunedNumberSql} and ${isOtherRow} is not false
       ${isInSliceSql(expressions)} order by ${id}`,
    [after, upTo],
  )
  const duplicates = findRepeatedIds(rows.map(({ outboxId }) => outboxId))
  return {
    ids: rows.flatMap(({ outboxId, record }) => (record === null && !duplicates.has(outboxId) ? [outboxId] : [])),
    conflicts: rows.flatMap(({ outboxId, record }) =>
      record === null ? [] : [{ outboxId, detail: differentRowMessage(record.state, record.recorded) }],
    ),
  }
}

const rowsBehindPositionMessage = (ids: readonly string[], isCut: boolean): string =>
  `${ids.length}${isCut ? ' or more' : ''} ${ids.length === 1 && !isCut ? 'row lies' : 'rows lie'} behind the position up to which the table was read (the first is ${ids[0]}), so outboxd does not send ${ids.length === 1 && !isCut ? 'it' : 'them'}. The number was drawn long before the insert, or the row became visible later: a partition or inheriting table was attached, or a row-level security policy changed`

interface UnknownStatus {
  /** Cut to 40 characters; null for NULL. */
  status: string | null
  rows: number
  firstId: string
}

const statusesMax = 10

/**
 * Counts the rows that capture never reads because `outbox.yaml` does not name their status. Counts none if
 * `outbox.yaml` names only the statuses of waiting rows, or none.
 */
async function countUnknownStatuses(
  { db, table, shape, rows: expressions }: OpenTable,
  { after, upTo }: TableSlice,
  countedBefore: readonly UnknownStatus[],
): Promise<UnknownStatus[]> {
  const { from, id, idText, filtered, begins } = expressions
  const form = stateExpressions(table.state)
  const isUnknown = form?.unknownSql(shape) ?? null
  if (form === null || isUnknown === null) return []
  const { rows: found } = await db.query<UnknownStatus>(
    `select left(${columnTextSql(form.column, shape)}, 40) as status, count(*)::int as rows,
       (array_agg(${idText} order by ${id}))[1] as "firstId"
     from ${from} where ${isUnknown}${filtered}${begins}${isInSliceSql(expressions)}
     group by 1 order by 2 desc limit ${statusesMax}`,
    [after, upTo],
  )
  const all = new Map(countedBefore.map((each) => [each.status, each]))
  for (const { status, rows, firstId } of found) {
    const known = all.get(status)
    if (known !== undefined) all.set(status, { ...known, rows: known.rows + rows })
    else if (all.size < statusesMax) all.set(status, { status, rows, firstId })
  }
  return [...all.values()]
}

export function unknownStatusMessage(statuses: readonly UnknownStatus[], isCut: boolean): string {
  const named = statuses.map(
    ({ status, rows, firstId }) =>
      `${status === null ? 'NULL' : `"${status}"`} (${rows} ${rows === 1 ? 'row' : 'rows'}, the first is ${firstId})`,
  )
  return `rows have a status that outbox.yaml does not name, so outboxd does not read them: ${named.join(', ')}${isCut ? ', and perhaps more' : ''}`
}

export const unknownStatusAdvice =
  'Correct the status of rows that are still to be sent. Leave others out by a filter in outbox.yaml, or give them a status that is configured.'
