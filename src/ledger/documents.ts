import { createHash } from 'node:crypto'
import type { CapturedRecord, Changes } from '../model/outbox.ts'
import { mayEarlierHaveArrived, type State, type Transition } from '../model/submission.ts'
import type { Database } from '../postgres/database.ts'
import { lockKeys } from './keyOrder.ts'

/*
 * A row of the outbox may stand for a document of the ERP. What is read for it is a version of the document. Versions are
 * in the order of capture, not of rows, because a transaction with a lower id may commit later:
 *
 *     lockDocuments        the rows' documents are locked
 *     (the daemon)         reads their contents, in a new statement
 *     lockEndedVersions    failed and rejected versions are locked, then the caller locks all keys
 *     readDocuments        locks the versions that wait, and reads what was sent
 *     decideVersions       decides what becomes of each version
 *     supersede            ends the versions before that were not sent
 *
 * Only the newest version is sent. Versions before it that were not sent end as discarded (`superseded`).
 */

export interface Version {
  outboxId: string
  /** Null if nobody knows what was sent. */
  digest: string | null
}

interface SentVersion extends Version {
  /** True if an operator discarded it after an attempt: nobody said that it arrived. */
  wasGivenUp: boolean
}

interface UnsentVersion extends Version {
  id: string
  state: 'queued' | 'failed' | 'rejected'
  changedAfterSent: boolean
}

/** A document as the ledger knows it. */
export interface KnownDocument {
  /** The newest version that reached, or may reach, the service. */
  sent: SentVersion | null
  /** The newest first. */
  unsent: readonly UnsentVersion[]
}

export interface KnownDocuments {
  /** By id. */
  documents: ReadonlyMap<string, KnownDocument>
  /** Rows that have a record already. */
  knownRows: ReadonlySet<string>
}

type DocumentRow = Pick<CapturedRecord, 'outboxId' | 'type' | 'document'>

/** @returns a hash, because keys may be long, and personal; null if the row does not stand for a document */
export const documentIdOf = ({ type, document = null }: Pick<DocumentRow, 'type' | 'document'>): string | null =>
  document === null ? null : createHash('sha256').update(`${type}\0${document}`).digest('hex')

const documentIdsOf = (rows: readonly DocumentRow[]): string[] => [
  ...new Set(rows.flatMap((row) => documentIdOf(row) ?? [])),
]

/** Locks the documents of these submissions, so that no version is captured until the end of the transaction. */
export async function lockDocumentsOf(db: Database, submissionIds: readonly string[]): Promise<void> {
  await db.query(`${documentsOfSql} for update`, [submissionIds])
}

/** Does not wait for a capture, which may wait for a query of the ERP. @throws lock_not_available, as a lock timeout does */
export async function lockFreeDocumentsOf(db: Database, submissionIds: readonly string[]): Promise<void> {
  await db.query(`${documentsOfSql} for update nowait`, [submissionIds])
}

const documentsOfSql = `
  select from outboxd.document d
  where d.id in (select s.document from outboxd.submission s where s.id = any($1::uuid[])) order by d.id`

/**
 * True for a version that waits and is the newest of its document. A later row may have ended as unchanged because of it.
 */
export const isNewestWaitingVersionSql = (alias: string): string =>
  `(${alias}.state = 'queued' and ${alias}.document is not null and ${newerVersionIdSql(alias)} is null)`

/** Returns those of these submissions that wait and are the newest versions of their documents. */
export async function readNewestWaitingVersions(
  db: Database,
  submissionIds: readonly string[],
): Promise<ReadonlySet<string>> {
  const { rows } = await db.query<{ id: string }>(
    `select s.id from outboxd.submission s where s.id = any($1::uuid[]) and ${isNewestWaitingVersionSql('s')}`,
    [submissionIds],
  )
  return new Set(rows.map(({ id }) => id))
}

/**
 * True for a version that waits while an earlier one of its document is sent, or is to be sent again. If the document's
 * key has changed, or there is none, the key does not hold it back.
 */
export const isBehindOwnVersionSql = (alias: string): string =>
  `(${alias}.document is not null and exists (
      select from outboxd.submission earlier where ${isEarlierVersionUnderWaySql('earlier', alias)}))`

