import { readSubmissionDetail, type SubmissionDetail } from '../../ledger/operator/readSubmissionDetail.ts'
import type { ListedSubmission } from '../../ledger/operator/selectSubmissions.ts'
import type { Mappings } from '../../mapping/loadMappings.ts'
import { type MappedOrRefusedRecord, mapOutboxRecord } from '../../mapping/mapRecord.ts'
import type { Databases } from '../../operations/databases.ts'
import { type Explanation, explainSubmission } from '../../operations/explainSubmission.ts'
import { type CurrentRow, tryReadCurrentRow } from '../../operations/submissionFacts.ts'
import { readMappingFiles } from '../parts.ts'

export interface RecordPageData {
  submission: ListedSubmission
  detail: SubmissionDetail
  explanation: Explanation
  rowIfConflict: CurrentRow | null
  /** The request by the current mapping files; null without mapping files or payload. */
  mappedByCurrentFiles: MappedOrRefusedRecord | null
  /** Null if the mapping files cannot be read. */
  mappings: Mappings | null
}

/** @returns null if the record was pruned */
export async function readRecordPageData(
  databases: Databases,
  submission: ListedSubmission,
): Promise<RecordPageData | null> {
  const { ledger, config } = databases
  const detail = await readSubmissionDetail(ledger, submission.id)
  if (detail === null) return null
  const { type, payload, id } = detail
  const files = readMappingFiles(config)
  const mappings = files.kind === 'value' ? files.mappings : null
  const canMap = mappings !== null && payload !== null
  return {
    ...{ submission, detail, mappings },
    explanation: explainSubmission(detail),
    rowIfConflict: detail.conflict === null ? null : await tryReadCurrentRow(databases, detail.outboxId),
    mappedByCurrentFiles: canMap ? mapOutboxRecord(mappings, { type, payload, unreadable: null }, id) : null,
  }
}
