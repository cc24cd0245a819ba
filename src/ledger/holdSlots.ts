import type { Database } from '../postgres/database.ts'

/**
 * Slots that were set later than now, by a clock that was ahead, last from now for as long as they were set for, which is no less than they
 * had left. In a transaction.
 */
export async function holdSlotsFromNow(db: Database): Promise<void> {
  await db.query(
    // Not free_at - set_at: before PostgreSQL 17 a slot that is free since ever has no such difference.
    `update outboxd.slot set free_at = free_at + (clock_timestamp() - set_at), set_at = clock_timestamp()
     where set_at > clock_timestamp()`,
  )
}
