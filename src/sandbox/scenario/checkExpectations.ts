import type pg from 'pg'
import { readRequestLog } from '../control/listRows.ts'
import { type Difference, findDifferences, type LoggedRequest } from './requestMatch.ts'
import type { Expectation } from './scenarioSchema.ts'

type NearMiss = Pick<LoggedRequest, 'sequence' | 'method' | 'path'> & {
  status: number | 'dropped'
  differences: Difference[]
}

export interface ExpectationVerdict {
  name: string
  passed: boolean
  /** `exactly 1`, `at least 1`, `2 to 3`. */
  expected: string
  found: number
  /** Of the first requests that match. */
  sequences: number[]
  /** If too few requests match: the requests that differ least and meet at least one criterion. */
  nearest: NearMiss[]
}

type Tally = Pick<ExpectationVerdict, 'found' | 'sequences' | 'nearest'> & { expectation: Expectation }

const shownMax = 10
const nearestMax = 3
const pageRows = 1000

/** Searches the whole request log. */
export async function checkExpectations(
  pool: pg.Pool,
  expectations: readonly Expectation[],
  client: string | null,
): Promise<ExpectationVerdict[]> {
  const tallies = expectations.map((expectation): Tally => ({ expectation, found: 0, sequences: [], nearest: [] }))
  const page = { client, limit: pageRows, isNewest: false, endpoint: null, idempotencyKey: null }
  for (let since = 0; ; ) {
    const { rows } = await readRequestLog(pool, { ...page, since })
    for (const text of rows) {
      const row: Omit<LoggedRequest, 'applied'> & { transactionId: unknown; orderId: unknown } = JSON.parse(text)
      since = row.sequence
      for (const tally of tallies) tallyRequest(tally, { ...row, applied: (row.transactionId ?? row.orderId) !== null })
    }
    if (rows.length === 0) return tallies.map(verdictOf)
  }
}

function tallyRequest(tally: Tally, request: LoggedRequest): void {
  const { sequence, method, path, status } = request
  const differences = findDifferences(tally.expectation.requests, request)
  if (differences.length === 0) {
    tally.found += 1
    if (tally.sequences.length < shownMax) tally.sequences.push(sequence)
  } else if (differences.length < countCriteria(tally.expectation)) {
    tally.nearest.push({ sequence, method, path, status: status ?? 'dropped', differences })
    tally.nearest.sort((a, b) => a.differences.length - b.differences.length)
    tally.nearest.length = Math.min(tally.nearest.length, nearestMax)
  }
}

function countCriteria({ requests: { body = {}, ...others } }: Expectation): number {
  return Object.keys(body).length + Object.values(others).filter((each) => each !== undefined).length
}

function verdictOf({ expectation, found, sequences, nearest }: Tally, index: number): ExpectationVerdict {
  const { name = `expectation ${index + 1}`, count, atLeast, atMost } = expectation
  const least = count ?? atLeast ?? (atMost === undefined ? 1 : 0)
  const most = count ?? atMost ?? Number.POSITIVE_INFINITY
  const passed = found >= least && found <= most
  return { name, passed, expected: describeRange(least, most), found, sequences, nearest: found < least ? nearest : [] }
}

function describeRange(least: number, most: number): string {
  if (most === 0) return 'none'
  if (least === most) return `exactly ${least}`
  if (most === Number.POSITIVE_INFINITY) return `at least ${least}`
  return least === 0 ? `at most ${most}` : `${least} to ${most}`
}
