import { readSubmissionDetail, type SubmissionDetail } from '../../ledger/operator/readSubmissionDetail.ts'
import type { ListedSubmission } from '../../ledger/operator/selectSubmissions.ts'
import type { Mappings } from '../../mapping/loadMappings.ts'
import { type MappedRecord, mapOutboxRecord } from '../../mapping/mapRecord.ts'
import type { Databases } from '../../operations/databases.ts'
import { type Explanation, explainSubmission } from '../../operations/explainSubmission.ts'
import { explainMissing, findSubmissionsByName, readReferences } from '../../operations/references.ts'
import { type CurrentRow, readCurrentRow } from '../../operations/submissionFacts.ts'

export type RecordsByName =
  | { kind: 'one'; submission: ListedSubmission }
  | { kind: 'several'; submissions: ListedSubmission[]; isCut: boolean }
  | { kind: 'none'; message: string; outboxId: string | null }

const severalMax = 50

export async function findRecordByName(databases: Databases, name: string): Promise<RecordsByName> {
  const { submissions = [] } = (await findSubmissionsByName(databases.ledger, name, severalMax + 1)) ?? {}
  const [submission] = submissions
  if (submission === undefined) {
    const [reference] = readReferences(name)
    const outboxId = reference?.kind === 'outbox' ? reference.value : null
    return { kind: 'none', message: await explainMissing(databases, name), outboxId }
  }
  if (submissions.length === 1) return { kind: 'one', submission }
  return { kind: 'several', submissions: submissions.slice(0, severalMax), isCut: submissions.length > severalMax }
}

export interface RecordView {
  submission: ListedSubmission
  detail: SubmissionDetail
  explanation: Explanation
  row: CurrentRow | null
  /** Made with the current mapping files. Null without files or payload. */
  mapped: MappedRecord | null

  mappings: Mappings | null
}

/**
 * @param mappings null if they cannot be read
 * @returns null if the record was pruned
 */
export async function readRecord(
  databases: Databases,
  submission: ListedSubmission,
  mappings: Mappings | null,
): Promise<RecordView | null> {
  const detail = await readSubmissionDetail(databases.ledger, submission.id, databases.config.keyOnFailure)
  if (detail === null) return null
  const { type, payload, id } = detail
  return {
    ...{ submission, detail, mappings },
    explanation: explainSubmission(detail),
    row: detail.conflict === null ? null : await readCurrentRow(databases, detail.outboxId),
    mapped:
      mappings === null || payload === null ? null : mapOutboxRecord(mappings, { type, payload, unreadable: null }, id),
  }
}
