import { readProblemSubjects, replaceProblems, shortenProblemSubject } from '../ledger/problems.ts'
import { beginTransaction, type DatabasePool } from '../postgres/database.ts'
import type { OpenTable } from './openTable.ts'
import type { Outbox } from './outbox.ts'

interface LockedRow {
  outboxId: string
  /** Null if several sessions hold it, or the table is a view. */
  holder: LockHolder | null
}

/** Leaves out the session's query, because the query may contain the client's data. */
interface LockHolder {
  pid: number
  application: string | null
  state: string | null
}

/** Enough, because rows are captured in order, so that locked rows soon stand first. */
const lookedAtMax = 2_000
const markedMax = 100

/** Selects the session that locks a row. If several sessions lock the row, xmax names no transaction. */
const lockHolderSql = `(select pid from pg_locks where locktype = 'transactionid' and granted and transactionid = o.xmax limit 1)`

export function lockedRowStatements({ rows, shape: { hasSystemColumns } }: OpenTable) {
  const { from, uncaptured, id, idType, idText, order } = rows
  // A lock writes its transaction's number into xmax, where the number stays after the lock ends.
  const marked = hasSystemColumns ? `o.xmax::text <> '0'` : 'true'
  const these = `from ${from} where ${uncaptured} and ${id} = any($1::${idType}[])`
  return {
    marked: `select "outboxId" from (
        select ${idText} as "outboxId", ${marked} as marked from ${from} where ${uncaptured} order by ${order} limit ${lookedAtMax}
      ) first where marked limit ${markedMax}`,
    free: `select ${idText} as "outboxId" ${these} for no key update of o skip locked`,
    /** The waiting rows of the ids in $1, with the session that locks each row. */
    held: `select waiting."outboxId", waiting.pid, a.application_name as application, a.state from (
        select ${idText} as "outboxId", ${hasSystemColumns ? lockHolderSql : 'null::int'} as pid ${these}
      ) waiting left join pg_stat_activity a on a.pid = waiting.pid`,
  }
}

function readMarked(outbox: Outbox): Promise<string[]> {
  return outbox.queryTable(async (table) => {
    if (!table.locksRows) return []
    const { rows } = await table.db.query<{ outboxId: string }>(lockedRowStatements(table).marked)
    return rows.map(({ outboxId }) => outboxId)
  })
}

/** Tries to lock the rows, because a foreign key that refers to a row also sets xmax, but does not stop capture. */
function findLocked(outbox: Outbox, outboxIds: readonly string[]): Promise<LockedRow[]> {
  return outbox.queryTable(async (table) => {
    const rows = await readHeld(table, outboxIds)
    return rows.flatMap(({ outboxId, pid, application, state }) =>
      isOurs(application) ? [] : [{ outboxId, holder: pid === null ? null : { pid, application, state } }],
    )
  })
}

const isOurs = (application: string | null) => application?.startsWith('outboxd') ?? false

type HeldRow = Omit<LockHolder, 'pid'> & { outboxId: string; pid: number | null }

async function readHeld(table: OpenTable, outboxIds: readonly string[]): Promise<HeldRow[]> {
  const { free, held } = lockedRowStatements(table)
  const freeIds = await readFree(table.db, free, outboxIds)
  const others = outboxIds.filter((id) => !freeIds.has(id))
  if (others.length === 0) return []
  const { rows } = await table.db.query<HeldRow>(held, [others])
  return rows
}

async function readFree(db: DatabasePool, free: string, outboxIds: readonly string[]): Promise<ReadonlySet<string>> {
  await using transaction = await beginTransaction(db)
  const { rows } = await transaction.db.query<{ outboxId: string }>(free, [outboxIds])
  return new Set(rows.map(({ outboxId }) => outboxId))
}

/** A longer lock is a problem, because saving a form takes a moment. */
const longLockMs = 60_000

/** Watches for rows that a session of the ERP keeps locked, because capture leaves them out silently. */
export class LockedRowWatch {
  readonly #outbox: Outbox
  readonly #elapsedMs: () => number
  #seenSince: ReadonlyMap<string, number> = new Map()

  constructor(outbox: Outbox, elapsedMs: () => number) {
    this.#outbox = outbox
    this.#elapsedMs = elapsedMs
  }

  /** Raises a problem for each row that stays locked for a minute, and clears it when the row is free. */
  async runOnce(): Promise<void> {
    const { ledger } = this.#outbox
    const marked = await readMarked(this.#outbox)
    const nowMs = this.#elapsedMs()
    this.#seenSince = new Map(marked.map((id) => [id, this.#seenSince.get(id) ?? nowMs]))
    const standing = await readProblemSubjects(ledger, 'row_locked')
    const suspects = [...this.#seenSince].flatMap(([id, sinceMs]) =>
      standing.has(shortenProblemSubject(id)) || nowMs - sinceMs >= longLockMs ? [id] : [],
    )
    if (suspects.length === 0 && standing.size === 0) return
    const locked = suspects.length === 0 ? [] : await findLocked(this.#outbox, suspects)
    await replaceProblems(ledger, 'row_locked', locked.map(problemOf))
  }
}

const problemOf = ({ outboxId, holder }: LockedRow) => ({
  subject: outboxId,
  detail: `locked for longer than ${longLockMs / 1000} s ${heldBy(holder)}; the daemon captures the row when the lock is released, and later rows of its key wait until then`,
  retryInMs: null,
})

function heldBy(holder: LockHolder | null): string {
  if (holder === null) return 'by several sessions, or by one that our user may not see'
  const { pid, application, state } = holder
  const known = [application, state].filter((part) => part !== null && part !== '')
  return `by pid ${pid}${known.length > 0 ? ` (${known.join(', ')})` : ''}`
}