export const isEarlierVersionUnderWaySql = (earlier: string, later: string): string =>
  `(${earlier}.document = ${later}.document and ${earlier}.seq < ${later}.seq and ${earlier}.state in ('queued', 'sending'))`

/** Locks the documents of these rows until the end of the transaction. */
export async function lockDocuments(db: Database, rows: readonly DocumentRow[]): Promise<void> {
  const ids = documentIdsOf(rows)
  if (ids.length === 0) return
  await db.query(
    'insert into outboxd.document (id) select id from unnest($1::text[]) id order by id on conflict do nothing',
    [ids],
  )
  await db.query('select from outboxd.document where id = any($1::text[]) order by id for update', [ids])
}

/**
 * Locks the versions that an operator may send again. A record is locked before its key, but one that waits after it,
 * because the outcome of the record before releases it (docs/why/architecture.md).
 *
 * @returns the keys of the versions that may be superseded
 */
export async function lockEndedVersions(
  db: Database,
  records: readonly DocumentRow[],
): Promise<{ key: string | null }[]> {
  const ids = documentIdsOf(records)
  if (ids.length === 0) return []
  await db.query(
    `select from outboxd.submission where document = any($1::text[]) and state in ('failed', 'rejected')
     order by id for update`,
    [ids],
  )
  const { rows } = await db.query<{ key: string | null }>(
    `select distinct key from outboxd.submission
     where document = any($1::text[]) and state in ('queued', 'failed', 'rejected')`,
    [ids],
  )
  return rows
}

/** Locks the versions that wait. The caller has locked their keys. */
export async function readDocuments(db: Database, records: readonly DocumentRow[]): Promise<KnownDocuments> {
  const ids = documentIdsOf(records)
  if (ids.length === 0) return { documents: new Map(), knownRows: new Set() }
  await db.query(
    `select from outboxd.submission where document = any($1::text[]) and state = 'queued' order by id for update`,
    [ids],
  )
  const { rows } = await db.query<KnownDocument & { id: string }>(
    `select d.id,
       (select json_build_object('outboxId', sent.outbox_id, 'digest', sent.request_digest,
           'wasGivenUp', sent.was_given_up) from (
          (select s.outbox_id, s.request_digest, s.seq, s.state = 'discarded' and s.attempt > 0 and exists (
             select from outboxd.submission_event e where e.submission_id = s.id and e.cause = 'discarded') as was_given_up
           from outboxd.submission s
           where s.document = d.id and s.was_sent order by s.seq desc limit 1)
          union all select d.sent_outbox_id, d.sent_digest, d.sent_seq, false where d.sent_seq is not null
        ) sent order by sent.seq desc limit 1) as sent,
       (select coalesce(json_agg(json_build_object('id', s.id, 'outboxId', s.outbox_id, 'state', s.state,
          'digest', s.request_digest, 'changedAfterSent', s.changed_after_sent) order by s.seq desc), '[]')
        from outboxd.submission s
        where s.document = d.id and s.state in ('queued', 'failed', 'rejected') and not s.was_sent) as unsent
     from outboxd.document d where d.id = any($1::text[])`,
    [ids],
  )
  const known = await db.query<{ outboxId: string }>(
    'select outbox_id as "outboxId" from outboxd.submission where outbox_id = any($1::text[])',
    [records.map(({ outboxId }) => outboxId)],
  )
  return {
    documents: new Map(rows.map(({ id, ...document }) => [id, document])),
    knownRows: new Set(known.rows.map(({ outboxId }) => outboxId)),
  }
}

/** `list`: a person decides whether it is sent. `drop`: nothing is sent. */
export type VersionDecision = { supersedes: readonly UnsentVersion[] } & (
  | { kind: 'send'; why: null }
  | { kind: 'list' | 'drop'; why: string }
)

/**
 * Decides what becomes of a version of a document.
 *
 * @param noRecord why nothing is sent for the document as it stands; null if it meets the condition
 */
