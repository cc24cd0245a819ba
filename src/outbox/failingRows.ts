import { clearProblems, raiseProblems } from '../ledger/problems.ts'
import type { Database } from '../postgres/database.ts'
import { errorCodeOf } from '../postgres/sqlState.ts'
import type { OpenTable } from './openTable.ts'

export type FailingRowTracker = ReturnType<typeof createFailingRowTracker>
type FailingRowStatements = ReturnType<typeof failingRowStatements>

/** If more rows fail, the filter is the cause, not a row. */
const unfilterableMax = 100
const pageRows = 2_000
const searchMaxMs = 5_000
const retestMs = 60_000

/** Tracks rows whose filter raises an error, because every statement that reads such a row fails. */
export function createFailingRowTracker(ledger: Database) {
  let known: readonly string[] = []
  let testedAt = 0
  let after: string | null = null
  let learning: Promise<void> | null = null

  const fails = ({ db, ask }: FailingRowStatements, ids: readonly string[]) =>
    findFailingIds(ids, (those) => db.query(ask, [those]), unfilterableMax)

  async function search(statements: FailingRowStatements): Promise<string[]> {
    const until = performance.now() + searchMaxMs
    const found: string[] = []
    while (found.length <= unfilterableMax && performance.now() < until) {
      const { rows } = await statements.db.query<{ id: string }>(statements.candidates, [after, pageRows])
      const ids = rows.map(({ id }) => id)
      found.push(...(await fails(statements, ids)))
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
    /** Statements leave out the filter for these rows. */
    ids: () => known,
    /** @returns true if the known ids differ from those in `before` */
    async find(statements: FailingRowStatements, before: readonly string[]): Promise<boolean> {
      learning ??= learn(statements).finally(() => {
        learning = null
      })
      await learning
      return known !== before
    },
    /** Checks once a minute whether the failing rows still fail. */
    async retest(statements: FailingRowStatements): Promise<void> {
      if (known.length === 0 || performance.now() - testedAt < retestMs) return
      const standing = await fails(statements, known)
      const over = known.filter((id) => !standing.includes(id))
      known = standing
      await raise()
      await clearProblems(ledger, 'row_skipped', over)
    },
  }
}

const detail =
  'the filter in outbox.yaml raises an error for this row, so the daemon cannot tell whether to send it. Later rows of its key wait, too. Fix the row or the filter'

export function failingRowStatements({ db, table, rowsIncludingFailing }: OpenTable) {
  const { from, mayWait, id, idType, idText } = rowsIncludingFailing
  return {
    db,
    /**
     * Selects the ids of waiting rows, without the filter. $1 is the id before the first, or null; $2 is the most ids.
     */
    candidates: `select ${idText} as id from ${from} where ${mayWait} and ($1::${idType} is null or ${id} > $1::${idType})
      order by ${id} limit $2`,
    /** Evaluates the filter for the ids in $1. */
    ask: `select count(case when (${table.filter ?? 'true'}\n) then 1 end) from ${from} where ${id} = any($1::${idType}[])`,
  }
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

/** True for an invalid value, or an error that a function raises. */
export const canBeCausedByRow = (error: unknown): boolean => /^(22|P0)/.test(String(errorCodeOf(error)))

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
