import { readProblemSubjects, replaceProblems, shortenProblemSubject } from '../ledger/problems.ts'
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

/** A lock writes its transaction's number into xmax, where the number stays after the lock ends. */
function readMarked(outbox: Outbox): Promise<string[]> {
  return outbox.queryTable(async ({ db, locksRows, shape, rows: { from, uncaptured, idText, order } }) => {
    if (!locksRows) return []
    const { rows } = await db.query<{ outboxId: string }>(
      `select "outboxId" from (
         select ${idText} as "outboxId", ${shape.hasSystemColumns ? `o.xmax::text <> '0'` : 'true'} as marked
         from ${from} where ${uncaptured} order by ${order} limit ${lookedAtMax}
       ) first where marked limit ${markedMax}`,
    )
    return rows.map(({ outboxId }) => outboxId)
  })
}

/** Selects the session that locks a row. If several sessions lock the row, xmax names no transaction. */
const lockHolderSql = `(select pid from pg_locks where locktype = 'transactionid' and granted and transactionid = o.xmax limit 1)`

/** Tries to lock the rows, because a foreign key that refers to a row also sets xmax, but does not stop capture. */
function findLocked(outbox: Outbox, outboxIds: readonly string[]): Promise<LockedRow[]> {
  return outbox.queryTable(async ({ db, shape, rows: { from, uncaptured, id, idType, idText } }) => {
    const these = `from ${from} where ${uncaptured} and ${id} = any($1::${idType}[])`
    const { rows } = await db.query<LockedRow>(
      `with outboxd_free as materialized (select ${id} as id ${these} for no key update of o skip locked)
       select waiting."outboxId", waiting.pid, a.application_name as application, a.state from (
         select ${idText} as "outboxId", ${shape.hasSystemColumns ? lockHolderSql : 'null::int'} as pid ${these}
           and ${id} <> all(array(select id from outboxd_free))
       ) waiting left join pg_stat_activity a on a.pid = waiting.pid`,
      [outboxIds],
    )
    return rows.filter(({ application }) => !application?.startsWith('outboxd'))
  })
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

const problemOf = (row: LockedRow) => ({
  subject: row.outboxId,
  detail: `locked for longer than ${longLockMs / 1000} s ${heldBy(row)}; the daemon captures the row when the lock is released, and later rows of its key wait until then`,
  retryInMs: null,
})

function heldBy({ pid, application, state }: LockedRow): string {
  if (pid === null) return 'by several sessions, or by one that our user may not see'
  const known = [application, state].filter((part) => part !== null && part !== '')
  return `by pid ${pid}${known.length > 0 ? ` (${known.join(', ')})` : ''}`
}
