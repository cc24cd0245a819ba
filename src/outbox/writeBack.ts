import { boundText } from '../boundText.ts'
import type { RowOutcome, RowStatus, WriteBackResult, WrittenBackRow } from '../model.ts'
import {
  beginTransaction,
  type Database,
  type DatabasePool,
  didSessionSurviveError,
  isTransientError,
} from '../postgres/database.ts'
import { errorCodeOf, isStatementCanceled } from '../postgres/sqlState.ts'
import type { Outbox } from './outbox.ts'
import { type WriteBackStatements, writeBackStatements } from './writeBackStatements.ts'

interface Writing {
  sessions: DatabasePool
  table: string
  writing: WriteBackStatements
}

/**
 * Writes states back in one transaction, while no other instance writes any. `readStatuses` runs after the lock is
 * taken, so that a late instance never overwrites a later state with an earlier one. Leaves out rows that are locked.
 *
 * @throws Error if no row can be written: the database cannot be reached, a column is missing, or the table is locked
 */
export async function writeBackRows<R extends RowStatus>(
  outbox: Outbox,
  readStatuses: () => Promise<R[]>,
): Promise<WriteBackResult<R>> {
  const open = await outbox.open()
  const statements = writeBackStatements(open)
  if (statements === null)
    return { kind: 'done', rows: (await readStatuses()).map((status) => ({ status, kind: 'written' })) }
  const writing = { sessions: open.db, table: open.shape.qualified, writing: statements }
  const attempt = await tryToWrite(writing, readStatuses)
  if (attempt.kind !== 'failed') return attempt
  if (!didSessionSurviveError(attempt.error)) throw attempt.error
  // If the statement also fails without rows, no row is the cause.
  const empty = await tryToWrite(writing, async () => [])
  if (empty.kind === 'failed') throw empty.error
  if (!isTransientError(attempt.error) || isLock(attempt.error) || isStatementCanceled(attempt.error))
    return refusal(attempt)
  // Tries again whatever the code: a trigger may raise any, and a cause such as a failover may have passed.
  const again = await tryToWrite(writing, readStatuses)
  if (again.kind !== 'failed') return again
  if (!didSessionSurviveError(again.error)) throw again.error
  return refusal(again)
}

function refusal<R extends RowStatus>({ statuses, error }: Failed<R>): WriteBackResult<R> {
  if (isStatementCanceled(error)) return { kind: 'slow', statuses }
  const message = boundText(error.message, 200)
  return { kind: 'refused', statuses, code: String(errorCodeOf(error)), message, why: isLock(error) ? 'lock' : 'row' }
}

/** A lock timeout or a deadlock, most likely within a trigger. */
const isLock = (error: Error) => /^(55P03|40P01)$/.test(String(errorCodeOf(error)))

/** The daemon has Postgres cancel a longer statement. */
const writeBackMaxMs = 10_000

interface Failed<R extends RowStatus> {
  kind: 'failed'
  statuses: R[]
  error: Error
}
type Attempt<R extends RowStatus> = Exclude<WriteBackResult<R>, { kind: 'refused' }> | Failed<R>

async function tryToWrite<R extends RowStatus>(
  { sessions, table, writing }: Writing,
  read: () => Promise<R[]>,
): Promise<Attempt<R>> {
  await using transaction = await beginTransaction(sessions)
  const { db } = transaction
  await db.query(`set local lock_timeout = '1s'; set local statement_timeout = '${writeBackMaxMs}'`)
  if (!(await withLock(db, table))) return { kind: 'busy' }
  const statuses = await read()
  try {
    const rows = await write(db, writing, statuses)
    await transaction.commit()
    return { kind: 'done', rows }
  } catch (error) {
    return { kind: 'failed', statuses, error: error as Error }
  }
}

/** Later reads then see all that instances were writing back. */
export async function waitForWriteBack(outbox: Outbox): Promise<void> {
  const { db: sessions, shape } = await outbox.open()
  await using transaction = await beginTransaction(sessions)
  await transaction.db.query(`set local lock_timeout = '${3 * writeBackMaxMs}'; set local statement_timeout = 0`)
  await transaction.db.query('select pg_advisory_xact_lock(7163, $1::regclass::oid::int)', [shape.qualified])
}

async function withLock(db: Database, table: string): Promise<boolean> {
  const { rows } = await db.query<{ turn: boolean }>(
    'select pg_try_advisory_xact_lock(7163, $1::regclass::oid::int) as turn',
    [table],
  )
  return rows[0]?.turn ?? false
}

async function write<R extends RowStatus>(
  db: Database,
  writing: WriteBackStatements,
  all: R[],
): Promise<WrittenBackRow<R>[]> {
  const statuses = all.filter(({ state }) => writing.states.has(state))
  const { rows } = await db.query<{ outboxId: string; held: boolean; written: boolean }>(writing.report, [
    JSON.stringify(statuses),
  ])
  const byId = new Map(rows.map((row) => [row.outboxId, row]))
  const unheld = await explainUnheld(
    db,
    writing,
    statuses.filter(({ outboxId }) => byId.get(outboxId)?.held === false),
  )
  return all.map((status) => {
    const row = byId.get(status.outboxId)
    if (row === undefined || row.written) return { status, kind: 'written' }
    return { status, ...(row.held ? ignored : (unheld.get(status.outboxId) ?? gone)) }
  })
}

const gone: RowOutcome = { kind: 'gone' }
const ignored: RowOutcome = {
  kind: 'ineffective',
  why: 'a BEFORE UPDATE trigger suppresses the update (it returns NULL), or sets the state back',
}
const hidden: RowOutcome = {
  kind: 'ineffective',
  why: 'row-level security hides the row from updates: our user needs a policy for UPDATE',
}

async function explainUnheld(
  db: Database,
  writing: WriteBackStatements,
  statuses: readonly RowStatus[],
): Promise<Map<string, RowOutcome>> {
  if (statuses.length === 0) return new Map()
  const { rows } = await db.query<UnheldRow>(writing.unheld, [JSON.stringify(statuses)])
  return new Map(rows.map((row) => [row.outboxId, outcomeOf(row)]))
}

function outcomeOf({ open, same, secured, holder, isOurs }: UnheldRow): RowOutcome {
  if (!same) return { kind: 'another' }
  if (!open) return { kind: 'written' }
  if (holder === null && secured) return hidden
  return isOurs ? { kind: 'in_hand' } : { kind: 'locked', holder }
}

interface UnheldRow {
  outboxId: string
  open: boolean
  same: boolean
  secured: boolean
  holder: number | null
  isOurs: boolean | null
}