export function decideVersion(
  { sent, unsent }: KnownDocument,
  { digest, noRecord }: { digest: string; noRecord: string | null },
  changes: Changes,
): VersionDecision {
  const [newest] = unsent
  const isWaiting = newest !== undefined && (newest.state === 'queued' || newest.changedAfterSent)
  if (isWaiting && newest.digest === digest)
    return { kind: 'drop', why: `unchanged since outbox:${newest.outboxId}`, supersedes: [] }
  if (sent === null && noRecord !== null) return { kind: 'drop', why: noRecord, supersedes: unsent }
  if (sent === null) return { kind: 'send', why: null, supersedes: unsent }
  // A version that was given up while a later one was listed may not have arrived.
  if (sent.digest === digest && !(sent.wasGivenUp && unsent.length > 0))
    return { kind: 'drop', why: `unchanged since outbox:${sent.outboxId}`, supersedes: unsent }
  if (changes === 'each' && noRecord === null) return { kind: 'send', why: null, supersedes: unsent }
  const how = noRecord === null ? '' : `: ${noRecord}`
  return { kind: 'list', why: `changed after it was sent as outbox:${sent.outboxId}${how}`, supersedes: unsent }
}

/** Leaves out the submission's own id, so that equal requests have equal digests. */
export const computeRequestDigest = ({
  id,
  resource,
  body,
}: Pick<CapturedRecord, 'id' | 'resource' | 'body'>): string | null =>
  body === null ? null : digestOf([resource, body.replaceAll(id, '')])

/** A version without a request is known by the reason and, if it does not map, by what was read. */
function computeVersionDigest({ discarded = null, error, payload, ...version }: CapturedRecord): string {
  if (discarded !== null) return digestOf([discarded])
  return computeRequestDigest(version) ?? digestOf([error, payload])
}

const digestOf = (parts: readonly unknown[]): string => createHash('sha256').update(JSON.stringify(parts)).digest('hex')

export interface DecidedVersions {
  /** As they are to be inserted, in the order given. */
  records: CapturedRecord[]
  superseded: readonly { id: string; by: string }[]
}

/**
 * Decides what becomes of the records that are versions of documents. Rows of one document in a batch have one content,
 * so only the first is a version. A row that the ledger knows is returned unchanged.
 */
export function decideVersions(
  records: readonly CapturedRecord[],
  { documents, knownRows }: KnownDocuments,
  changes: Changes,
): DecidedVersions {
  const firsts = new Map<string, { outboxId: string; dropped: string | null }>()
  const superseded: { id: string; by: string }[] = []
  const decided = records.map((record): CapturedRecord => {
    const id = documentIdOf(record)
    const known = id === null ? undefined : documents.get(id)
    if (id === null || known === undefined || knownRows.has(record.outboxId)) return record
    const first = firsts.get(id)
    if (first !== undefined) return dropped(record, first.dropped ?? `unchanged since outbox:${first.outboxId}`)
    const digest = computeVersionDigest(record)
    const { kind, why, supersedes } = decideVersion(known, { digest, noRecord: record.discarded ?? null }, changes)
    superseded.push(...supersedes.map((version) => ({ id: version.id, by: record.outboxId })))
    firsts.set(id, { outboxId: record.outboxId, dropped: kind === 'drop' ? why : null })
    switch (kind) {
      case 'send':
        return { ...record, digest }
      case 'drop':
        return dropped(record, why)
      case 'list': {
        const error = record.error === null ? why : `${why}; ${record.error}`
        return { ...record, digest, discarded: null, changedAfterSent: true, error, amounts: null }
      }
      default:
        return kind satisfies never
    }
  })
  return { records: decided, superseded }
}

/** The row's content is not a version. */
const dropped = (record: CapturedRecord, why: string): CapturedRecord => ({
  ...record,
  document: null,
  discarded: why,
  error: null,
  body: null,
  amounts: null,
  payload: record.body === null ? record.payload : null,
})

/** Ends versions that were not sent. The caller has locked their keys, and releases the keys' next records. */
export async function supersede(db: Database, who: string, superseded: DecidedVersions['superseded']): Promise<void> {
  if (superseded.length === 0) return
  await db.query(
    `with former as (
       select s.id, s.state, s.attempt, 'superseded by outbox:' || r.by as why
       from json_to_recordset($1) as r(id uuid, by text) join outboxd.submission s using (id)
     ), written as (
       update outboxd.submission s set state = 'discarded', revision = revision + 1, held = false, due_at = null,
         changed_after_sent = false, may_have_arrived = false, error = f.why, error_code = null,
         ended_at = clock_timestamp(), report_due = true
       from former f where s.id = f.id
     )
     insert into outboxd.submission_event (submission_id, from_state, to_state, attempt, cause, message, actor, who)
     select id, state, 'discarded', attempt, 'superseded', why, 'outboxd', $2 from former`,
    [JSON.stringify(superseded), who],
  )
}

