import { clearProblems, raiseProblems } from '../ledger/problems.ts'
import type { Database } from '../postgres/database.ts'
import { errorCodeOf } from '../postgres/sqlState.ts'
import type { OpenTable } from './openTable.ts'
import { isMarkedOnCapture } from './outboxTable.ts'

/** Rows whose filter or stamp raises an error, so that every statement that reads them fails. */
export interface FailingRowTracker {
  /** Statements leave out the filter and the stamp for these rows. */
  ids(): readonly string[]
  find(statements: FailingRowStatements, before: readonly string[]): Promise<boolean>
  /** Checks once a minute whether these rows still fail. */
  retest(statements: FailingRowStatements): Promise<void>
}

export interface FailingRowStatements {
  readonly db: Database
  /** The ids of waiting rows, without the filter. $1 is the id before the first, or null; $2 is the number of ids. */
  readonly candidates: string
  /** Evaluates the filter and the stamp for the ids in $1. */
  readonly ask: string
}

/** If more rows fail, the filter is the cause, not a row. */
const unfilterableMax = 100
const pageRows = 2_000
const searchMaxMs = 5_000
const retestMs = 60_000

export function createFailingRowTracker(ledger: Database): FailingRowTracker {
  let known: readonly string[] = []
  let testedAt = 0
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

  async function raise(): Promise<void> {
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
    await raise()
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
      await raise()
      await clearProblems(ledger, 'row_skipped', over)
    },
  }
}

const detail =
  'the filter in outbox.yaml, or a column of the payload, raises an error for this row, so the daemon cannot tell whether to send it. Rows of its key wait behind it. Fix the row or the filter'

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

/** True for an invalid value, or an error that a function raises. */
export const canBeCausedByRow = (error: unknown): boolean => /^(22|P0)/.test(String(errorCodeOf(error)))

/**
 * Returns the rows for which a query fails: tries all together, then halves, down to single rows.
 *
 * @throws any error that a row cannot cause
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
