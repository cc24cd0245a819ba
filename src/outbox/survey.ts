import { setTimeout } from 'node:timers/promises'
import { textCharsMax } from '../boundText.ts'
import { forgetSkippedRows } from '../ledger/capture.ts'
import { clearProblems, raiseProblems } from '../ledger/problems.ts'
import {
  conflictsMax,
  differentRowMessage,
  findRepeatedIds,
  type RowConflict,
  raiseRowConflicts,
} from '../ledger/rowConflicts.ts'
import type { Database } from '../postgres/database.ts'
import { columnTextSql } from './columns.ts'
import { findFailing, findFailingIds } from './failingRows.ts'
import type { OpenTable } from './openTable.ts'
import type { Outbox } from './outbox.ts'
import { prunedNumberSql } from './rowExpressions.ts'
import { isInSliceSql, nullIfCanceled, readSliceAfter, sliceRowsMax, type TableSlice } from './slices.ts'
import { stateExpressions } from './stateForms.ts'

/** The most ids in memory. */
const idsBehindMax = 10_000

/** Looks through a table for rows that capture never reads. */
export class TableSurvey {
  readonly #outbox: Outbox
  readonly #sliceRows: number
  #upToId: string | null = null
  /** Rows behind the position of an append-only table. Null if reading them took too long. */
  idsBehind: readonly string[] | null = []
  /** Null if counting took too long. */
  statuses: readonly UnknownStatus[] | null = []
  /** True once the survey has reached the table's end. */
  isWhole = false

  constructor(outbox: Outbox, sliceRows = sliceRowsMax) {
    this.#outbox = outbox
    this.#sliceRows = sliceRows
  }

  /** @param goOn asked between two slices: false stops the survey, which a further call continues */
  async read(goOn: () => boolean | Promise<boolean>): Promise<this> {
    do await this.#readSlice()
    while (!this.isWhole && (await goOn()))
    return this
  }

