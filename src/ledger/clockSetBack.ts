import type { Database } from '../postgres/database.ts'
import { tidyRequests } from './budget.ts'

/**
 * The database's clock says when waiting work is due. If it was set back, that work would wait until the clock has
 * caught up. So what waits is due at once, pauses and polls wait for their whole time from now, and no time of the past
 * lies ahead. To do it twice does no harm.
 */
export async function moveTimesAfterClockSetBack(db: Database): Promise<void> {
  for (const statement of statements) await db.query(statement)
  await tidyRequests(db)
  // Last, because heartbeats of the future are what shows that there is something to do.
  await db.query(`update outboxd.instance ${late('beat_at', 'started_at', 'unbroken_since', 'stopped_at')}`)
}

/** Not `least`, which would give a time to what has none, such as the end of a daemon that lives. */
const notAhead = (column: string) =>
  `${column} = case when ${column} > clock_timestamp() then clock_timestamp() else ${column} end`

const late = (...columns: string[]) =>
  `set ${columns.map(notAhead).join(', ')} where greatest(${columns.join(', ')}) > clock_timestamp()`

/** Each by itself. Records under way come before queued ones, as an outcome locks its own record first. */
const statements = [
  `update outboxd.pause set until = until + (clock_timestamp() - set_at),
     trial_until = trial_until + (clock_timestamp() - set_at), ${notAhead('since')}, set_at = clock_timestamp()
   where set_at > clock_timestamp()`,
  // What was seen at an age says nothing when the record is younger.
  `update outboxd.submission set ${['sent_at', 'accepted_at', 'unknown_since'].map(notAhead).join(', ')}, not_done_ms = null
   where greatest(sent_at, accepted_at, unknown_since) > clock_timestamp() and ended_at is null and state <> 'queued'`,
  `update outboxd.submission ${late('due_at')} and state = 'queued'`,
  `update outboxd.submission ${late('report_not_before')} and report_due`,
  `update outboxd.problem ${late('retry_at')}`,
  `update outboxd.poll set due_at = clock_timestamp() + (due_at - planned_at),
     priority = priority + floor(extract(epoch from planned_at - clock_timestamp()))::int, planned_at = clock_timestamp()
   where planned_at > clock_timestamp()`,
]
