import { readForgotten, readOrphaned } from '../ledger/instances.ts'
import { type WrittenOutcomes, writeSteps } from '../ledger/outcomes.ts'
import type { Answer, Submission, Transition } from '../model.ts'
import { blameFor } from '../postgres/database.ts'
import type { Dispatch } from './createDispatch.ts'
import type { InstanceDatabases } from './instanceDatabases.ts'
import { takeEach } from './loop.ts'

export interface RescueOptions {
  dispatch: Pick<Dispatch, 'holds' | 'interpretAnswer'>
  /** Steps are in the ledger. */
  onWritten(outcomes: WrittenOutcomes): void
}

/** As with a lost connection, whether the request arrived is unknown. */
const unknown = (detail: string): Answer => ({ kind: 'no-answer', sent: true, cause: 'network', detail, tookMs: 0 })

const died = unknown('the instance that was sending it died')
const forgotten = unknown('what came of it could not be written, or the ledger went back to before it was')

/**
 * Settles what dead instances were sending, and what this instance was sending and has not in hand any more: the policy
 * for attempts in doubt says how. What another living instance has in hand is left to it. If the worker was alive after
 * all and wrote first, the fence lets nothing change.
 *
 * @returns how many
 * @throws Error of the first that could not be written, when the others are
 */
export async function rescueOrphans(
  databases: InstanceDatabases,
  { dispatch, onWritten }: RescueOptions,
): Promise<number> {
  const { ledger, instance } = databases
  const orphaned = await readOrphaned(ledger, instance.id)
  const own = await readForgotten(ledger, instance.id, dispatch.holds)
  const settle = (submission: Submission, answer: Answer): Transition => {
    const { step } = dispatch.interpretAnswer(submission, answer)
    return { submission, job: null, change: step.change, cause: step.cause, request: null }
  }
  const transitions = [
    ...orphaned.map((submission) => settle(submission, died)),
    ...own.map((submission) => settle(submission, forgotten)),
  ]
  let rescued = 0
  const write = async (some: readonly Transition[]) => {
    const written = await writeSteps(databases, some)
    onWritten({ written, heldBack: 0 })
    rescued += written.length
  }
  if (transitions.length > 0) await writeTogether(write, transitions)
  return rescued
}

/** Writes them together; one by one if one of them may be why that fails, so that it holds up no other. */
async function writeTogether(
  write: (some: readonly Transition[]) => Promise<void>,
  transitions: readonly Transition[],
): Promise<void> {
  try {
    return await write(transitions)
  } catch (error) {
    if (transitions.length < 2 || blameFor(error, 'maintenance') === 'everyone') throw error
  }
  await takeEach(transitions.map((transition) => () => write([transition])))
}
