import type { Parts } from '../exchange.ts'
import type { FaultAction } from '../faults/faults.ts'
import { changeCourse, settledNowUs, type Which } from '../processing/courseChanges.ts'
import { stepAt } from './recordScripts.ts'
import { readWord, type Step } from './scenarioSchema.ts'

/** What of a transaction or an order says how a poll finds it. */
interface Course {
  held: boolean
  statuses: readonly Step[] | null
}

/** A transaction or an order as it was found at a moment, and what is to be done to the answer of this poll. */
export interface Polled<C> {
  found: C
  /** No end that it had by then is taken back. */
  nowUs: number
  fault: FaultAction | undefined
}

/**
 * Finds a transaction or an order for a poll; where it goes by a script, that goes on by one step.
 *
 * @param find reads it
 * @returns undefined where there is none
 */
export async function pollCourse<C extends Course>(
  parts: Parts,
  which: Which,
  find: () => Promise<C | undefined>,
): Promise<Polled<C> | undefined> {
  const nowUs = await settledNowUs(parts, which)
  const found = await find()
  if (found === undefined) return undefined
  if (!goesByScript(found)) return { found, nowUs, fault: undefined }
  const fault = await tellStatus(parts, which, found.statuses)
  const toldUs = await settledNowUs(parts, which)
  return { found: (await find()) ?? found, nowUs: toldUs, fault }
}

/** Whether what a poll finds is told by a script: until that has ended it. */
function goesByScript<C extends Course>(found: C): found is C & { statuses: readonly Step[] } {
  return found.held && found.statuses !== null
}

const tables = { transaction: 'sandbox.transactions', order: 'sandbox.orders' }

/**
 * Goes on by one step in the script of a transaction or an order, and ends it where the script says so.
 *
 * @returns what is to be done to the answer of the poll, where the step is a fault
 */
async function tellStatus(
  parts: Parts,
  { of, id, client }: Which,
  statuses: readonly Step[],
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
