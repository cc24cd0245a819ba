import type { Change, KeptColumnValues, State, StepColumnValues } from '../../src/model.ts'

/** A change of which only what a test is about is said; also one that no step makes. */
export interface GivenChange extends Partial<KeptColumnValues>, Partial<StepColumnValues> {
  state: State
  dueInMs?: number
  pollInMs?: number
  unknown?: boolean
  met?: NonNullable<Change['met']>
  refusedPolls?: number
}

/** The ledger takes it as it is: what is not said of it is empty, or stays. */
export const asChange = (given: GivenChange): Change => given as Change
