import type { Database } from '../postgres/database.ts'
import { holdSlotsFromNow } from './budget.ts'
import { queueSchema } from './queue.ts'

/**
 * Moves what the ledger has in time by as much as the database's clock has jumped, so that everything is due, free and
 * over when it would have been.
 *
 * Back: nothing legitimate lies later than its own maximum from now. A slot, or a pause, that was set later than now was
 * set before the jump; it lasts from now for as long as it was set for, which is no less than it had left: the proof of
 * docs/budget.md holds. What is due later than now is moved by the jump: where it was due so late in any case, it comes a
 * little early, and that costs a request.
 *
 * Forward: slots and pauses that had not come to their end by the clock as it was get what they lacked. One that was
 * taken between the jump and this moment is as it is.
 *
 * Jobs come before submissions, as everywhere (lockJobs.ts): else each could hold what the other waits for.
 */
export async function moveTimes(db: Database, jumpMs: number): Promise<void> {
  await (jumpMs < 0 ? holdFromNow(db) : prolong(db, jumpMs))
  await moveJobs(db, jumpMs)
  await moveSubmissions(db, jumpMs)
  await moveRetries(db, jumpMs)
  await moveInstances(db, jumpMs)
}

async function holdFromNow(db: Database): Promise<void> {
  await holdSlotsFromNow(db)
  await db.query(
    `update outboxd.pause set until = until + (clock_timestamp() - set_at),
       probe_until = probe_until + (clock_timestamp() - set_at), since = least(since, clock_timestamp())
     where set_at > clock_timestamp()`,
  )
}

async function prolong(db: Database, jumpMs: number): Promise<void> {
  await db.query(
    `update outboxd.slot set free_at = free_at + $1 * interval '1 ms', set_at = set_at + $1 * interval '1 ms'
     where set_at <= clock_timestamp() - $1 * interval '1 ms' and free_at > clock_timestamp() - $1 * interval '1 ms'`,
    [jumpMs],
  )
  await db.query(
    `update outboxd.pause set until = until + $1 * interval '1 ms', probe_until = probe_until + $1 * interval '1 ms'
     where set_at <= clock_timestamp() - $1 * interval '1 ms' and until > clock_timestamp() - $1 * interval '1 ms'`,
    [jumpMs],
  )
}

/** Ages stay what they are; what waits for its time waits for as long as before. */
async function moveSubmissions(db: Database, jumpMs: number): Promise<void> {
  await db.query(
    `update outboxd.submission set due_at = due_at + $1 * interval '1 ms'
     where state = 'queued' and due_at > clock_timestamp()`,
    [jumpMs],
  )
  await db.query(`update outboxd.submission set sent_at = sent_at + $1 * interval '1 ms' where state = 'sending'`, [
    jumpMs,
  ])
  await db.query(
    `update outboxd.submission set accepted_at = accepted_at + $1 * interval '1 ms',
       unknown_since = unknown_since + $1 * interval '1 ms',
       poll_at = case when poll_at > clock_timestamp() then poll_at + $1 * interval '1 ms' else poll_at end
     where job_id is not null`,
    [jumpMs],
  )
}

/** What an outbox row could not be told or taken is tried again after as long as before. */
async function moveRetries(db: Database, jumpMs: number): Promise<void> {
  await db.query(
    `update outboxd.submission set report_not_before = report_not_before + $1 * interval '1 ms'
     where report_due and report_not_before > clock_timestamp()`,
    [jumpMs],
  )
  for (const [table, column] of [
    ['skipped_row', 'retry_at'],
    ['problem', 'retry_at'],
    ['believed_refusal', 'until'],
  ])
    await db.query(
      `update outboxd.${table} set ${column} = ${column} + $1 * interval '1 ms' where ${column} > clock_timestamp()`,
      [jumpMs],
    )
  await db.query('update outboxd.outbox set compared_at = null where compared_at > clock_timestamp()')
}

/**
 * Nobody was heard later than now, and who has been heard for long has been so still. After a jump forward each instance
 * begins its steady time anew by itself, and judges others only when they, too, have been heard again.
 */
async function moveInstances(db: Database, jumpMs: number): Promise<void> {
  await db.query(
    `update outboxd.instance set beat_at = least(beat_at, clock_timestamp()),
       started_at = started_at + $1 * interval '1 ms' where greatest(beat_at, started_at) > clock_timestamp()`,
    [jumpMs],
  )
  await db.query('update outboxd.instance_setting set said_at = clock_timestamp() where said_at > clock_timestamp()')
}

/** pg-boss compares its times with the same clock; a job in hand counts as touched now. */
async function moveJobs(db: Database, jumpMs: number): Promise<void> {
  await db.query(
    `update ${queueSchema}.job set start_after = start_after + $1 * interval '1 ms'
     where state in ('created', 'retry') and start_after > clock_timestamp()`,
    [jumpMs],
  )
  await db.query(
    `update ${queueSchema}.job set started_on = started_on + $1 * interval '1 ms', heartbeat_on = clock_timestamp()
     where state = 'active'`,
    [jumpMs],
  )
  await db.query(
    `update ${queueSchema}.queue set monitor_on = null, monitor_claim_on = null, maintain_on = null
     where greatest(monitor_on, monitor_claim_on, maintain_on) > clock_timestamp()`,
  )
}
