import type { SubmissionDetail } from '../../ledger/operator/readSubmissionDetail.ts'
import type { ListedSubmission } from '../../ledger/operator/selectSubmissions.ts'
import type { Mappings } from '../../mapping/loadMappings.ts'
import { type MappedRecord, mapOutboxRecord } from '../../mapping/mapRecord.ts'
import { type Explanation, explainSubmission } from '../../operations/explainSubmission.ts'
import { explainMissing, findNamed } from '../../operations/references.ts'
import { type OtherRow, readRowNow } from '../../operations/submissionFacts.ts'
import type { OperatorStore } from '../../store/operatorStore.ts'

/** What a name comes to. */
export type Named =
  | { kind: 'one'; submission: ListedSubmission }
  | { kind: 'several'; submissions: ListedSubmission[]; isCut: boolean }
  /** `madeOf`: the name, and what was read to say why. */
  | { kind: 'none'; message: string; madeOf: unknown }

const severalMax = 50

/** Finds what is called so, in every form that `outboxd show` takes. */
export async function findRecord(store: OperatorStore, name: string): Promise<Named> {
  const { submissions = [] } = (await findNamed(store, name, severalMax + 1)) ?? {}
  const [submission] = submissions
  if (submission === undefined) {
    const madeOf: unknown[] = [name]
    const keep = <T>(read: T): T => {
      madeOf.push(read)
      return read
    }
    const { outbox, ...ledger } = store
    const watched = {
      ...ledger,
      readPruned: async (id: string) => keep(await ledger.readPruned(id)),
      outbox: { ...outbox, readRecord: async (id: string) => keep(await outbox.readRecord(id)) },
    }
    return { kind: 'none', message: await explainMissing(watched, name), madeOf }
  }
  if (submissions.length === 1) return { kind: 'one', submission }
  return { kind: 'several', submissions: submissions.slice(0, severalMax), isCut: submissions.length > severalMax }
}

/** All that the page of a record shows. */
export interface RecordView {
  submission: ListedSubmission
  detail: SubmissionDetail
  explanation: Explanation
  /** The outbox row that has its id now, where that is another. */
  row: OtherRow | null
  /** What the mapping files of now make of its payload; null where they cannot be read, or it has none. */
  mapped: MappedRecord | null
  /** The rules by which they do. */
  mappings: Mappings | null
}

/** @param mappings null where they cannot be read  @returns null where it has been pruned since it was found */
export async function readRecord(
  store: OperatorStore,
  submission: ListedSubmission,
  mappings: Mappings | null,
): Promise<RecordView | null> {
  const detail = await store.readSubmissionDetail(submission.id)
  if (detail === null) return null
  const { type, payload, id } = detail
  return {
    ...{ submission, detail, mappings },
    explanation: explainSubmission(detail),
    row: detail.conflict === null ? null : await readRowNow(store, detail.outboxId),
    mapped:
      mappings === null || payload === null ? null : mapOutboxRecord(mappings, { type, payload, unreadable: null }, id),
  }
}
