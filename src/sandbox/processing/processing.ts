import type pg from 'pg'
import { columnsOfOrdersSql, columnsOfTransactionsSql } from '../control/listRows.ts'
import type { SandboxParts } from '../exchange.ts'
import type { FaultAction } from '../faults/faults.ts'
import { findNextStep } from '../scenario/recordScripts.ts'
import { parseScriptedStatus, type ScriptStep } from '../scenario/scenarioSchema.ts'
import { timestampOfMicrosecondsSql } from '../storage/sandboxDatabase.ts'
import { parseDistribution } from './distribution.ts'

const orderedFailure = /^fail:([A-Za-z0-9_]{1,4000})/

/**
 * @param position in the client's random stream
 * @param field2 can ask for a failure: `fail:E003`
 */
export function planProcessing(
  { liveSettingsOf, random }: SandboxParts,
  client: string,
  position: number,
  arrivedUs: number,
  field2: string,
): { doneUs: number; outcome: 'completed' | 'failed'; errorCode: string | null } {
  const { processingTime, failureShare, failureCode } = liveSettingsOf(client)
  const seconds =
    parseDistribution(processingTime)?.([
      random.fraction('time', client, position),
      random.fraction('time again', client, position),
    ]) ?? 0
  const errorCode =
    orderedFailure.exec(field2)?.[1] ??
    (random.fraction('failure', client, position) < failureShare ? failureCode : null)
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

const tables = {
  transaction: {
    name: 'sandbox.transactions',
    columns: columnsOfTransactionsSql,
    ending: `,
      outcome = case when $2 <> 'finish' then outcome when $5::text is null then 'completed' else 'failed' end,
      error_code = case when $2 <> 'finish' then error_code else $5 end`,
  },
  order: { name: 'sandbox.orders', columns: `'completed' as outcome, ${columnsOfOrdersSql}`, ending: '' },
}

/** Takes the next step of a record's script when a poll arrives. @returns the step if it is a fault */
export async function advanceScriptedStatus(
  parts: SandboxParts,
  which: ProcessedRecordRef,
  statuses: readonly ScriptStep[],
): Promise<FaultAction | undefined> {
  const { of, id, client } = which
  const { rows } = await parts.pool.query<{ before: number }>(
    `update ${tables[of].name} set told = told + 1 where id = $1 and client = $2 returning told - 1 as before`,
    [id, client],
  )
  const step = findNextStep(statuses, rows[0]?.before ?? 0) ?? statuses.at(-1)
  if (typeof step !== 'string') return step
  const { status, errorCode } = parseScriptedStatus(step, parts.liveSettingsOf(client).failureCode)
  if (status !== 'pending') await changeProcessing(parts, which, { kind: 'finish', errorCode })
  return undefined
}

export type ProcessingChange =
  | { kind: 'finish' /** Null: completed. */; errorCode: string | null }
  | { kind: 'hold' }
  /** Processing goes on as planned. An overdue record ends now. */
  | { kind: 'let go' }

export type ProcessingResult =
  | { kind: 'changed'; row: Record<string, unknown> }
  | { kind: 'finished'; outcome: string; at: string }

export async function findOwningClients(pool: pg.Pool, of: ProcessedRecordRef['of'], id: string): Promise<string[]> {
  const { rows } = await pool.query<{ client: string }>(
    `select client from ${tables[of].name} where id::text = $1 order by client`,
    [of === 'order' ? id.toLowerCase() : id],
  )
  return rows.map(({ client }) => client)
}

/** Changes a pending transaction or order. If two requests finish the same one, the second gets `finished`. */
export async function changeProcessing(
  { pool, clock }: Pick<SandboxParts, 'pool' | 'clock'>,
  { of, id, client }: ProcessedRecordRef,
  change: ProcessingChange,
): Promise<ProcessingResult> {
  const { name, columns, ending } = tables[of]
  const errorCode = of === 'transaction' ? [change.kind === 'finish' ? change.errorCode : null] : []
  const { rows } = await pool.query<Record<string, unknown>>(
    `
    update ${name} set held = $2 = 'hold', statuses = null, done_at = ${doneAtSql}${ending}
    where id = $1 and client = $4 and (held or done_at > ${timestampOfMicrosecondsSql('$3::bigint')})
    returning ${columns}
    `,
    [id, change.kind, clock.nowUs(), client, ...errorCode],
  )
  const [changed] = rows
  if (changed !== undefined) return { kind: 'changed', row: changed }
  const { rows: found } = await pool.query<{ outcome: string; doneAt: string }>(
    `select ${columns} from ${name} where id = $1 and client = $2`,
    [id, client],
  )
  return { kind: 'finished', outcome: String(found[0]?.outcome), at: String(found[0]?.doneAt) }
}

/** If a held record is let go after its planned end, it ends now, because earlier polls saw it pending. */
const doneAtSql = `
  case $2
    when 'finish' then ${timestampOfMicrosecondsSql('$3::bigint')}
    when 'let go' then case when held then greatest(done_at, ${timestampOfMicrosecondsSql('$3::bigint')}) else done_at end
    else done_at
  end`
