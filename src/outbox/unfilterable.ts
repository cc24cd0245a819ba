import { clearProblems, raiseProblems } from '../ledger/problems.ts'
import type { Database } from '../postgres/database.ts'
import { failingRows } from './failingRows.ts'

/** Rows for which the description's filter, or their stamp, raises an error, so that every statement that meets them fails. */
export interface Unfilterable {
  /** Those that are known; neither the filter nor the stamp is asked for them. */
  ids(): readonly string[]
  /**
   * Looks for them after a statement has failed; several at once look together.
   *
   * @param before those that the statement knew
   * @returns whether it would know more now
   */
  find(statements: FilterStatements, before: readonly string[]): Promise<boolean>
  /** Where it is time, looks whether they still are. */
  retest(statements: FilterStatements): Promise<void>
}

export interface FilterStatements {
  /** Ids of rows that wait, as far as the filter is not asked, after $1 (null: from the first), $2 of them, in the order of ids. */
  readonly candidates: string
  /** Asks the filter, and for the stamp where rows are found by it, about the rows of the ids in $1 alone. */
  readonly ask: string
}

/** More of them, and it is the filter that is wrong, not a row. */
const unfilterableMax = 100
const pageRows = 2_000
const searchMaxMs = 5_000
const retestMs = 60_000

export function createUnfilterable({ pool, ledger }: { pool: Database; ledger: Database }): Unfilterable {
  let known: readonly string[] = []
  let testedAt = 0
  /** Where a search that took too long goes on. */
  let after: string | null = null
  let learning: Promise<void> | null = null

  const fails = (statements: FilterStatements, ids: readonly string[], most: number) =>
    failingRows(ids, (those) => pool.query(statements.ask, [those]), most)

  async function search(statements: FilterStatements): Promise<string[]> {
    const until = performance.now() + searchMaxMs
    const found: string[] = []
    while (found.length <= unfilterableMax && performance.now() < until) {
      const { rows } = await pool.query<{ id: string }>(statements.candidates, [after, pageRows])
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

  async function learn(statements: FilterStatements): Promise<void> {
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
