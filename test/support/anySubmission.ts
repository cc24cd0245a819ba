import type { SubmissionFilter } from '../../src/ledger/operator/selectSubmissions.ts'
import { states } from '../../src/model.ts'

/** The filter that every submission passes. */
export const anySubmission: SubmissionFilter = {
  states,
  code: null,
  type: null,
  key: null,
  sinceMs: null,
  untilMs: null,
  mayHaveArrived: null,
  transactionId: null,
  cause: null,
  among: null,
}
