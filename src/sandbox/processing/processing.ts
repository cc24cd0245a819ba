import type pg from 'pg'
import { z } from 'zod'
import { orderColumns, transactionColumns } from '../control/listRows.ts'
import type { Parts } from '../exchange.ts'
import type { FaultAction } from '../faults/faults.ts'
import { findStepAfterAnswers } from '../scenario/recordScripts.ts'
import { parseStatusWord, type Step } from '../scenario/scenarioSchema.ts'
import { timeOfMicrosecondsSql } from '../storage/sandboxDatabase.ts'
import { parseDistribution } from './distribution.ts'
import type { SeededRandom } from './seededRandom.ts'

interface ProcessingPlan {
  doneUs: number
  outcome: 'completed' | 'failed'
  errorCode: string | null
}

const orderedFailure = /^fail:([A-Za-z0-9_]{1,4000})/

/**
 * Decides on arrival when and how processing ends.
 *
 * @param position in the client's random stream
 * @param field2 may order a failure: `fail:E003`
 */
export function planProcessing(
  { live, random }: Parts,
  client: string,
  position: number,
  arrivedUs: number,
  field2: string,
): ProcessingPlan {
  const { processingTime, failureShare, failureCode } = live(client)
  const share = (stream: Parameters<SeededRandom['share']>[0]) => random.share(stream, client, position)
  const processingSeconds = parseDistribution(processingTime)
  if (processingSeconds === undefined)
    throw new Error(`processingTime ${processingTime} was checked and cannot be read`)
  const seconds = processingSeconds([share('time'), share('time again')])
  const errorCode = orderedFailure.exec(field2)?.[1] ?? (share('failure') < failureShare ? failureCode : null)
  return {
    doneUs: arrivedUs + Math.round(seconds * 1_000_000),
    outcome: errorCode === null ? 'completed' : 'failed',
    errorCode,
  }
}

/** Ids are unique only per client. */
export interface ProcessedRecordRef {
  of: 'transaction' | 'order'
  id: string
  client: string
}

/** An order always ends as completed. */
const tables = {
  transaction: {
    name: 'sandbox.transactions',
    columns: transactionColumns,
    ending: `,
      outcome = case when $2 <> 'finish' then outcome when $5::text is null then 'completed' else 'failed' end,
      error_code = case when $2 <> 'finish' then error_code else $5 end`,
  },
  order: { name: 'sandbox.orders', columns: `'completed' as outcome, ${orderColumns}`, ending: '' },
}

export interface Polled<S> {
  found: S
  /** An end up to this time is final. */
  nowUs: number
  fault: FaultAction | undefined
}

export async function pollProcessing<S extends { held: boolean; statuses: readonly Step[] | null }>(
  parts: Parts,
  which: ProcessedRecordRef,
  find: () => Promise<S | undefined>,
): Promise<Polled<S> | undefined> {
  const nowUs = await settledNowUs(parts, which)
  const found = await find()
  if (found === undefined) return undefined
  if (!found.held || found.statuses === null) return { found, nowUs, fault: undefined }
  const fault = await tellNextStep(parts, which, found.statuses)
  const settledUs = await settledNowUs(parts, which)
  return { found: (await find()) ?? found, nowUs: settledUs, fault }
}

async function tellNextStep(
  parts: Parts,
  which: ProcessedRecordRef,
  statuses: readonly Step[],
): Promise<FaultAction | undefined> {
  const { of, id, client } = which
  const { rows } = await parts.pool.query<{ before: number }>({
    name: `sandbox-tell-${of}`,
    text: `update ${tables[of].name} set told = told + 1 where id = $1 and client = $2 returning told - 1 as before`,
    values: [id, client],
  })
  const step = findStepAfterAnswers(statuses, rows[0]?.before ?? 0) ?? statuses.at(-1)
  if (typeof step !== 'string') return step
  const { status, errorCode } = parseStatusWord(step, parts.live(client).failureCode)
  if (status !== 'pending') await changeProcessing(parts, which, { kind: 'finish', errorCode })
  return undefined
}

export type ProcessingChange =
  | { kind: 'finish' /** Null: completed. */; errorCode: string | null }
  | { kind: 'hold' }
  /** Processing goes on as planned; what is overdue ends now. */
  | { kind: 'let go' }

export type Changed =
  | { kind: 'changed'; row: Record<string, unknown> }
  | { kind: 'unknown' }
  | { kind: 'finished'; outcome: string; at: string }

export async function findOwningClients(pool: pg.Pool, of: ProcessedRecordRef['of'], id: string): Promise<string[]> {
  if (of === 'order' && !z.guid().safeParse(id).success) return []
  const { rows } = await pool.query<{ client: string }>(
    `select client from ${tables[of].name} where id = $1 order by client`,
    [id],
  )
  return rows.map(({ client }) => client)
}

type Needed = Pick<Parts, 'pool' | 'clock' | 'mutex'>

/** Changes a pending transaction or order. If two requests finish it, the second one finds it finished. */
export async function changeProcessing(
  parts: Needed,
  which: ProcessedRecordRef,
  change: ProcessingChange,
): Promise<Changed> {
  const { of, id, client } = which
  const { name, columns, ending } = tables[of]
  const errorCode = of === 'transaction' ? [change.kind === 'finish' ? change.errorCode : null] : []
  return alone(parts, which, async (nowUs) => {
    const { rows } = await parts.pool.query<Record<string, unknown>>(
      `
      update ${name} set held = $2 = 'hold', statuses = null, done_at = ${doneAtSql}${ending}
      where id = $1 and client = $4 and (held or done_at > ${timeOfMicrosecondsSql('$3::bigint')})
      returning ${columns}
      `,
      [id, change.kind, nowUs, client, ...errorCode],
    )
    const [row] = rows
    if (row === undefined) return findFinished(parts.pool, which)
    if (of === 'order') delete row.outcome
    return { kind: 'changed', row }
  })
}

/** A let-go record that is overdue ends now, because earlier polls saw it pending. */
const doneAtSql = `
  case $2
    when 'finish' then ${timeOfMicrosecondsSql('$3::bigint')}
    when 'let go' then case when held then greatest(done_at, ${timeOfMicrosecondsSql('$3::bigint')}) else done_at end
    else done_at
  end`

async function findFinished(pool: pg.Pool, { of, id, client }: ProcessedRecordRef): Promise<Changed> {
  const { name, columns } = tables[of]
  const { rows } = await pool.query<{ outcome: string; doneAt: string }>(
    `select ${columns} from ${name} where id = $1 and client = $2`,
    [id, client],
  )
  const [row] = rows
  return row === undefined ? { kind: 'unknown' } : { kind: 'finished', outcome: row.outcome, at: row.doneAt }
}

/** Reads the clock while no change is under way, so that an end up to then is final. */
async function settledNowUs(parts: Needed, which: ProcessedRecordRef): Promise<number> {
  return alone(parts, which, async (nowUs) => nowUs)
}

/** A lock in memory is enough, because one sandbox serves a database. */
async function alone<T>(
  { mutex, clock }: Needed,
  { of, id, client }: ProcessedRecordRef,
  act: (nowUs: number) => Promise<T>,
) {
  const release = await mutex.take(`course of ${of} ${client} ${of === 'order' ? id.toLowerCase() : id}`)
  try {
    return await act(clock.nowUs())
  } finally {
    release()
  }
}
