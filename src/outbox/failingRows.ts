import { clearProblems, raiseProblems } from '../ledger/problems.ts'
import type { Database } from '../postgres/database.ts'
import { codeOf } from '../postgres/sqlState.ts'
import type { OpenTable } from './openTable.ts'
import { isMarkedOnCapture } from './outboxTable.ts'

/** Rows for which the description's filter, or their stamp, raises an error, so that every statement that meets them fails. */
export interface FailingRows {
  /** Those that are known; neither the filter nor the stamp is asked for them. */
  ids(): readonly string[]
  /**
   * Looks for them after a statement has failed; several at once look together.
   *
   * @param before those that the statement knew
   * @returns whether it would know more now
   */
  find(statements: FailingRowStatements, before: readonly string[]): Promise<boolean>
  /** Where it is time, looks whether they still are. */
  retest(statements: FailingRowStatements): Promise<void>
}

export interface FailingRowStatements {
  readonly db: Database
  /** Ids of rows that wait, as far as the filter is not asked, after $1 (null: from the first), $2 of them, in the order of ids. */
  readonly candidates: string
  /** Asks the filter, and for the stamp if rows are found by it, about the rows of the ids in $1 alone. */
  readonly ask: string
}

/** More of them, and it is the filter that is wrong, not a row. */
const unfilterableMax = 100
const pageRows = 2_000
const searchMaxMs = 5_000
const retestMs = 60_000

export function createFailingRows(ledger: Database): FailingRows {
  let known: readonly string[] = []
  let testedAt = 0
  /** Where a search that took too long goes on. */
  let after: string | null = null
  let learning: Promise<void> | null = null

  const fails = (statements: FailingRowStatements, ids: readonly string[], most: number) =>
    isolateFailingRows(ids, (those) => statements.db.query(statements.ask, [those]), most)

  async function search(statements: FailingRowStatements): Promise<string[]> {
    const until = performance.now() + searchMaxMs
    const found: string[] = []
    while (found.length <= unfilterableMax && performance.now() < until) {
      const { rows } = await statements.db.query<{ id: string }>(statements.candidates, [after, pageRows])
      const ids = rows.map(({ id }) => id)
      found.push(...(await fails(statements, ids, unfilterableMax + 1)))
      after = ids.length < pageRows ? null : (ids.at(-1) ?? null)
      if (after === null) break
    }
    return found
  }

  async function tell(): Promise<void> {
    testedAt = performance.now()
    await raiseProblems(
      ledger,
      known.map((subject) => ({ kind: 'row_skipped', subject, detail, retryInMs: retestMs })),
    )
  }

  async function learn(statements: FailingRowStatements): Promise<void> {
    const all = new Set([...known, ...(await search(statements))])
    if (all.size === known.length || all.size > unfilterableMax) return
    known = [...all]
    await tell()
  }

  return {
    ids: () => known,
    async find(statements, before) {
      learning ??= learn(statements).finally(() => {
        learning = null
      })
      await learning
      return known !== before
    },
    async retest(statements) {
      if (known.length === 0 || performance.now() - testedAt < retestMs) return
      const standing = await fails(statements, known, unfilterableMax)
      const over = known.filter((id) => !standing.includes(id))
      known = standing
      await tell()
      await clearProblems(ledger, 'row_skipped', over)
    },
  }
}

const detail =
  'the filter of the description, or a column of its payload, raises an error for it, so that nobody knows whether it is ours, or new, and rows of its key behind it wait: mend the row, or the filter'

export function failingRowStatements({ db, table, ideal }: OpenTable): FailingRowStatements {
  const { from, mayWait, stamp, id, idType, idText } = ideal
  const asked = isMarkedOnCapture(table) ? '1' : stamp
  return {
    db,
    candidates: `select ${idText} as id from ${from} where ${mayWait} and ($1::${idType} is null or ${id} > $1::${idType})
      order by ${id} limit $2`,
    ask: `select count(case when (${table.filter ?? 'true'}\n) then ${asked} end) from ${from} where ${id} = any($1::${idType}[])`,
  }
}

/** An error that what a row holds may be the reason of: a value that is none of the type, a function that raises. */
export const canBeCausedByRow = (error: unknown): boolean => /^(22|P0)/.test(String(codeOf(error)))

/**
 * Those of these rows that a question fails for: all are asked about at once, then by halves, until each is alone.
 *
 * @param most so many are enough
 * @throws what no row can be to blame for
 */
export async function isolateFailingRows(
  ids: readonly string[],
  ask: (ids: readonly string[]) => Promise<unknown>,
  most = Number.POSITIVE_INFINITY,
): Promise<string[]> {
  if (ids.length === 0) return []
  try {
    await ask(ids)
    return []
  } catch (error) {
    if (!canBeCausedByRow(error)) throw error
    if (ids.length === 1) return [...ids]
  }
  const half = ids.length >> 1
  const first = await isolateFailingRows(ids.slice(0, half), ask, most)
  return first.length >= most
    ? first
    : [...first, ...(await isolateFailingRows(ids.slice(half), ask, most - first.length))]
}
