import type { RaisedProblem } from '../model/problem.ts'
import { toComparableId } from '../model/service.ts'
import type { Transition } from '../model/submission.ts'
import type { Database } from '../postgres/database.ts'
import type { Resource } from '../resources.ts'

export interface TransactionRef {
  resource: Resource
  transactionId: string
}

/** Includes the resource, because a transaction and an order may have the same id. */
export const toTransactionName = ({ resource, transactionId }: TransactionRef): string =>
  `${resource} ${toComparableId(transactionId)}`

/** Compares a UUID in upper and lower case, so that an index can be used. */
export function hasTransactionIdSql(idSql: string, columnSql = 's.transaction_id'): string {
  const spelled = (how: string) =>
    `case when ${idSql} ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then ${how}(${idSql}) end`
  return `${columnSql} in (${idSql}, ${spelled('lower')}, ${spelled('upper')})`
}

export interface TransactionHolder extends TransactionRef {
  submissionId: string
  outboxId: string
  idByPerson: boolean
}

/**
 * Keeps other sessions from writing one of these ids, because two instances that get the same id at once would not see
 * each other's row. Call this before `lockKeys`. Locks in sorted order, to avoid deadlocks.
 */
export async function lockTransactionIds(db: Database, ids: readonly TransactionRef[]): Promise<void> {
  await db.query(
    `select pg_advisory_xact_lock(7163, id) from (
       select distinct hashtext('outboxd'::name || ' ' || id) as id from unnest($1::text[]) id order by id
     ) ids`,
    [ids.map(toTransactionName)],
  )
}

export async function readTransactionHolders(
  db: Database,
  ids: readonly TransactionRef[],
): Promise<TransactionHolder[]> {
  const { rows } = await db.query<TransactionHolder>(
    `select s.resource, s.transaction_id as "transactionId", s.id as "submissionId", s.outbox_id as "outboxId",
       s.id_by_person as "idByPerson"
     from unnest($1::text[], $2::text[]) wanted(resource, id)
     join outboxd.submission s on ${hasTransactionIdSql('wanted.id')} and s.resource = wanted.resource order by s.seq`,
    [ids.map(({ resource }) => resource), ids.map(({ transactionId }) => transactionId)],
  )
  return rows
}

export async function readOtherTransactionHolder(
  db: Database,
  transaction: TransactionRef,
  submissionId: string,
): Promise<TransactionHolder | null> {
  return (
    (await readTransactionHolders(db, [transaction])).find((holder) => holder.submissionId !== submissionId) ?? null
  )
}

/** Returns the id that the service has just given; null if the step brings no id. */
export function findNewTransaction({ submission, change }: Transition): TransactionRef | null {
  // A probe asks for the submission's own id, or for an id from Location.
  const isOwn = change.state === 'sending' && change.transactionId === submission.id
  const isGiven = submission.state === 'sending' && !submission.probing && !isOwn
  return isGiven && change.transactionId ? { resource: submission.resource, transactionId: change.transactionId } : null
}

/**
 * Makes a record uncertain if it was accepted under an id that another record has. A caching proxy may give one answer
 * to many records, and polls of that id would complete a record that never arrived. The first record keeps the id.
 */
export function makeDuplicateTransactionsUncertain<T extends Transition>(
  transitions: readonly T[],
  holders: readonly TransactionHolder[],
): T[] {
  const owners = new Map<string, Pick<TransactionHolder, 'submissionId' | 'outboxId'>>()
  for (const holder of holders)
    if (!owners.has(toTransactionName(holder))) owners.set(toTransactionName(holder), holder)
  return transitions.map((transition) => {
    const given = findNewTransaction(transition)
    if (given === null) return transition
    const { id, outboxId } = transition.submission
    const owner = owners.get(toTransactionName(given))
    if (owner === undefined) owners.set(toTransactionName(given), { submissionId: id, outboxId })
    return owner === undefined || owner.submissionId === id ? transition : duplicate(transition, owner.outboxId)
  })
}

function duplicate<T extends Transition>(transition: T, ownersOutboxId: string): T {
  const message = `the service gave the id ${transition.change.transactionId}, which outbox:${ownersOutboxId} already has. The record may have arrived`
  const change = { state: 'uncertain', repeatedAfter401: false, doneMs: null, errorCode: null, error: message } as const
  return { ...transition, change, cause: 'duplicate_id', message }
}

/**
 * Finds up to two problems. Subject '' is for records that were accepted more than `stuckAfterMs` ago and have not
 * ended, subject 'sending' for records that were sent as long ago and may not have arrived.
 */
export async function findStuckSubmissionProblems(
  db: Database,
  stuckAfterMs: number,
): Promise<Omit<RaisedProblem, 'kind'>[]> {
  const { rows } = await db.query<{ probing: boolean; count: number; oldest: string; since: string }>(
    `select probing, count(*)::int as count, (array_agg(outbox_id order by at))[1] as oldest,
       to_char(min(at) at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS"Z"') as since
     from outboxd.submission, lateral (select coalesce(accepted_at, sent_at) as at) asked
     where ended_at is null and (state = 'accepted' or probing) and at < clock_timestamp() - $1 * interval '1 ms'
     group by probing order by probing`,
    [stuckAfterMs],
  )
  return rows.map(({ probing, count, oldest, since }) => {
    const records = count === 1 ? 'record' : 'records'
    const what = probing
      ? `the service has not said what became of ${count} ${records} sent to it`
      : `the service has not ended ${count} accepted ${records}`
    const detail = `${what}, the oldest outbox:${oldest} since ${since}`
    return { subject: probing ? 'sending' : '', detail, retryInMs: null }
  })
}

/** More statuses than these are not told. */
const foreignStatusesMax = 20

/**
 * Finds the statuses that the service gave to transactions at their last poll and the interface does not have, one
 * problem each.
 *
 * @see docs/reference/interface.md, 3
 */
export async function findForeignStatusProblems(db: Database): Promise<Omit<RaisedProblem, 'kind'>[]> {
  const { rows } = await db.query<{ status: string; count: number; oldest: string }>(
    `select foreign_status as status, count(*)::int as count,
       (array_agg(outbox_id order by coalesce(accepted_at, sent_at)))[1] as oldest
     from outboxd.submission where foreign_status is not null
     group by foreign_status order by foreign_status limit $1`,
    [foreignStatusesMax],
  )
  return rows.map(({ status, count, oldest }) => ({
    // Quoted, because a status may be empty or a sentence.
    subject: JSON.stringify(status),
    detail: count === 1 ? `1 record, outbox:${oldest}` : `${count} records, the oldest outbox:${oldest}`,
    retryInMs: null,
  }))
}
