import { boundText } from '../boundText.ts'
import type { RowStatus, WriteBackResult, WrittenBackRow } from '../model.ts'
import { begin, type Database, isStatementError, isTransient, type Sessions } from '../postgres/database.ts'
import { codeOf, isStatementCanceled } from '../postgres/sqlState.ts'
import type { Outbox } from './outbox.ts'
import { type WriteStatements, writeStatements } from './writeStatements.ts'

interface Writing {
  sessions: Sessions
  /** Quoted. */
  table: string
  writing: WriteStatements
}

/**
 * Tells rows their states in one transaction, while no other instance tells any: what they are to be told is asked for
 * when that is certain, so that nobody, however late, writes an earlier state over a later one. The lock lies in the
 * outbox's own database and ends with the transaction that writes. Rows that somebody has locked are left out.
 *
 * @param read what to write
 * @throws Error if nothing could be told, whatever the rows: the database is away, a column is gone, the table is locked
 */
export async function writeBackRows<R extends RowStatus>(
  outbox: Outbox,
  read: () => Promise<R[]>,
): Promise<WriteBackResult<R>> {
  const open = await outbox.open()
  const statements = writeStatements(open)
  if (statements === null) return { kind: 'done', rows: (await read()).map((status) => ({ status, kind: 'written' })) }
  const writing = { sessions: open.db, table: open.shape.qualified, writing: statements }
  const attempt = await tryToTell(writing, read)
  if (attempt.kind !== 'failed') return attempt
  if (!isStatementError(attempt.error)) throw attempt.error
  // What fails without any row is no row's fault.
  const empty = await tryToTell(writing, async () => [])
  if (empty.kind === 'failed') throw empty.error
  if (!isTransient(attempt.error) || isLock(attempt.error) || isStatementCanceled(attempt.error))
    return refusal(attempt)
  // Triggers raise whatever code they like; what was no row's fault has passed by now, as a change of servers has.
  const again = await tryToTell(writing, read)
  if (again.kind !== 'failed') return again
  if (!isStatementError(again.error)) throw again.error
  return refusal(again)
}

function refusal<R extends RowStatus>({ statuses, error }: Failed<R>): WriteBackResult<R> {
  if (isStatementCanceled(error)) return { kind: 'slow', statuses }
  const message = boundText(error.message, 200)
  return { kind: 'refused', statuses, code: String(codeOf(error)), message, why: isLock(error) ? 'lock' : 'row' }
}

/** A lock that was not to be had in time, or a deadlock: within a trigger, most likely. */
const isLock = (error: Error) => /^(55P03|40P01)$/.test(String(codeOf(error)))

/** The most time for one batch. A statement that takes longer is endStates by us, and waits for nobody's lock. */
export const writeBackMaxMs = 10_000

interface Failed<R extends RowStatus> {
  kind: 'failed'
  statuses: R[]
  error: Error
}
type Attempt<R extends RowStatus> = Exclude<WriteBackResult<R>, { kind: 'refused' }> | Failed<R>

async function tryToTell<R extends RowStatus>(
  { sessions, table, writing }: Writing,
  read: () => Promise<R[]>,
): Promise<Attempt<R>> {
  await using transaction = await begin(sessions)
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

async function withLock(db: Database, table: string): Promise<boolean> {
  const { rows } = await db.query<{ turn: boolean }>(
    'select pg_try_advisory_xact_lock(7163, $1::regclass::oid::int) as turn',
    [table],
  )
  return rows[0]?.turn ?? false
}

async function write<R extends RowStatus>(
  db: Database,
  writing: WriteStatements,
  all: R[],
): Promise<WrittenBackRow<R>[]> {
  const statuses = all.filter(({ state }) => writing.states.has(state))
  const { rows } = await db.query<{ outboxId: string; held: boolean; written: boolean }>(writing.report, [
    JSON.stringify(statuses),
  ])
  const byId = new Map(rows.map((row) => [row.outboxId, row]))
  const unheld = await findHolders(
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

type Outcome =
  | { kind: 'written' }
  | { kind: 'gone' }
  | { kind: 'ineffective'; why: string }
  | { kind: 'locked'; holder: number | null }
  | { kind: 'in_hand' }
  | { kind: 'another' }
  | { kind: 'differs' }

const gone: Outcome = { kind: 'gone' }
const ignored: Outcome = { kind: 'ineffective', why: 'a BEFORE UPDATE trigger suppresses the update (it returns NULL)' }
const hidden: Outcome = {
  kind: 'ineffective',
  why: 'row-level security hides the row from updates: our user needs a policy for UPDATE',
}

/** Why rows could not be held: those that are not there are missing. */
async function findHolders(
  db: Database,
  writing: WriteStatements,
  statuses: readonly RowStatus[],
): Promise<Map<string, Outcome>> {
  if (statuses.length === 0) return new Map()
  const { rows } = await db.query<UnheldRow>(writing.unheld, [JSON.stringify(statuses)])
  return new Map(
    rows.map(({ outboxId, open, same, differs, secured, holder, isOurs }) => [
      outboxId,
      !same
        ? { kind: differs ? 'differs' : 'another' }
        : !open
          ? { kind: 'written' }
          : holder === null && secured
            ? hidden
            : isOurs
              ? { kind: 'in_hand' }
              : { kind: 'locked', holder },
    ]),
  )
}

interface UnheldRow {
  outboxId: string
  open: boolean
  same: boolean
  differs: boolean
  secured: boolean
  holder: number | null
  isOurs: boolean | null
}
