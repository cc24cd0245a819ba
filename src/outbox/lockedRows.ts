import { replaceProblems, shortenProblemSubject } from '../ledger/problems.ts'
import type { Outbox } from './outbox.ts'

/** A row that another session has locked. Leaves out the session's query, because it may contain the client's data. */
interface LockedRow {
  outboxId: string
  /** Null if several sessions hold the row, or the table is a view. */
  pid: number | null
  application: string | null
  state: string | null
}

/** Enough, because rows are captured in order, so that locked rows soon stand first. */
const lookedAtMax = 2_000
const markedMax = 100

/** Selects the session that locks a row. If several sessions lock the row, xmax names no transaction. */
const lockHolderSql = `(select pid from pg_locks where locktype = 'transactionid' and granted and transactionid = o.xmax limit 1)`

/**
 * A lock writes its transaction's number into xmax, where the number stays after the lock ends. So this tries to lock
 * the marked rows. A foreign key that refers to a row also sets xmax, but does not stop capture.
 */
function findLocked(outbox: Outbox): Promise<LockedRow[]> {
  return outbox.queryTable(async ({ db, locksRows, shape, rows: { from, uncaptured, id, idText, order } }) => {
    if (!locksRows) return []
    const these = `from ${from} where ${uncaptured} and ${id} = any(array(select id from outboxd_marked))`
    const { rows } = await db.query<LockedRow>(
      `with outboxd_first as materialized (
         select ${id} as id, ${shape.hasSystemColumns ? `o.xmax::text <> '0'` : 'true'} as marked
         from ${from} where ${uncaptured} order by ${order} limit ${lookedAtMax}
       ), outboxd_marked as materialized (select id from outboxd_first where marked limit ${markedMax}
       ), outboxd_free as materialized (select ${id} as id ${these} for no key update of o skip locked)
       select waiting."outboxId", waiting.pid, a.application_name as application, a.state from (
         select ${idText} as "outboxId", ${shape.hasSystemColumns ? lockHolderSql : 'null::int'} as pid ${these}
           and ${id} <> all(array(select id from outboxd_free))
       ) waiting left join pg_stat_activity a on a.pid = waiting.pid`,
    )
    return rows.filter(({ application }) => !application?.startsWith('outboxd'))
  })
}

/** Watches for rows that a session of the ERP keeps locked, because capture leaves them out silently. */
export class LockedRowWatch {
  readonly #outbox: Outbox
  /** The holders of the rows that were locked at the last look. */
  #holders: ReadonlyMap<string, number | null> = new Map()

  constructor(outbox: Outbox) {
    this.#outbox = outbox
  }

  /**
   * Looks each half minute. Raises a problem for each row that the same session had locked at the last look, because saving
   * a form takes a moment. One that another daemon raised stands while the row is locked.
   */
  async runOnce(): Promise<void> {
    const locked = await findLocked(this.#outbox)
    const known: ReadonlySet<string> = locked.length === 0 ? new Set() : await this.#readKnown()
    const standing = locked.filter(
      ({ outboxId, pid }) => known.has(shortenProblemSubject(outboxId)) || this.#holders.get(outboxId) === pid,
    )
    this.#holders = new Map(locked.map(({ outboxId, pid }) => [outboxId, pid]))
    await replaceProblems(this.#outbox.ledger, 'row_locked', standing.map(problemOf))
  }

  async #readKnown(): Promise<ReadonlySet<string>> {
    const { rows } = await this.#outbox.ledger.query<{ subject: string }>(
      "select subject from outboxd.problem where kind = 'row_locked'",
    )
    return new Set(rows.map(({ subject }) => subject))
  }
}

const problemOf = (row: LockedRow) => ({
  subject: row.outboxId,
  detail: `locked for half a minute or longer ${heldBy(row)}; the daemon captures the row when the lock is released, and later rows of its key wait until then`,
  retryInMs: null,
})

function heldBy({ pid, application, state }: LockedRow): string {
  if (pid === null) return 'by several sessions, or by one that our user may not see'
  const known = [application, state].filter((part) => part !== null && part !== '')
  return `by pid ${pid}${known.length > 0 ? ` (${known.join(', ')})` : ''}`
}
