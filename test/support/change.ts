import type { Change, KeptColumnValues, State, StepColumnValues } from '../../src/model/submission.ts'

/** The fields of a change that a test is about, even of a change that no step makes. */
export interface GivenChange extends Partial<KeptColumnValues>, Partial<StepColumnValues> {
  state: State
  dueInMs?: number
  pollInMs?: number
  polledRarely?: boolean
  unknown?: boolean
  openedTimes?: number
}

/** Casts a partial change: in the ledger, a missing field is empty or stays as it was. */
export const asChange = (given: GivenChange): Change => given as Change
