import type { DueReport, Report, ReportResult } from '../model/outbox.ts'
import { type Database, queryOne } from '../postgres/database.ts'
import type { LedgerHistory } from './history/history.ts'
import { clearProblems, raiseProblems } from './problems.ts'

/**
 * Reads new reports in the order of their records, and those that are due to be written back alone. Reads none while the
 * ledger may have lost data, because the outbox rows may know more.
 */
export async function readDueReports(
  db: Database,
  { freshMax, aloneMax }: { freshMax: number; aloneMax: number },
): Promise<{ fresh: DueReport[]; alone: DueReport[] }> {
  const { rows } = await db.query<DueReport & { isAlone: boolean }>(
    `(select id as "submissionId", report_failures as failures, false as "isAlone" from outboxd.submission
      where (select lost_at is null from outboxd.ledger where is_only) and report_due and report_put_off is distinct from revision order by seq limit $1)
     union all
     (select id, report_failures, true from outboxd.submission
      where (select lost_at is null from outboxd.ledger where is_only) and report_due and report_put_off = revision and report_not_before <= clock_timestamp()
      order by report_not_before limit $2)`,
    [freshMax, aloneMax],
  )
  const due = Map.groupBy(rows, ({ isAlone }) => isAlone)
  return { fresh: due.get(false) ?? [], alone: due.get(true) ?? [] }
}

/**
 * After Postgres has refused them together. Leaves out submissions that another session has locked.
 *
 * @returns the number of reports that are due to be written back alone
 */
export async function writeReportsBackAlone(db: Database, due: readonly DueReport[]): Promise<number> {
  const { rowCount } = await db.query(
    `update outboxd.submission set report_put_off = revision, report_not_before = clock_timestamp()
     where id = any(array(
       select id from outboxd.submission where report_due and id = any($1::uuid[]) for no key update skip locked))`,
    [due.map(({ submissionId }) => submissionId)],
  )
  return rowCount ?? 0
}

/**
 * Call this before the states are read, so that a late instance never writes an earlier state over a later one.
 * @returns false if another instance writes back
 */
export async function tryLockWriteBack(db: Database): Promise<boolean> {
  const { locked } = await queryOne<{ locked: boolean }>(
    db,
    "select pg_try_advisory_xact_lock(7166, 'outboxd.submission'::regclass::oid::int) as locked",
  )
  return locked
}

/** Locks nothing, so that no record waits for the outbox's database. */
export async function readReportsToWriteBack(
  { ledger, history }: { ledger: Database; history: Pick<LedgerHistory, 'stands'> },
  due: readonly DueReport[],
): Promise<Report[]> {
  if (!(await history.stands(ledger))) return []
  const { rows } = await ledger.query<Report>(
    `select id as "submissionId", outbox_id as "outboxId", row_created as created, revision, state, transaction_id as "transactionId",
       error_code as "errorCode", error, report_failures as failures
     from outboxd.submission
     where report_due and id = any($1::uuid[]) order by seq`,
    [due.map(({ submissionId }) => submissionId)],
  )
  return rows
}

/** Leaves out submissions that have taken a step since, because that step has its own report. */
async function writeResults(db: Database, results: readonly ReportResult[]): Promise<ReportResult[]> {
  const { rows } = await db.query<{ id: string }>(
    `update outboxd.submission s set report_due = r."againInMs" is not null,
       report_put_off = case when r."againInMs" is not null then s.revision end,
       report_not_before = clock_timestamp() + r."againInMs" * interval '1 ms',
       report_failures = case when r."againInMs" is null then 0 else r.failures + 1 end
     from json_to_recordset($1) as r(id uuid, revision int, failures int, "againInMs" float8),
       -- a step that is being written has its own report
       lateral (select from outboxd.submission l where l.id = r.id for no key update skip locked) free
     where s.id = r.id and s.revision = r.revision and s.report_due
     returning s.id`,
    [
      JSON.stringify(
        results.map(({ againInMs, report: { submissionId, revision, failures } }) => ({
          id: submissionId,
          revision,
          failures,
          againInMs,
        })),
      ),
    ],
  )
  const written = new Set(rows.map(({ id }) => id))
  return results.filter(({ report }) => written.has(report.submissionId))
}

export async function makeReportsDueAgain(db: Database, outboxIds: readonly string[]): Promise<void> {
  await db.query(
    'update outboxd.submission set report_due = true where outbox_id = any($1::text[]) and not report_due',
    [outboxIds],
  )
}

/** Kinds of problems that end when the row is written back. */
const rowKinds = ['report_refused', 'report_locked', 'mark_ineffective', 'row_missing', 'row_conflict'] as const

/**
 * Ticks reports off, or puts them off. Call this in the transaction that wrote them to the rows.
 *
 * @returns the number of reports that were ticked off or put off
 */
export async function writeReportResults(db: Database, results: readonly ReportResult[]): Promise<number> {
  if (results.length === 0) return 0
  const written = await writeResults(db, results)
  const before = written.filter(({ report }) => report.failures > 0)
  for (const kind of rowKinds) {
    const cleared = before.filter(({ problem }) => problem?.kind !== kind).map(({ report }) => report.outboxId)
    if (cleared.length > 0) await clearProblems(db, kind, cleared)
  }
  await raiseProblems(
    db,
    written.flatMap(({ problem }) => problem ?? []),
  )
  return written.length
}
