import { clearProblems, raiseProblems } from '../ledger/problems.ts'
import type { Database } from '../postgres/database.ts'
import { errorCodeOf } from '../postgres/sqlState.ts'
import type { OpenTable } from './openTable.ts'

/** If more rows fail, the filter is the cause, not a row. */
const unfilterableMax = 100
const pageRows = 2_000
const searchMaxMs = 5_000
const retestMs = 5_000

/** Rows whose filter raises an error. Every statement that reads such a row fails. */
export class FailingRows {
  readonly #ledger: Database
  #known: readonly string[] = []
  #testedAt = 0
  /** The id at which a search stopped for lack of time, and the next goes on. */
  #after: string | null = null

  constructor(ledger: Database) {
    this.#ledger = ledger
  }

  /** Statements leave out the filter for these rows. */
  ids(): readonly string[] {
    return this.#known
  }

  /** Searches the waiting rows. @returns true if the known ids differ from those in `before` */
  async find(table: OpenTable, before: readonly string[]): Promise<boolean> {
    const found = new Set(await this.#search(table))
    const added = [...found.difference(new Set(this.#known))]
    if (added.length > 0 && this.#known.length + added.length <= unfilterableMax) {
      this.#known = [...this.#known, ...added]
      await this.#raise(added)
    }
    return this.#known !== before
  }

  /** Checks every `retestMs` whether the failing rows still fail. */
  async retest(table: OpenTable): Promise<void> {
    const known = this.#known
    if (known.length === 0 || performance.now() - this.#testedAt < retestMs) return
    this.#testedAt = performance.now()
    const standing = await findFailing(table, known)
    const over = known.filter((id) => !standing.includes(id))
    await this.#raise(standing)
    if (over.length === 0) return
    this.#known = standing
    await clearProblems(this.#ledger, 'row_skipped', over)
  }

  async #search(table: OpenTable): Promise<string[]> {
    const { from, mayWait, id, idType, idText } = table.rows
    const until = performance.now() + searchMaxMs
    const found: string[] = []
    while (found.length <= unfilterableMax && performance.now() < until) {
      const { rows } = await table.db.query<{ id: string }>(
        `select ${idText} as id from ${from} where ${mayWait} and ($1::${idType} is null or ${id} > $1::${idType})
         order by ${id} limit $2`,
        [this.#after, pageRows],
      )
      const ids = rows.map((row) => row.id)
      found.push(...(await findFailing(table, ids)))
      this.#after = ids.length < pageRows ? null : (ids.at(-1) ?? null)
      if (this.#after === null) break
    }
    if (found.length > unfilterableMax) this.#after = null
    return found
  }

  #raise(ids: readonly string[]): Promise<void> {
    return raiseProblems(
      this.#ledger,
      ids.map((subject) => ({ kind: 'row_skipped', subject, detail, retryInMs: null })),
    )
  }
}

const detail =
  'the filter in outbox.yaml raises an error for this row, so the daemon cannot tell whether to send it. Later rows of its key wait, too. Fix the row or the filter'

/** Evaluates the filter for these ids. @returns those of waiting rows for which the filter fails */
function findFailing(
  { db, table, rows: { from, mayWait, id, idType } }: OpenTable,
  ids: readonly string[],
): Promise<string[]> {
  const ask = `select count(case when (${table.filter ?? 'true'}\n) then 1 end) from ${from}
    where ${mayWait} and ${id} = any($1::${idType}[])`
  return findFailingIds(ids, (those) => db.query(ask, [those]), unfilterableMax)
}

interface FailingParts<E> {
  /** The single ids that fail, or larger parts if the search stopped. */
  readonly failed: readonly { ids: readonly string[]; error: E }[]
  readonly anyPassed: boolean
}

/**
 * Finds the ids for which a query fails by trying halves, then their halves, down to single ids.
 * @param tryPart returns why a part fails; null if it succeeds
 */
export async function findFailingParts<E>(
  ids: readonly string[],
  errorOfAll: E,
  tryPart: (ids: readonly string[]) => Promise<E | null>,
  isHopeless: (failedParts: number, anyPassed: boolean) => boolean,
): Promise<FailingParts<E>> {
  let failed: { ids: readonly string[]; error: E }[] = [{ ids, error: errorOfAll }]
  let anyPassed = false
  while (failed.some((part) => part.ids.length > 1) && !isHopeless(failed.length, anyPassed)) {
    const smaller: typeof failed = []
    for (const part of failed) {
      const half = part.ids.length >> 1
      if (half === 0) smaller.push(part)
      else
        for (const those of [part.ids.slice(0, half), part.ids.slice(half)]) {
          const again = await tryPart(those)
          if (again === null) anyPassed = true
          else smaller.push({ ids: those, error: again })
        }
    }
    failed = smaller
  }
  return { failed, anyPassed }
}

/** Reads rows by the ids in $1, but for ids for which the statement fails. */
export async function readRowsThatDoNotFail<Row extends object>(
  db: Database,
  sql: string,
  ids: readonly string[],
): Promise<Row[]> {
  const rows: Row[] = []
  await findFailingIds(ids, async (part) => {
    rows.push(...(await db.query<Row>(sql, [part])).rows)
  })
  return rows
}

/** True for an invalid value, one that a domain refuses, or an error that a function raises. */
export const canBeCausedByRow = (error: unknown): boolean => /^(22|23|P0)/.test(String(errorCodeOf(error)))

/**
 * @param failedPartsMax if more parts fail, stops the search and returns all their ids
 * @throws any error that a row cannot cause
 */
export async function findFailingIds(
  ids: readonly string[],
  runForIds: (ids: readonly string[]) => Promise<unknown>,
  failedPartsMax = Number.POSITIVE_INFINITY,
): Promise<string[]> {
  const tryPart = (those: readonly string[]): Promise<unknown> =>
    runForIds(those).then(
      () => null,
      (error: unknown) => {
        if (!canBeCausedByRow(error)) throw error
        return error
      },
    )
  const error = ids.length === 0 ? null : await tryPart(ids)
  if (error === null) return []
  const { failed } = await findFailingParts(ids, error, tryPart, (parts) => parts > failedPartsMax)
  return failed.flatMap((part) => part.ids)
}