  async #readSlice(): Promise<void> {
    const outbox = this.#outbox
    const { idsBehind, statuses } = this
    const slice = await readSliceAfter(await outbox.open(), this.#upToId, this.#sliceRows)
    const more =
      idsBehind === null || idsBehind.length >= idsBehindMax
        ? { ids: [], conflicts: [] }
        : await nullIfCanceled(() => outbox.queryTable((table) => readRowsBehindPosition(table, slice)))
    await raiseRowConflicts(outbox.ledger, more?.conflicts.slice(0, conflictsMax) ?? [])
    this.statuses =
      statuses &&
      (await nullIfCanceled(() => outbox.queryTable((table) => countUnknownStatuses(table, slice, statuses))))
    this.idsBehind = idsBehind && more && [...idsBehind, ...more.ids]
    this.#upToId = slice.upTo
    this.isWhole = slice.upTo === null
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
  #survey: TableSurvey

  constructor(outbox: Outbox, sliceRows = sliceRowsMax) {
    this.#outbox = outbox
    this.#sliceRows = sliceRows
    this.#survey = new TableSurvey(outbox, sliceRows)
  }

  /** @returns true if the survey has reached the table's end; false if the next round continues */
  async runOnce(mayGoOn: () => boolean): Promise<boolean> {
    const until = performance.now() + roundMaxMs
    const survey = this.#survey
    await survey.read(async () => {
      await setTimeout(betweenSlicesMs)
      return mayGoOn() && performance.now() < until
    })
    // First, so that a survey whose result cannot be written does not go on at the table's start.
    if (survey.isWhole) this.#survey = new TableSurvey(this.#outbox, this.#sliceRows)
    await updateProblems(this.#outbox.ledger, survey)
    return survey.isWhole
  }
}

async function updateProblems(ledger: Database, { idsBehind, statuses, isWhole }: TableSurvey): Promise<void> {
  if (idsBehind !== null && idsBehind.length > 0)
    await raiseProblem(ledger, 'rows_passed_over', rowsBehindPositionMessage(idsBehind, !isWhole))
  else if (idsBehind !== null && isWhole) await clearProblems(ledger, 'rows_passed_over', null)
  if (statuses !== null && statuses.length > 0)
    await raiseProblem(ledger, 'unknown_status', unknownStatusMessage(statuses, !isWhole))
  else if (statuses !== null && isWhole) await clearProblems(ledger, 'unknown_status', null)
}

const raiseProblem = (ledger: Database, kind: 'rows_passed_over' | 'unknown_status', detail: string): Promise<void> =>
  raiseProblems(ledger, [{ kind, subject: '', detail, retryInMs: null }])

interface RowProblem {
  kind: 'row_skipped' | 'row_conflict'
  subject: string
  /** True if the ledger lists the row as skipped. A daemon keeps rows whose filter fails in its memory only. */
  isListed: boolean
}

const reviewedMax = 1_000

/**
 * Deletes problems that are over, although no daemon says so: the daemon ended, or the ERP changed the row. A daemon
 * that must not start is started again by systemd after half a minute.
 *
 * @param mayReadTable false if this daemon's description of the table is not the ledger's
 */
export async function clearStaleProblems(outbox: Outbox, mayReadTable: () => Promise<boolean>): Promise<void> {
  const { rows: raised } = await outbox.ledger.query<RowProblem>(
    `with over as (
       delete from outboxd.problem
       where kind in ('foreign_outbox', 'foreign_service') and seen_at < clock_timestamp() - interval '1 minute'
     )
     select kind, subject, exists (select from outboxd.skipped_row s where s.outbox_id = p.subject) as "isListed"
     from outboxd.problem p where kind in ('row_skipped', 'row_conflict') order by random() limit $1`,
    [reviewedMax],
  )
  if (raised.length === 0 || !(await mayReadTable())) return // the ERP's table may be locked
  const { row_skipped: skipped = [], row_conflict: conflicts = [] } = Object.groupBy(raised, ({ kind }) => kind)
  const table = await outbox.open()
  await forgetRowsNoLongerSkipped(outbox, table, skipped)
  await clearOutdatedRowConflicts(outbox, table, conflicts)
}

/** Forgets skipped rows that no longer wait, and rows for which the filter no longer fails. */
async function forgetRowsNoLongerSkipped(
  { ledger }: Outbox,
  table: OpenTable,
  raised: readonly RowProblem[],
): Promise<void> {
  const whole = raised.filter(({ subject }) => subject.length < textCharsMax.message) // a longer id was cut
  const { from, mayWait, id, idType, idText } = table.rows
  const waiting = await readIds(
    table,
    `select ${idText} as "outboxId" from ${from} where ${mayWait} and ${id} = any($1::${idType}[])`,
    whole,
  )
  const filtered = whole.flatMap(({ subject, isListed }) => (!isListed && waiting.has(subject) ? [subject] : []))
  const failing = new Set(await findFailing(table, filtered))
  const over = whole.flatMap(({ subject, isListed }) => ((isListed ? waiting : failing).has(subject) ? [] : [subject]))
  if (over.length > 0) await forgetSkippedRows(ledger, over)
}

/** Clears the conflicts of rows that the ERP has deleted, renumbered or corrected. */
async function clearOutdatedRowConflicts(
  { ledger }: Outbox,
  table: OpenTable,
  raised: readonly RowProblem[],
): Promise<void> {
  const { from, id, idType, idText, isOtherRow } = table.rows
  const standing = await readIds(
    table,
    `select ${idText} as "outboxId" from ${from} where ${id} = any($1::${idType}[])
     group by 1 having bool_or(${isOtherRow}) or count(*) > 1`,
    raised,
  )
  const over = raised.flatMap(({ subject }) => (standing.has(subject) ? [] : [subject]))
  if (over.length > 0) await clearProblems(ledger, 'row_conflict', over)
}

/** A row that cannot be read counts as found. An id that does not fit the column's type is that of no row. */
async function readIds(
  { db, rows: { idType } }: OpenTable,
  sql: string,
  problems: readonly RowProblem[],
): Promise<ReadonlySet<string>> {
  const ids = problems.map(({ subject }) => subject)
  const found = new Set<string>()
  const failing = await findFailingIds(ids, async (part) => {
    const { rows } = await db.query<{ outboxId: string }>(sql, [part])
    for (const { outboxId } of rows) found.add(outboxId)
  })
  const unfit = new Set(await findFailingIds(failing, (part) => db.query(`select $1::${idType}[]`, [part])))
  for (const id of failing) if (!unfit.has(id)) found.add(id)
  return found
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
  /** Null for waiting rows without an id, in any status. */
  firstId: string | null
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
  const { from, id, idText, filtered, begins, lacksId } = expressions
  const all = new Map(countedBefore.map((each) => [each.status, each]))
  const form = stateExpressions(table.state)
  const isUnknown = form?.unknownSql(shape) ?? null
  const { rows: found } =
    form === null || isUnknown === null
      ? { rows: [] }
      : await db.query<UnknownStatus>(
          `select left(${columnTextSql(form.column, shape)}, 40) as status, count(*)::int as rows,
             (array_agg(${idText} order by ${id}))[1] as "firstId"
           from ${from} where ${isUnknown}${filtered}${begins}${isInSliceSql(expressions)}
           group by 1 order by 2 desc limit ${statusesMax}`,
          [after, upTo],
        )
  for (const { status, rows, firstId } of found) {
    const known = all.get(status)
    if (known !== undefined) all.set(status, { ...known, rows: known.rows + rows })
    else if (all.size < statusesMax) all.set(status, { status, rows, firstId })
  }
  if (upTo !== null || lacksId === null) return [...all.values()]
  // One statement for the whole table, which may be slow for a view.
  const lacking = await nullIfCanceled(() =>
    db.query<UnknownStatus>(
      `select null as status, count(*)::int as rows, null as "firstId" from ${from} where ${lacksId} having count(*) > 0`,
    ),
  )
  return [...all.values(), ...(lacking?.rows ?? [])]
}

export function unknownStatusMessage(statuses: readonly UnknownStatus[], isCut: boolean): string {
  const { withId = [], withoutId = [] } = Object.groupBy(statuses, ({ firstId }) =>
    firstId === null ? 'withoutId' : 'withId',
  )
  const named = withId.map(
    ({ status, rows, firstId }) =>
      `${status === null ? 'NULL' : `"${status}"`} (${rows} ${rows === 1 ? 'row' : 'rows'}, the first is ${firstId})`,
  )
  return [
    ...(named.length === 0
      ? []
      : [
          `rows have a status that outbox.yaml does not name, so outboxd does not read them: ${named.join(', ')}${isCut ? ', and perhaps more' : ''}`,
        ]),
    ...withoutId.map(({ rows }) => `rows without an id wait (${rows}), so outboxd does not read them`),
  ].join('; ')
}

export const unknownStatusAdvice =
  'Correct the status or id of rows that are still to be sent. Leave others out by a filter in outbox.yaml, or give them a status that is configured.'
