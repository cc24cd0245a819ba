import { createHash } from 'node:crypto'
import type { CapturedRecord } from '../model/outbox.ts'
import type { State, Transition } from '../model/submission.ts'
import type { Database } from '../postgres/database.ts'
import { lockKeys } from './keyOrder.ts'

/** A document's newest record whose request reached, or may still reach, the service. */
export interface LastRecordOfDocument {
  outboxId: string
  state: State
  /** The request's digest; null or `unknownDigest` if outboxd does not know what the service has. */
  digest: string | null
  mayHaveArrived: boolean
}

/**
 * Returns why nothing is sent for a document: its last record has the same request. Returns null otherwise, and after a
 * failed or rejected record, because the document did not reach the service then.
 */
export function findReasonToDiscardDocument(
  digest: string | null,
  lastRecord: LastRecordOfDocument | null,
): string | null {
  if (lastRecord === null || digest === null || lastRecord.digest !== digest) return null
  const isNewTry = (lastRecord.state === 'failed' || lastRecord.state === 'rejected') && !lastRecord.mayHaveArrived
  return isNewTry ? null : `unchanged since outbox:${lastRecord.outboxId}`
}

/** The digest of a discarded record whose request may have reached the service with unknown contents. */
export const unknownDigest = 'unknown'

/** Leaves out the submission's own id, so that equal requests have equal digests. */
export const computeRequestDigest = ({
  id,
  resource,
  body,
}: Pick<CapturedRecord, 'id' | 'resource' | 'body'>): string | null =>
  body === null
    ? null
    : createHash('sha256')
        .update(JSON.stringify([resource, body.replaceAll(id, '')]))
        .digest('hex')

/**
 * Decides which records of documents end as discarded. Call this only while no other instance captures.
 *
 * Records of rows that the ledger knows are returned unchanged. If a batch has several rows of a document, only the
 * first is sent or rejected, because all have the same content.
 */
export async function decideDiscardsOfDocuments(
  db: Database,
  records: readonly CapturedRecord[],
): Promise<{ records: readonly CapturedRecord[]; discarded: ReadonlyMap<string, string> }> {
  const discarded = new Map<string, string>()
  const documents = records.filter(({ document }) => (document ?? null) !== null)
  if (documents.length === 0) return { records, discarded }
  const standing = await readStanding(db, documents)
  const lasts = new Map<string, LastRecordOfDocument | null>()
  const rejected = new Map<string, CapturedRecord>()
  const decided = records.map((record) => {
    const found = standing.get(record.outboxId)
    if (found === undefined || found.isKnown) return record
    const name = JSON.stringify([record.document, record.type])
    const digest = computeRequestDigest(record)
    const last = lasts.get(name) ?? found.last
    const reason =
      record.discarded ??
      (record.error === null
        ? findReasonToDiscardDocument(digest, last)
        : findReasonToDiscardRejected(record, rejected.get(name)))
    if (reason === null) {
      const state = record.error === null ? 'queued' : 'rejected'
      if (state === 'rejected') rejected.set(name, record)
      else rejected.delete(name)
      lasts.set(name, { outboxId: record.outboxId, state, digest, mayHaveArrived: false })
      return record
    }
    discarded.set(record.outboxId, reason)
    return {
      ...record,
      discarded: reason,
      body: null,
      amounts: null,
      payload: record.body === null ? record.payload : null,
    }
  })
  return { records: decided, discarded }
}

/** Compares only records of one batch, because the mapping file may be repaired before the next batch. */
const findReasonToDiscardRejected = (record: CapturedRecord, before: CapturedRecord | undefined): string | null =>
  before !== undefined && before.payload === record.payload && before.error === record.error
    ? `unchanged since outbox:${before.outboxId}`
    : null

/**
 * Selects the outbox id of the document's newest record that may reach the service and is later than this record. An
 * older version must not be sent after that record.
 */
export const newerOutboxIdOfDocumentSql = (submissionAlias: string): string =>
  newestOutboxIdSql(submissionAlias, 'true')

/** Leaves out a newer record that waits behind this one, because the service gets that record last. */
export const overtakingOutboxIdOfDocumentSql = (submissionAlias: string): string =>
  newestOutboxIdSql(submissionAlias, `(not n.held or n.key is distinct from ${submissionAlias}.key)`)

function newestOutboxIdSql(submissionAlias: string, isNewerSql: string): string {
  const isLater = (other: string) => `${isLaterVersionSql(submissionAlias, other)} and ${mayHaveBeenSentSql(other)}`
  return `(select newer.outbox_id from (
      select outbox_id, seq from outboxd.submission n where ${isLater('n')} and (n.state not in ('failed', 'rejected') or n.may_have_arrived) and ${isNewerSql}
      union all select outbox_id, seq from outboxd.document d
        where d.id = outboxd.document_id(${submissionAlias}.document, ${submissionAlias}.type) and d.seq > ${submissionAlias}.seq
    ) newer order by newer.seq desc limit 1)`
}

const isLaterVersionSql = (submissionAlias: string, other: string) =>
  `hashtextextended(${other}.document, 0) = hashtextextended(${submissionAlias}.document, 0) and ${other}.document = ${submissionAlias}.document
     and ${other}.type = ${submissionAlias}.type and ${other}.seq > ${submissionAlias}.seq`

