import type { State } from '../../record.ts'
import type { Database } from '../database.ts'

/** What an outbox row has yet to be told. */
export interface Report {
  submissionId: string
  outboxId: string
  /** Fences the acknowledgement: a state that came later has its own report. */
  revision: number
  state: State
  transactionId: string | null
  errorCode: string | null
  error: string | null
}

/** Whether any report is due; cheap. */
export async function hasReports(db: Database): Promise<boolean> {
  const { rowCount } = await db.query('select from outboxd.submission where report_due limit 1')
  return (rowCount ?? 0) > 0
}

/** Takes the turn to report until the transaction ends; two at a time could overwrite a later state with an earlier. */
export async function takeReportTurn(db: Database): Promise<boolean> {
  const { rows } = await db.query<{ turn: boolean }>('select pg_try_advisory_xact_lock(7163) as turn')
  return rows[0]?.turn ?? false
}

/** Makes reports due again whose delivery may have come too late. */
export async function renewReports(db: Database, reports: readonly Report[]): Promise<void> {
  await db.query('update outboxd.submission set report_due = true where id = any($1::uuid[])', [
    reports.map((report) => report.submissionId),
  ])
}

/** The oldest reports that are due. Locks nothing: a step of a submission never waits for the outbox's database. */
export async function readReports(db: Database, limit: number): Promise<Report[]> {
  const { rows } = await db.query<Report>(
    `select id as "submissionId", outbox_id as "outboxId", revision, state, transaction_id as "transactionId",
       error_code as "errorCode", error
     from outboxd.submission where report_due order by seq limit $1`,
    [limit],
  )
  return rows
}

/** Marks reports as delivered. */
export async function acknowledgeReports(db: Database, reports: readonly Report[]): Promise<void> {
  await db.query(
    `update outboxd.submission s set report_due = false
     from unnest($1::uuid[], $2::int[]) r(id, revision) where s.id = r.id and s.revision = r.revision`,
    [reports.map((report) => report.submissionId), reports.map((report) => report.revision)],
  )
}
