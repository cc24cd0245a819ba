import type { Operator } from '../ledger/operator/operator.ts'
import {
  queueReplays,
  type Replay,
  type ReplayableSubmission,
  readReplayableSubmissions,
} from '../ledger/operator/replaySubmissions.ts'
import type { ListedSubmission } from '../ledger/operator/selectSubmissions.ts'
import { areOtherRows } from '../ledger/rowConflicts.ts'
import type { Mappings } from '../mapping/loadMappings.ts'
import { mapOutboxRecord } from '../mapping/mapRecord.ts'
import type { OutboxRecord } from '../model/outbox.ts'
import type { State } from '../model/submission.ts'
import { readRecordWithContent } from '../outbox/readRecordContents.ts'
import { pluralize } from '../plainText.ts'
import type { Database } from '../postgres/database.ts'
import {
  type BulkChangeRules,
  type BulkChangeRun,
  type BulkOutcome,
  carryOutInBatches,
  listSkippedAsChanged,
  type SkippedRecord,
} from './bulkChange.ts'
import { type Databases, withOutbox } from './databases.ts'
import { assertMappingsAreLedgers } from './ledgerFiles.ts'
import { olderVersionClause } from './submissionFacts.ts'

export const replayableStates: readonly State[] = ['failed', 'rejected']

export interface ReplayTerms {
  refresh: boolean
  /** Also replays discarded records that are named by id. */
  discarded: boolean
  /** Includes records that may have arrived. */
  evenIfArrived: boolean
  /** Also gives a new idempotency key to records that may have arrived. */
  newKey: boolean
}

export const replayRules = (terms: ReplayTerms): BulkChangeRules => ({
  verb: 'replay',
  did: 'replayed',
  allowedStates: terms.discarded ? [...replayableStates, 'discarded'] : replayableStates,
  defaultStates: replayableStates,
  whyNotAllowed(state) {
    if (state === 'uncertain') return 'it may have arrived. Settle it with `outboxd resolve`'
    if (state === 'completed') return 'it has arrived'
    if (state === 'discarded') return 'it was discarded. `outboxd show ID` says whether it can be sent again'
    return 'it is under way'
  },
  whySpared: terms.evenIfArrived
    ? null
    : 'may have arrived: check at the service first. To send it again, name its id or give --even-if-arrived',
  riskOf: (submissions) => riskMessage(submissions, terms),
  asksAlways: () => false,
})

function riskMessage(submissions: readonly ListedSubmission[], { newKey }: ReplayTerms): string {
  const count = submissions.filter(({ mayHaveArrived }) => mayHaveArrived).length
  if (count === 0) return ''
  const them = count === 1 ? 'it' : 'them'
  const key = newKey ? 'because the idempotency key is new' : 'unless it recognises the idempotency key'
  return `${pluralize(count, 'record')} may have arrived. The service would then have ${them} twice, ${key}.\n`
}

interface ReplayParts {
  databases: Databases
  mappings: Mappings
  operator: Operator | null
}

type ReplayCandidate = Pick<ListedSubmission, 'id' | 'outboxId' | 'revision' | 'key'>

/** Few records, because payloads can be large. */
const batchSize = 100

/** Skips records that cannot be mapped or have changed, and older versions of documents. */
export async function replaySubmissions(
  { operator, ...parts }: ReplayParts,
  submissions: readonly ReplayCandidate[],
  { refresh, newKey }: Pick<ReplayTerms, 'refresh' | 'newKey'>,
  run: BulkChangeRun,
): Promise<BulkOutcome> {
  return carryOutInBatches(submissions, batchSize, run, async (batch) => {
    await assertMappingsAreLedgers(parts.databases, parts.mappings)
    const { replays, skipped } = await prepare(parts, batch, refresh)
    const ready = new Set(replays.map(({ id }) => id))
    const assertFiles = (db: Database) => assertMappingsAreLedgers(parts.databases, parts.mappings, db)
    const done = operator === null ? ready : new Set(await queueReplays(operator, replays, newKey, assertFiles))
    const readied = batch.filter(({ id }) => ready.has(id))
    return { done: [...done], skipped: [...skipped, ...listSkippedAsChanged(readied, done)] }
  })
}

async function prepare(
  { databases, mappings }: Omit<ReplayParts, 'operator'>,
  batch: readonly ReplayCandidate[],
  refresh: boolean,
): Promise<{ replays: Replay[]; skipped: SkippedRecord[] }> {
  const replays: Replay[] = []
  const found = await readReplayableSubmissions(databases.ledger, batch)
  const skipped = listSkippedAsChanged(batch, new Set(found.map(({ id }) => id)))
  for (const submission of found) {
    const { id, outboxId, revision } = submission // skipped records keep only their ids, because payloads can be large
    if (submission.newer !== null) {
      skipped.push({ submission: { id, outboxId }, reason: `${olderVersionClause(submission.newer)}. Discard it` })
      continue
    }
    if (submission.isSuperseded) {
      const reason = 'was superseded by a later version of its document. To send the document, write a new row for it'
      skipped.push({ submission: { id, outboxId }, reason })
      continue
    }
    if (submission.isErased) {
      skipped.push({ submission: { id, outboxId }, reason: 'was erased' })
      continue
    }
    const read = await readPayload(submission, mappings, refresh ? databases : null)
    const { type, key } = read
    if (mappings.get(type)?.document != null && !submission.isVersion) {
      const reason =
        'is not a version of its document, so nobody would know that it was sent. Write a new row for the document' +
        (submission.mayHaveArrived ? ', unless this one arrived: ask the service first' : '')
      skipped.push({ submission: { id, outboxId }, reason })
      continue
    }
    const mapped = mapOutboxRecord(mappings, read, id)
    if (mapped.kind === 'refused') {
      skipped.push({ submission: { id, outboxId }, reason: `still cannot be sent: ${mapped.reason}` })
    } else if (read.payload !== null) {
      const { resource, body, amounts, tracked, sendsOwnId } = mapped
      const { payload } = read
      replays.push({ id, revision, type, key, resource, payload, body, amounts, tracked, sendsOwnId })
    }
  }
  return { replays, skipped }
}

/** @param refresh null to map the stored payload instead of the row */
async function readPayload(
  { outboxId, type, key, payload, created }: ReplayableSubmission,
  mappings: Mappings,
  refresh: Databases | null,
): Promise<Pick<OutboxRecord, 'type' | 'key' | 'payload' | 'unreadable'>> {
  if (refresh === null) {
    const unreadable = 'the ledger does not have its payload: add --refresh'
    return { type, key, payload, unreadable }
  }
  const none = (unreadable: string) => ({ type, key, payload: null, unreadable })
  const record = await withOutbox(refresh, (outbox) => readRecordWithContent(outbox, mappings, outboxId))
  if (record === null) return none(`the row ${outboxId} is no longer in the outbox`)
  if (areOtherRows(created, record.created)) return none(`the row ${outboxId} of the outbox is a different one now`)
  return record
}
