import { createHash } from 'node:crypto'
import type pg from 'pg'
import type { Endpoint } from '../endpoints/endpoints.ts'
import type { FaultAction } from '../faults/faults.ts'
import { findBodyDifferences, parseJsonOrForm } from './requestMatch.ts'
import type { RecordScript, ScriptStep } from './scenarioSchema.ts'

type Sent = { endpoint: Endpoint | 'other'; client: string; body: string }

export class ScriptRunner {
  readonly #pool: pg.Pool
  readonly #scripts: readonly RecordScript[]

  constructor(pool: pg.Pool, scripts: readonly RecordScript[]) {
    this.#pool = pool
    this.#scripts = scripts
  }

  async findFaultAndCount(request: Sent): Promise<FaultAction | undefined> {
    const found = this.#find(request)
    if (found?.script.answers === undefined) return undefined
    const key = createHash('sha256')
      .update(JSON.stringify([found.index, request.client, request.endpoint, recordOf(found.body)]))
      .digest('hex')
    return findNextStep(found.script.answers, await countAnswer(this.#pool, key))
  }

  statuses(request: Sent): readonly ScriptStep[] | null {
    return this.#find(request)?.script.statuses ?? null
  }

  #find(request: Sent): { script: RecordScript; index: number; body: unknown } | undefined {
    if (!this.#scripts.some(({ endpoint }) => endpoint === request.endpoint)) return undefined
    const body = parseJsonOrForm(request.body)
    const index = this.#scripts.findIndex(
      ({ endpoint, client = request.client, match }) =>
        endpoint === request.endpoint && client === request.client && findBodyDifferences(match, body).length === 0,
    )
    const script = this.#scripts[index]
    return script && { script, index, body }
  }
}

async function countAnswer(pool: pg.Pool, key: string): Promise<number> {
  const { rows } = await pool.query<{ before: number }>({
    name: 'sandbox-count-answer',
    text: `
      insert into sandbox.scripted_answers as a (record, answered) values ($1, 1)
      on conflict (record) do update set answered = a.answered + 1
      returning answered - 1 as before
    `,
    values: [key],
  })
  return rows[0]?.before ?? 0
}

export function findNextStep<T>(steps: readonly T[], answersBefore: number): T | undefined {
  let left = answersBefore
  for (const step of steps) {
    left -= timesOf(step)
    if (left < 0) return step
  }
  return undefined
}

function timesOf(step: unknown): number {
  return typeof step === 'object' && step !== null && 'times' in step ? Number(step.times ?? 1) : 1
}

/** Returns the body without the client's own ids. */
function recordOf(body: unknown): unknown {
  if (typeof body !== 'object' || body === null) return body
  const { transactionId: _transaction, orderId: _order, ...record } = body as Record<string, unknown>
  return record
}
