import { setTimeout } from 'node:timers/promises'
import { clearProblems, raiseProblems } from '../ledger/problems.ts'
import { conflictsMax, findRepeatedIds, type RowConflict, raiseRowConflicts } from '../ledger/rowConflicts.ts'
import type { Database } from '../postgres/database.ts'
import { clearOutdatedRowConflicts, findCapturedRows, type SeenRow } from './capturedRows.ts'
import { columnTextSql } from './columns.ts'
import type { OpenTable } from './openTable.ts'
import type { Outbox } from './outbox.ts'
import { notBeforeStartSql, prunedNumberSql } from './rowExpressions.ts'
import { isInSliceSql, nullIfCanceled, readNextSliceBounds, sliceRowsMax, type TableSlice } from './slices.ts'
import { stateExpressions } from './stateForms.ts'

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
 * Deletes problems that no daemon has renewed, because the daemon ended or its filter changed. A daemon that must not
 * start is started again by systemd after half a minute.
 * Problems of rows that the ledger records as skipped stay.
 */
export async function clearStaleProblems(outbox: Outbox): Promise<void> {
  await outbox.ledger.query(
    `delete from outboxd.problem p
     where kind in ('foreign_outbox', 'foreign_service') and seen_at < clock_timestamp() - interval '1 minute'
       or kind = 'row_skipped' and seen_at < clock_timestamp() - interval '5 minutes'
         and not exists (select from outboxd.skipped_row s where left(s.outbox_id, 500) = p.subject)`,
  )
  await clearOutdatedRowConflicts(outbox)
}

/** Leaves out numbers up to which retention may have deleted records. Null unless the form is append-only. */
export function rowsBehindPositionSql({ rows, form }: OpenTable): string | null {
  const { from, waits, isAhead, number, created, id, idText } = rows
  if (form !== 'append-only') return null
  return `select ${idText} as "outboxId", ${created} as created from ${from}
    where ${waits} and not (${isAhead}) and ${number} > ${prunedNumberSql}${isInSliceSql(rows, 1)} order by ${id}`
}

/**
 * Reads the rows of a slice that lie behind the position of an append-only table and have no record, or one of a
 * different row.
 *
 * Such a row came later than the position: its number was drawn ahead, a partition was attached, or a policy was
 * lifted. A row in conflict is one of a sequence that was set back. Two rows with one id do not count here.
 */
async function readRowsBehindPosition(
  { ledger }: Outbox,
  table: OpenTable,
  { after, upTo }: TableSlice,
): Promise<{ ids: string[]; conflicts: readonly RowConflict[] }> {
  const sql = rowsBehindPositionSql(table)
  if (sql === null) return { ids: [], conflicts: [] }
  const { rows } = await table.db.query<SeenRow>(sql, [after, upTo])
  const { known, conflicts } = await findCapturedRows(ledger, rows)
  const ids = rows.map(({ outboxId }) => outboxId)
  const duplicates = findRepeatedIds(ids)
  return { ids: ids.filter((id) => !known.has(id) && !duplicates.has(id)), conflicts }
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
 * Counts the rows that capture never reads because `outbox.yaml` does not name their status. Null if `outbox.yaml` names
 * only the statuses of waiting rows, or none.
 */
export function unknownStatusCountsSql({ table, shape, rows, served }: OpenTable): string | null {
  const form = stateExpressions(table.state)
  const isUnknown = form?.unknownSql(shape) ?? null
  if (form === null || isUnknown === null) return null
  const { from, id, idText, filtered } = rows
  return `select left(${columnTextSql(form.column, shape)}, 40) as status, count(*)::int as rows,
       (array_agg(${idText} order by ${id}))[1] as "firstId"
     from ${from} where ${isUnknown}${filtered}${notBeforeStartSql(table, shape, served.start)}${isInSliceSql(rows, 1)}
     group by 1 order by 2 desc limit ${statusesMax}`
}

async function countUnknownStatuses(
  table: OpenTable,
  slice: TableSlice,
  countedBefore: readonly UnknownStatus[],
): Promise<UnknownStatus[]> {
  const all = new Map(countedBefore.map((each) => [each.status, each]))
  const sql = unknownStatusCountsSql(table)
  const { rows: found } =
    sql === null ? { rows: [] } : await table.db.query<UnknownStatus>(sql, [slice.after, slice.upTo])
  for (const { status, rows, firstId } of found) {
    const known = all.get(status)
    if (known !== undefined) all.set(status, { ...known, rows: known.rows + rows })
    else if (all.size < statusesMax) all.set(status, { status, rows, firstId })
  }
  if (slice.upTo !== null || table.rows.lacksId === null) return [...all.values()]
  const { from, lacksId } = table.rows
  // One statement for the whole table, which may be slow for a view.
  const lacking = await nullIfCanceled(() =>
    table.db.query<UnknownStatus>(
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
