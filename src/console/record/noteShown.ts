import type { ListedSubmission } from '../../ledger/operator/selectSubmissions.ts'
import type { Viewer } from '../guard/viewer.ts'
import type { ConsoleParts } from '../parts.ts'

/**
 * Notes who asked for a record's values: in the ledger, as an act of theirs; for those who may change nothing it is a line of the
 * console's own log, for their console, and the role it has, writes nothing to the ledger.
 *
 * @param submission a row that was not captured has no id yet, and goes by its name
 */
export async function noteShown(
  { store, say }: Pick<ConsoleParts, 'store' | 'say'>,
  { who, canChange }: Pick<Viewer, 'who' | 'canChange'>,
  submission: Pick<ListedSubmission, 'id' | 'outboxId' | 'type'>,
): Promise<void> {
  if (canChange) await (await store()).actingAs({ who, reason: null }).noteShown(submission)
  else say(`${who} asked for the values of ${submission.id}`)
}

/** What is said to them before. Pure. */
export const maskedWords = ({ canChange }: Pick<Viewer, 'canChange'>): string =>
  `Values are masked: they may be a person’s. ${
    canChange
      ? 'Who asks for them is logged, in the audit.'
      : 'Who asks for them stands in this console’s own log; nothing is written to the ledger.'
  }`
