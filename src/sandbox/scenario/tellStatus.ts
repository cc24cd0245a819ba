import type { Parts } from '../exchange.ts'
import type { FaultAction } from '../faults/faults.ts'
import { changeCourse, type Which } from '../processing/courseChanges.ts'
import { stepAt } from './recordScripts.ts'
import { readWord, type Step } from './scenarioSchema.ts'

interface Scripted extends Which {
  statuses: readonly Step[]
}

const tables = { transaction: 'sandbox.transactions', order: 'sandbox.orders' }

/** Whether what a poll finds is told by a script: until that has ended it. */
export function goesByScript<T extends { held: boolean; statuses: readonly Step[] | null }>(
  found: T,
): found is T & { statuses: readonly Step[] } {
  return found.held && found.statuses !== null
}

/**
 * Goes on by one step in the script of a transaction or an order, and ends it where the script says so.
 *
 * @returns what is to be done to the answer of the poll, where the step is a fault
 */
export async function tellStatus(
  parts: Parts,
  { of, id, client, statuses }: Scripted,
): Promise<FaultAction | undefined> {
  const { rows } = await parts.pool.query<{ before: number }>({
    name: `sandbox-tell-${of}`,
    text: `update ${tables[of]} set told = told + 1 where id = $1 and client = $2 returning told - 1 as before`,
    values: [id, client],
  })
  const step = stepAt(statuses, rows[0]?.before ?? 0) ?? statuses.at(-1)
  if (typeof step !== 'string') return step
  const { status, errorCode } = readWord(step, parts.live(client).failureCode)
  if (status !== 'pending') await changeCourse(parts, { of, id, client }, { kind: 'finish', errorCode })
  return undefined
}
