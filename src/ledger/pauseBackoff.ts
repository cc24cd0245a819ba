import type { Config } from '../config.ts'
import type { PauseCall } from '../model.ts'

/** How long pauses last, time after time, in milliseconds by step; the last step stays. */
export interface PauseBackoff {
  throttled: readonly number[]
  unavailable: readonly number[]
  unauthorized: readonly number[]
  unreachable: readonly number[]
  /** Where each further try costs a record. */
  patient: readonly number[]
}

/** How long each pause lasts, time after time: docs/contract.md, "What an answer means". */
export function pauseBackoff({
  unavailablePauseMs,
  unauthorizedPauseMs,
}: Pick<Config, 'unavailablePauseMs' | 'unauthorizedPauseMs'>): PauseBackoff {
  return {
    throttled: [1_000, 2_000, 4_000, 8_000],
    unavailable: [unavailablePauseMs],
    unauthorized: [unauthorizedPauseMs],
    unreachable: [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000],
    patient: [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 120_000, 300_000, 600_000, 1_200_000, 1_800_000],
  }
}

/** The steps that a pause goes through. */
export function backoffSteps(call: PauseCall, backoff: PauseBackoff): readonly number[] {
  if (call.answered) return [...Array(quickTries).fill(backoff.unreachable[0]), ...backoff.patient]
  return call.patient ? backoff.patient : backoff[call.reason]
}

/** So many records that are answered by something else than the service may follow each other quickly. */
const quickTries = 10
