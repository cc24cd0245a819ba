import type { Answer, AttemptResult, Submission, Transition } from '../../model.ts'
import { takeEach } from './takeEach.ts'

export interface RescueOrphansDeps {
  /** What dead instances were sending. */
  readOrphaned(): Promise<Submission[]>
  /** What the ledger says this instance is sending, and that it does not have in hand. */
  readForgotten(): Promise<Submission[]>
  interpretAnswer(submission: Submission, answer: Answer): AttemptResult
  /** What a failed write says (src/postgres/sqlState.ts). */
  blameFor(error: unknown): 'moment' | 'piece' | 'everyone'
  /** Writes under the fence: where the worker was alive after all and wrote first, nothing changes. */
  writeSteps(transitions: readonly Transition[]): Promise<unknown[]>
}

/** As with a connection lost, nobody can know whether the request arrived. */
const unknown = (detail: string): Answer => ({ kind: 'no-answer', sent: true, cause: 'network', detail, tookMs: 0 })

const died = unknown('the instance that was sending it died')
const forgotten = unknown('what came of it could not be written, or the ledger went back to before it was')

/**
 * Settles what dead instances were sending, and what this one was, but has not in hand any more: the policy for
 * attempts in doubt says how. What another instance has in hand is the other's to settle while it lives.
 *
 * @returns how many
 * @throws Error of the first that could not be written, when the others are
 */
export async function rescueOrphans(deps: RescueOrphansDeps): Promise<number> {
  const orphaned = await deps.readOrphaned()
  const own = await deps.readForgotten()
  if (orphaned.length + own.length === 0) return 0
  const settle = (submission: Submission, answer: Answer): Transition => {
    const { step } = deps.interpretAnswer(submission, answer)
    return { submission, job: null, change: step.change, cause: step.cause, request: null }
  }
  const transitions = [
    ...orphaned.map((submission) => settle(submission, died)),
    ...own.map((submission) => settle(submission, forgotten)),
  ]
  return write(deps, transitions)
}

/** Writes them together; one by one if one of them may be why that fails, so that it holds up no other. */
async function write(deps: RescueOrphansDeps, transitions: readonly Transition[]): Promise<number> {
  try {
    return (await deps.writeSteps(transitions)).length
  } catch (error) {
    if (transitions.length < 2 || deps.blameFor(error) === 'everyone') throw error
  }
  let written = 0
  await takeEach(
    transitions.map((transition) => async () => {
      written += (await deps.writeSteps([transition])).length
    }),
  )
  return written
}
