import type { FastifyInstance } from 'fastify'
import type pg from 'pg'
import { z } from 'zod'
import { readJson, readQuery, sendRefusal } from '../control/controlAnswers.ts'
import { ledgerRows } from '../control/listRows.ts'
import { readExactNumbers } from '../endpoints/parseExactly.ts'
import type { Parts } from '../exchange.ts'
import { type Difference, findDifferences, type LedgerRequest } from './requestMatch.ts'
import { type Expectation, expectationSchema } from './scenarioSchema.ts'

interface NearMiss {
  sequence: number
  method: string
  path: string
  status: number | 'dropped'
  differences: Difference[]
}

export interface Verdict {
  name: string
  passed: boolean
  /** `exactly 1`, `at least 1`, `2 to 3`. */
  expected: string
  found: number
  sequences: number[]
  nearest: NearMiss[]
}

const shownMax = 10
const nearestMax = 3

class Tally {
  readonly #expectation: Expectation
  readonly #number: number
  #found = 0
  readonly #sequences: number[] = []
  #nearest: NearMiss[] = []

  /** @param number from 1, for an expectation without a name */
  constructor(expectation: Expectation, number: number) {
    this.#expectation = expectation
    this.#number = number
  }

  see(request: LedgerRequest): void {
    const found = findDifferences(this.#expectation.requests, request)
    if (found.length > 0) {
      this.#seeOther(request, found)
      return
    }
    this.#found += 1
    if (this.#sequences.length < shownMax) this.#sequences.push(request.sequence)
  }

  verdict(): Verdict {
    const { least, most } = bounds(this.#expectation)
    const found = this.#found
    return {
      name: this.#expectation.name ?? `expectation ${this.#number}`,
      passed: found >= least && found <= most,
      expected: words(least, most),
      found,
      sequences: this.#sequences,
      nearest: found < least ? this.#nearest : [],
    }
  }

  /** A request is near if at least one criterion matches. */
  #seeOther({ sequence, method, path, status }: LedgerRequest, found: Difference[]): void {
    if (found.length >= criteria(this.#expectation)) return
    const miss = { sequence, method, path, status: status ?? ('dropped' as const), differences: found }
    this.#nearest = [...this.#nearest, miss]
      .sort((a, b) => a.differences.length - b.differences.length || a.sequence - b.sequence)
      .slice(0, nearestMax)
  }
}

function criteria({ requests: { body = {}, ...others } }: Expectation): number {
  return Object.keys(body).length + Object.values(others).filter((each) => each !== undefined).length
}

function bounds({ count, atLeast, atMost }: Expectation): { least: number; most: number } {
  if (count !== undefined) return { least: count, most: count }
  return { least: atLeast ?? (atMost === undefined ? 1 : 0), most: atMost ?? Number.POSITIVE_INFINITY }
}

function words(least: number, most: number): string {
  if (most === 0) return 'none'
  if (least === most) return `exactly ${least}`
  if (most === Number.POSITIVE_INFINITY) return `at least ${least}`
  return least === 0 ? `at most ${most}` : `${least} to ${most}`
}

const bodySchema = z.strictObject({ expectations: z.array(expectationSchema).min(1) })

interface Asked {
  parts: Parts
  pool: pg.Pool
  expectations: readonly Expectation[]
}

/** Answers 422 if a request differs, so that `curl --fail-with-body` fails. */
export function expectationRoutes(app: FastifyInstance, { parts, pool, expectations }: Asked): void {
  app.post('/verify', async ({ query, body }, reply) => {
    const { client } = readQuery(parts.clients, query, {})
    const asked = body ? bodySchema.parse(readExpectations(body)).expectations : expectations
    if (asked.length === 0) {
      return sendRefusal(reply, 400, 'There is nothing to verify: neither the request nor a scenario has expectations.')
    }
    await parts.journal.idle()
    const verdicts = await verify(pool, asked, client)
    const passed = verdicts.every((verdict) => verdict.passed)
    return reply.code(passed ? 200 : 422).send({ passed, expectations: verdicts })
  })
}

function readExpectations(body: unknown): unknown {
  readJson(body)
  return readExactNumbers(String(body))
}

async function verify(pool: pg.Pool, expectations: readonly Expectation[], client: string | null): Promise<Verdict[]> {
  const tallies = expectations.map((expectation, index) => new Tally(expectation, index + 1))
  for await (const rows of ledgerRows(pool, { ...everything, client })) {
    for (const text of rows) {
      const row: LedgerRow = JSON.parse(text)
      const request = { ...row, applied: (row.transactionId ?? row.orderId) !== null }
      for (const tally of tallies) tally.see(request)
    }
  }
  return tallies.map((tally) => tally.verdict())
}

const everything = { since: 0, limit: Number.MAX_SAFE_INTEGER, endpoint: null, idempotencyKey: null }

interface LedgerRow extends Omit<LedgerRequest, 'applied'> {
  transactionId: string | null
  orderId: string | null
}
