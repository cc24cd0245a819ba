import type { FastifyInstance } from 'fastify'
import type pg from 'pg'
import { z } from 'zod'
import { readJson, readQuery, refuse } from '../control/controlAnswers.ts'
import { ledgerRows } from '../control/shownRows.ts'
import type { Parts } from '../exchange.ts'
import { readExactNumbers } from './exactNumbers.ts'
import { Tally, type Verdict } from './expectations.ts'
import type { LedgerRequest } from './requestMatch.ts'
import { type Expectation, expectationSchema } from './scenarioSchema.ts'

const bodySchema = z.strictObject({ expectations: z.array(expectationSchema).min(1) })

interface Asked {
  parts: Parts
  pool: pg.Pool
  /** Those of the scenario, asked where the request brings none. */
  expectations: readonly Expectation[]
}

/**
 * POST /_sandbox/verify: whether the requests so far, of all or of one client, were as expected.
 *
 * 200 where they were and 422 where not, so that `curl --fail-with-body` fails a script; the body is the same.
 */
export function verifyRoutes(app: FastifyInstance, { parts, pool, expectations }: Asked): void {
  app.post('/verify', async ({ query, body }, reply) => {
    const { client } = readQuery(parts.clients, query, {})
    const asked = body ? bodySchema.parse(readExpectations(body)).expectations : expectations
    if (asked.length === 0) {
      return refuse(reply, 400, 'There is nothing to verify: the request has no expectations, nor has a scenario.')
    }
    await parts.journal.idle()
    const verdicts = await verify(pool, asked, client)
    const passed = verdicts.every((verdict) => verdict.passed)
    return reply.code(passed ? 200 : 422).send({ passed, expectations: verdicts })
  })
}

/** @throws what readJson() throws */
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
