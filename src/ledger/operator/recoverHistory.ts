import { type Database, epochMs } from '../../postgres/database.ts'
import { agreeByPerson, isAsSeen, raiseFound } from '../history/writeHistory.ts'
import { type Actor, actorDetail, logAct } from './operator.ts'
import { type DoubtfulRecord, uncertain, wentBack } from './recoverDoubtful.ts'

/** What a person takes records for that may have been sent. */
export type RecoveredAs = 'uncertain' | 'new'

/** What the ledger itself has that may have been sent. Times in epoch milliseconds. */
export interface DoubtfulRecords {
  queued: number
  /** When the first and the last of them were recorded; null where there are none. */
  oldestMs: number | null
  newestMs: number | null
  /** Being sent, or uncertain since a daemon last found the ledger whole: their outcome may be lost. */
  onWire: number
  /** Of these it does not know whether they failed since, and were sent again. */
  accepted: number
}

/** What is queued: nothing was captured since the history was found to be another, and nobody knows what had become of it. */
const isDoubtful = `s.state = 'queued'`

export async function readDoubtful(db: Database): Promise<DoubtfulRecords> {
  const { rows } = await db.query<DoubtfulRecords>(
    `select count(*)::int as queued, ${epochMs('min(s.recorded_at)')} as "oldestMs",
       ${epochMs('max(s.recorded_at)')} as "newestMs",
       (select count(*)::int from outboxd.submission w where w.state = 'sending' and not w.probing or w.state = 'uncertain'
          and w.ended_at >= (select marked_at from outboxd.history)) as "onWire",
       (select count(*)::int from outboxd.submission where state = 'accepted') as accepted
     from outboxd.submission s where ${isDoubtful}`,
  )
  return rows[0] as DoubtfulRecords
}

/** The same, each of them, in their order; and those that were on the wire, uncertain, or refused, and may have been sent again: their rows may know by what id they arrived. */
export async function readDoubtfulRecords(db: Database): Promise<DoubtfulRecord[]> {
  const those = (condition: string) =>
    `select s.seq, s.id, s.revision, s.outbox_id as "outboxId", s.key, s.resource, s.outbox = outboxd.current_outbox() as "isServed",
       not ${isDoubtful} as "isOnlyByName"
     from outboxd.submission s where ${condition}`
  const { rows } = await db.query<DoubtfulRecord>(
    `${those(isDoubtful)} union all ${those(`s.state in ('sending', 'uncertain', 'failed', 'rejected') and not s.probing
       and s.body is not null`)} order by seq`,
  )
  return rows
}

/** How a person goes on. */
export interface RecoveryTerms {
  as: RecoveredAs
  /** When it was found what he saw. */
  seenAtMs: number
  /** Rows that wait and were recorded before that may have been sent, too. */
  isOutboxInDoubt: boolean
  /** What the rows have said before, for the log: how many arrived and became uncertain, and how many the ledger had lost. */
  before: { arrived: number; uncertain: number; rows: number }
}

/** What came of it. */
export interface Recovered {
  queued: number
}

/**
 * Takes what was queued for what the person says it is, and agrees to the history as it is now, so that everybody goes on. In a
 * transaction, within which nobody captures.
 *
 * Sent again, a record keeps its idempotency key and an attempt in doubt: a service that recognises keys answers with E002, and it
 * becomes uncertain. What is accepted may have failed and been sent again: it is not sent again by itself.
 *
 * @returns null where what was seen has changed since
 */
export async function recoverHistory(
  db: Database,
  { as, seenAtMs, isOutboxInDoubt, before }: RecoveryTerms,
  actor: Actor,
): Promise<Recovered | null> {
  await db.query('select pg_advisory_xact_lock(7161)')
  if (!(await isAsSeen(db, seenAtMs))) return null
  let queued = 0
  for (let after: string | null = '-1'; after !== null; ) {
    const taken = await takeQueued(db, { as, after }, actor)
    queued += taken.count
    after = taken.after
  }
  await db.query(
    `update outboxd.submission set in_doubt = true, resubmissions = greatest(resubmissions, 3) where state = 'accepted'`,
  )
  await agreeByPerson(db, actor.who, as === 'uncertain' && isOutboxInDoubt)
  await logAct(db, actor, 'recover', { as, queued, ...before, isOutboxInDoubt })
  return { queued }
}

/** What is found where a person says it. */
export const saysRestored = (who: string): string => `${who} says that it was put back as it had been before`

/** A person says that the ledger was put back as it had been, where nobody can notice: everybody stops. In a transaction. */
export async function sayRestored(db: Database, reachMs: number, actor: Actor): Promise<void> {
  const { who } = actor
  await raiseFound(db, saysRestored(who), { who, reachMs })
  await logAct(db, actor, 'recover --restored', null)
}

/** The last time that a person took in what the ledger had lost. */
export interface LastRecovery {
  who: string
  atMs: number
  as: RecoveredAs
}

/** @returns null where nobody ever did */
export async function readLastRecovery(db: Database): Promise<LastRecovery | null> {
  const { rows } = await db.query<LastRecovery>(
    `select who, ${epochMs('at')} as "atMs", detail ->> 'as' as "as" from outboxd.operator_act
     where act = 'recover' order by id desc limit 1`,
  )
  return rows[0] ?? null
}

/** Some seconds at most. */
const takenMax = 5_000

/** @param after the place in line behind which to begin  @returns where to go on; null: these were all */
async function takeQueued(
  db: Database,
  { as, after }: { as: RecoveredAs; after: string },
  actor: Actor,
): Promise<{ count: number; after: string | null }> {
  const { rows } = await db.query<{ count: number; last: string | null }>(
    `with doubtful as (
       select s.id, s.seq from outboxd.submission s where ${isDoubtful} and s.seq > $5
       order by s.seq limit ${takenMax} for update of s
     ), taken as (
       update outboxd.submission s set ${as === 'uncertain' ? uncertain('$6') : 'in_doubt = true, revision = s.revision + 1'}
       from doubtful where s.id = doubtful.id returning s.id, s.state, s.attempt
     ), event as (
       insert into outboxd.submission_event (submission_id, from_state, to_state, attempt, cause, who, detail)
       select id, 'queued', state, attempt, 'recovered as ' || $1, $2, ${actorDetail('$3', '$4')} from taken
     )
     select count(*)::int as count, max(seq)::text as last from doubtful where $6::text is not null`,
    [as, actor.who, actor.reason, actor.account, after, wentBack(null)],
  )
  const { count, last } = rows[0] as (typeof rows)[number]
  return { count, after: count < takenMax ? null : last }
}
