import type pg from 'pg'
import { readSnapshot } from '../ledger/snapshot.ts'
import { ended, type PauseReason, type State } from '../model.ts'
import { countOutbox } from './erp.ts'

/** How far the records are. */
export interface Progress {
  total: number
  /** Records whose outbox rows say what became of them. */
  done: number
  /** Written by the ERP and not yet captured by the daemon. */
  inOutbox: number
  /** Of the ledger. */
  states: Record<State, number>
  budgetFree: number
  budgetAll: number
  pauses: PauseReason[]
  elapsedMs: number
  /** About how long it still takes. */
  leftMs: number
}

/** Per record that is asked for; the rest is for those that were asked too early. */
const pollsPerRecord = 1.1
/** Of ten records (recordKinds.ts) eight take a POST and polls, one a POST alone, and one nothing. */
const requestsPerRecord = 0.8 * (1 + pollsPerRecord) + 0.1
const windowMs = 60_000
/** The service's own time, and the way back to the outbox. */
const lastStretchMs = 3_000

/** Reads where the records are now. */
export async function readProgress(erp: pg.Pool, total: number, elapsedMs: number): Promise<Progress> {
  const [outbox, ledger, planned] = await Promise.all([countOutbox(erp), readSnapshot(erp), readPlanned(erp)])
  const done = ended.reduce((sum, state) => sum + (outbox.get(state) ?? 0), 0)
  const { submissions: states, rateAvailable: budgetFree, rateCapacity: budgetAll } = ledger
  const written = [...outbox.values()].reduce((sum, n) => sum + n, 0)
  const unsent = total - written + (outbox.get('new') ?? 0) + states.queued
  return {
    total,
    done,
    inOutbox: outbox.get('new') ?? 0,
    states,
    budgetFree,
    budgetAll,
    pauses: ledger.pauses.map(({ reason }) => reason),
    elapsedMs,
    leftMs: done === total ? 0 : leftMs(unsent, states.sending + states.accepted, planned),
  }
}

/** What the daemon has planned so far, in milliseconds from now. */
export interface Planned {
  /** When each slot of the budget is free, the first one first; 0 for those that are. */
  slotsFreeMs: readonly number[]
  /** When the last poll is due. */
  lastPollMs: number
}

/** The budget of a service that has not been asked for anything yet. */
export const untouched: Planned = { slotsFreeMs: new Array<number>(100).fill(0), lastPollMs: 0 }

async function readPlanned(erp: pg.Pool): Promise<Planned> {
  const { rows } = await erp.query<Planned>(
    `select
       (select coalesce(array_agg(ms order by ms), '{}') from (
          select greatest(0, extract(epoch from greatest(free_at, clock_timestamp()) - clock_timestamp()) * 1000)::float8 as ms
          from outboxd.slot where permits > 0) slots) as "slotsFreeMs",
       (select coalesce(extract(epoch from max(poll_at) - clock_timestamp()) * 1000, 0)::float8
        from outboxd.submission where job_id is not null) as "lastPollMs"`,
  )
  const planned = rows[0] ?? untouched
  return planned.slotsFreeMs.length > 0 ? planned : { ...planned, slotsFreeMs: untouched.slotsFreeMs } // the daemon is about to make them
}

/**
 * About how long it takes until all are through, milliseconds: until the slot for the last request is free, and the last
 * poll is due.
 *
 * @param unsent  records that have yet to be sent
 * @param tracked records that have yet to be asked for
 */
export function leftMs(unsent: number, tracked: number, { slotsFreeMs, lastPollMs }: Planned): number {
  const requests = Math.ceil(unsent * requestsPerRecord + tracked)
  const windowsBefore = Math.max(0, Math.ceil(requests / slotsFreeMs.length) - 1)
  const lastSlotMs = slotsFreeMs[requests - windowsBefore * slotsFreeMs.length - 1] ?? 0
  return lastStretchMs + Math.max(0, lastPollMs, lastSlotMs + windowsBefore * windowMs)
}
