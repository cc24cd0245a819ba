import type { Clock } from '../clock.ts'
import type { PollLoad, RequestDemand } from '../model/dispatch.ts'
import { type Database, queryOne } from '../postgres/database.ts'
import { isBehindOwnVersionSql } from './documents.ts'

/** Reading the load costs as much as a claim. */
const loadEveryWindows = 1 / 12

/** Reads what is due and what may be sent, without a lock: an instance that finds nothing to do holds up no other. */
export class Demand {
  readonly #ledger: Database
  readonly #clock: Pick<Clock, 'stopwatch'>
  readonly #loadEveryMs: number
  #load: PollLoad = { tracked: 0, submissionsSent: 0 }
  #loadAgeMs = () => Number.POSITIVE_INFINITY

  constructor(ledger: Database, windowMs: number, clock: Pick<Clock, 'stopwatch'>) {
    this.#ledger = ledger
    this.#clock = clock
    this.#loadEveryMs = windowMs * loadEveryWindows
  }

  /** @param countMax ready records and due polls are counted up to this */
  async read(countMax: number): Promise<RequestDemand> {
    const demand = await readRequestDemand(this.#ledger, countMax)
    const isBusy = demand.submissionsReady + demand.pollsDue + this.#load.tracked + this.#load.submissionsSent > 0
    if (!isBusy || this.#loadAgeMs() < this.#loadEveryMs) return demand
    this.#load = await readPollLoad(this.#ledger)
    this.#loadAgeMs = this.#clock.stopwatch()
    return demand
  }

  /** As it was last read. */
  load(): PollLoad {
    return this.#load
  }
}

/**
 * Call this outside a transaction, so that `now()` is the time of the call. (An index scan can use `now()`, but not
 * clock_timestamp().) Counts in the order of an index, because old statistics may make the planner read the whole
 * ledger. Polls that are due in one second are in no order, so the next one is the first of several.
 */
export async function readRequestDemand(db: Database, countMax: number): Promise<RequestDemand> {
  return queryOne<RequestDemand>(
    db,
    `select
       (select count(*)::int from (select from outboxd.submission q
          where state = 'queued' and not held and due_at <= now() and not ${isBehindOwnVersionSql('q')}
          order by due_at limit $1) ready) as "submissionsReady",
       (select count(*)::int from (select from outboxd.poll where is_due order by priority desc limit $1) due) as "pollsDue",
       (select count(*)::int from (select from outboxd.poll where is_rare_and_due order by priority desc limit $1) due)
         as "rarePollsDue",
       coalesce((select extract(epoch from now() - due_at)::float8 * 1000 from outboxd.poll
          where is_due order by priority desc limit 1), 0) as "pollOverdueMs",
       coalesce(budget.rate_limit, 0) as limit, coalesce(budget.free, 0) as free,
       extract(epoch from budget.next_free_at - now())::float8 * 1000 as "nextFreeMs",
       (select extract(epoch from least(
          (select min(due_at) from outboxd.submission
             where state = 'queued' and not held and due_at > now()),
          (select min(due_at) from (select due_at from outboxd.poll
             where not is_under_way and not is_rare and due_at > now() order by priority desc limit 20) next),
          (select due_at from outboxd.poll
             where not is_under_way and is_rare and due_at > now() order by priority desc limit 1)
        ) - now())::float8 * 1000) as "nextDueMs",
       (select coalesce(json_agg(json_build_object('reason', reason,
          'leftMs', extract(epoch from until - now()) * 1000,
          'forMs', extract(epoch from now() - since) * 1000)), '[]')
        from outboxd.standing_pause) as pauses,
       (select json_build_object('leftMs', extract(epoch from case when until is not null then greatest(until, trial_until) end - now()) * 1000,
          'hasGetWorked', has_get_worked)
        from outboxd.pause where reason = 'breaker' and state <> 'closed') as breaker
     from outboxd.budget`,
    [countMax],
  )
}

export async function readPollLoad(db: Database): Promise<PollLoad> {
  return queryOne<PollLoad>(
    db,
    `select
       (select count(*)::int from (select from outboxd.poll where not is_under_way and not is_rare
          order by priority desc limit 10000) t) as tracked,
       (select count(*) filter (where purpose = 'submission')::int from (
          select purpose from outboxd.request where over_at > now() - l.window_ms * interval '1 ms'
          order by over_at desc limit least(l.rate_limit, 10000)) newest) as "submissionsSent"
     from outboxd.ledger l`,
  )
}