/** A later version of a document. */
export interface NewerVersion {
  outboxId: string
  /** Null if its record was deleted. */
  state: State | null
  /** False if it has no request, such as if the document was deleted. */
  hasBody: boolean
}

/**
 * The row of the newest later version of a submission's document that is sent or was sent; null if there is none.
 *
 * @param withListed true if a version counts, too, that waits for a person because the document changed after it was sent,
 *   or waited until the person discarded it
 */
export const newerVersionIdSql = (alias: string, withListed = true): string => `(select newer.outbox_id from (
    select v.outbox_id, v.seq from outboxd.submission v
      where v.document = ${alias}.document and v.seq > ${alias}.seq and (v.was_sent or v.state <> 'discarded')
        ${withListed ? '' : "and not (v.changed_after_sent or (v.state = 'discarded' and v.attempt = 0))"}
    union all
    select d.sent_outbox_id, d.sent_seq from outboxd.document d
      where d.id = ${alias}.document and d.sent_seq > ${alias}.seq
  ) newer order by newer.seq desc limit 1)`

/** Selects the `NewerVersion` of submission `s`, or null. */
export const newerVersionSql = (withListed = true): string => `(
  select json_build_object('outboxId', v.newer, 'state', n.state, 'hasBody', coalesce(n.body is not null, false))
  from (select ${newerVersionIdSql('s', withListed)} as newer) v
  left join outboxd.submission n on n.outbox_id = v.newer where v.newer is not null)`

/** Returns the newest later version for each older version among these records, by submission id. */
export async function readNewerVersions(
  db: Database,
  submissionIds: readonly string[],
  withListed = true,
): Promise<Map<string, NewerVersion>> {
  const { rows } = await db.query<{ id: string; newer: NewerVersion }>(
    `select * from (
       select s.id, ${newerVersionSql(withListed)} as newer
       from outboxd.submission s where s.id = any($1::uuid[]) and s.document is not null
     ) versions where newer is not null`,
    [submissionIds],
  )
  return new Map(rows.map(({ id, newer }) => [id, newer]))
}

/**
 * Lets older versions end as superseded that failed, were rejected, or would be submitted again. A later version that
 * waits for a person does not take their place. The caller has locked the documents of these versions, so that no newer
 * one is captured meanwhile, and sent before an older one that is to be submitted again.
 */
export async function supersedeOlderVersions<T extends Transition>(
  db: Database,
  transitions: readonly T[],
): Promise<readonly T[]> {
  const ending = transitions.filter(isEndingOrSubmittedAgain)
  if (ending.length === 0) return transitions
  // Locks keys early, so that records captured from now on wait behind this one. After a deadlock, the caller retries.
  await lockKeys(
    db,
    ending.flatMap(({ submission }) => submission.key ?? []),
  )
  const newer = await readNewerVersions(
    db,
    ending.map(({ submission }) => submission.id),
    false,
  )
  return transitions.map((transition) => {
    const by = newer.get(transition.submission.id)
    return by === undefined ? transition : toSuperseded(transition, by.outboxId)
  })
}

/** True for a step after which an older version would end, or be sent again. */
export const isEndingOrSubmittedAgain = ({ submission, change }: Transition): boolean =>
  change.state === 'failed' ||
  change.state === 'rejected' ||
  (change.state === 'queued' && (submission.state === 'accepted' || submission.probing))

function toSuperseded<T extends Transition>(transition: T, by: string): T {
  const { submission, change, message } = transition
  const { polls, openedTimes } = change
  const error = `${message === null ? '' : `${message}; `}superseded by outbox:${by}`
  return {
    ...transition,
    change: {
      state: 'discarded',
      errorCode: 'errorCode' in change ? change.errorCode : null,
      error,
      mayHaveArrived:
        'mayHaveArrived' in change ? change.mayHaveArrived : mayEarlierHaveArrived({ ...submission, ...change }),
      ...(polls !== undefined && { polls }),
      ...(openedTimes !== undefined && { openedTimes }),
      // The service does not know the id that it was asked for.
      ...(submission.probing && { transactionId: null }),
    },
    cause: 'superseded',
    message: error,
  }
}
