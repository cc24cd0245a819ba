import { readOrphanedSubmissions, readUnheldClaims } from '../ledger/instances.ts'
import { type WrittenOutcomes, writeStepsAndReleaseKeys } from '../ledger/outcomes.ts'
import type { Answer, Submission, Transition } from '../model.ts'
import { blameForDatabaseError } from '../postgres/database.ts'
import type { Dispatch } from './createDispatch.ts'
import type { InstanceDatabases } from './instanceDatabases.ts'

export interface RescueOptions {
  dispatch: Pick<Dispatch, 'holds' | 'interpretAnswer'>
  onWritten(outcomes: WrittenOutcomes): void
}

const unknown = (detail: string): Answer => ({ kind: 'no-answer', sent: true, cause: 'network', detail, tookMs: 0 })

const died = unknown('the instance that was sending it died')
const forgotten = unknown('its outcome could not be written, or the ledger lost it')

/**
 * Settles records of dead instances, and records that this instance no longer has in flight, by the policy for attempts
 * in doubt. If the other instance lived and wrote first, the fence changes nothing.
 *
 * @throws the first error, after the other records are written
 */
export async function rescueOrphans(
  databases: InstanceDatabases,
  { dispatch, onWritten }: RescueOptions,
): Promise<number> {
  const { ledger, instance } = databases
  const orphaned = await readOrphanedSubmissions(ledger, instance.id)
  const own = await readUnheldClaims(ledger, instance.id, dispatch.holds)
  const settle = (submission: Submission, answer: Answer): Transition => {
    const { step } = dispatch.interpretAnswer(submission, answer)
    return { submission, job: null, change: step.change, cause: step.cause, request: null }
  }
  const transitions = [
    ...orphaned.map((submission) => settle(submission, died)),
    ...own.map((submission) => settle(submission, forgotten)),
  ]
  let rescued = 0
  const failures: unknown[] = []
  for (const transition of transitions) {
    try {
      const written = await writeStepsAndReleaseKeys(databases, [transition])
      onWritten({ written, heldBack: 0 })
      rescued += written.length
    } catch (error) {
      if (blameForDatabaseError(error, 'maintenance') === 'everyone') throw error
      failures.push(error)
    }
  }
  if (failures.length > 0) throw failures[0]
  return rescued
}
