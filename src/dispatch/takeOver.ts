import type { Answer, Submission, Transition, Worked } from '../record.ts'

export interface TakeOverDeps {
  readAbandoned(): Promise<Submission[]>
  judge(submission: Submission, answer: Answer): Worked
  /** Writes under the fence: where the worker was alive after all and wrote first, nothing changes. */
  writeSteps(transitions: readonly Transition[]): Promise<unknown[]>
}

/** The worker died with its request: as with a connection lost, nobody can know whether it arrived. */
const died: Answer = {
  kind: 'no-answer',
  sent: true,
  cause: 'network',
  detail: 'the instance that was sending it died',
  tookMs: 0,
}

/** Settles what a dead instance was sending, as the policy for attempts in doubt says. @returns how many */
export async function takeOver(deps: TakeOverDeps): Promise<number> {
  const abandoned = await deps.readAbandoned()
  if (abandoned.length === 0) return 0
  const transitions = abandoned.map((submission): Transition => {
    const { step } = deps.judge(submission, died)
    return { submission, job: null, change: step.change, cause: step.cause }
  })
  return (await deps.writeSteps(transitions)).length
}