/**
 * True if a later failed or rejected version of the document is queued by the same statement. Of several such versions
 * only the newest is queued, because otherwise the service gets the document several times.
 *
 * @param idsSql the ids of the statement's records: an array or a subquery
 */
export const hasLaterVersionAmongSql = (submissionAlias: string, idsSql: string): string =>
  `exists (select from outboxd.submission v where ${isLaterVersionSql(submissionAlias, 'v')}
     and v.id = any(${idsSql}) and v.state in ('failed', 'rejected'))`

/** Returns the outbox id of the newest version for each older version among these records, by submission id. */
export async function readNewerVersionsAmong(
  db: Database,
  submissionIds: readonly string[],
): Promise<Map<string, string>> {
  const { rows } = await db.query<{ id: string; newer: string }>(
    `select id, newer from (
       select id, outbox_id, first_value(outbox_id) over (partition by type, document order by seq desc) as newer
       from outboxd.submission where id = any($1::uuid[]) and document is not null and state in ('failed', 'rejected')
     ) versions where newer <> outbox_id`,
    [submissionIds],
  )
  return new Map(rows.map(({ id, newer }) => [id, newer]))
}

/** The requests of discarded records without a digest cannot have reached the service. */
const mayHaveBeenSentSql = (alias: string) => `(${alias}.state <> 'discarded' or ${alias}.request_digest is not null)`

/** Returns the newer versions that were or may be sent before these records, by submission id. */
export async function readOvertakingOutboxIds(
  db: Database,
  submissionIds: readonly string[],
): Promise<Map<string, string>> {
  const { rows } = await db.query<{ id: string; newer: string }>(
    `select id, newer from (
       select s.id, ${overtakingOutboxIdOfDocumentSql('s')} as newer
       from outboxd.submission s where s.id = any($1::uuid[]) and s.document is not null
     ) versions where newer is not null`,
    [submissionIds],
  )
  return new Map(rows.map(({ id, newer }) => [id, newer]))
}

/**
 * After its transaction failed, or a probe did not find it, a record may be submitted again. Lets the record fail
 * instead if a newer version of its document overtook it, because the service would get the older version last.
 */
export async function failResubmissionsOfOvertakenDocuments<T extends Transition>(
  db: Database,
  transitions: readonly T[],
): Promise<readonly T[]> {
  const again = transitions.filter(
    ({ submission, change }) => (submission.state === 'accepted' || submission.probing) && change.state === 'queued',
  )
  if (again.length === 0) return transitions
  // Locks keys early, so that records captured from now on wait behind this one. After a deadlock, the caller retries.
  await lockKeys(
    db,
    again.flatMap(({ submission }) => submission.key ?? []),
  )
  const newer = await readOvertakingOutboxIds(
    db,
    again.map(({ submission }) => submission.id),
  )
  return transitions.map((transition) => {
    const { submission, change } = transition
    const overtakenBy = newer.get(submission.id)
    if (overtakenBy === undefined || change.state !== 'queued') return transition
    const { polls, openedTimes } = change
    const code = 'errorCode' in change ? change.errorCode : null
    const why = transition.message === null ? '' : `${transition.message}; `
    const error = `${why}not submitted again, because outbox:${overtakenBy} has a newer version of the document`
    const failed = {
      state: 'failed',
      doneMs: null,
      errorCode: code,
      error,
      mayHaveArrived: submission.inDoubt,
    } as const
    return {
      ...transition,
      change: {
        ...failed,
        ...(polls !== undefined && { polls }),
        ...(openedTimes !== undefined && { openedTimes }),
        // The service does not know the id that it was asked for.
        ...(submission.probing && { transactionId: null }),
      },
      cause: 'overtaken',
      message: error,
    }
  })
}

interface Standing {
  isKnown: boolean
  last: LastRecordOfDocument | null
}

async function readStanding(db: Database, records: readonly CapturedRecord[]): Promise<Map<string, Standing>> {
  const isOf = (table: string) =>
    `hashtextextended(${table}.document, 0) = hashtextextended(r.document, 0) and ${table}.document = r.document and ${table}.type = r.type and ${mayHaveBeenSentSql(table)}`
  const { rows } = await db.query<Standing & { outboxId: string }>(
    `select r."outboxId",
       exists (select from outboxd.submission t where t.outbox_id = r."outboxId") as "isKnown",
       (select json_build_object('outboxId', outbox_id, 'state', state, 'digest', request_digest, 'mayHaveArrived', may_have_arrived) from (
          (select outbox_id, state, request_digest, may_have_arrived, seq from outboxd.submission s where ${isOf('s')} order by seq desc limit 1)
          union all
          (select outbox_id, state, request_digest, false, seq from outboxd.document d where d.id = outboxd.document_id(r.document, r.type))
        ) last order by seq desc limit 1) as last
     from json_to_recordset($1) as r("outboxId" text, document text, type text)`,
    [JSON.stringify(records.map(({ outboxId, document, type }) => ({ outboxId, document, type })))],
  )
  return new Map(rows.map(({ outboxId, ...standing }) => [outboxId, standing]))
}
