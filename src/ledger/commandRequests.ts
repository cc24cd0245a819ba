import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import { systemClock } from '../clock.ts'
import type { RequestEnd } from '../model/service.ts'
import {
  beginTransaction,
  CommitUncertain,
  createPool,
  type Database,
  isReadOnlyServerError,
  type Transaction,
  withConnectionErrorsExplained,
} from '../postgres/database.ts'
import { catalogSearchPathSettings } from '../postgres/sessionSettings.ts'
import { requestOverAfterMs, sendDeadlineMs } from '../requestDurations.ts'
import { assertLedgerBelongsToService, type ServiceIdentity, ServiceMismatch } from './binding.ts'
import {
  beginClaimSql,
  endAnsweredRequests,
  endUnsentRequests,
  hasLimit,
  insertRequests,
  lockBudget,
} from './budget.ts'
import { findHistoryProblem, isStandbyAwaited } from './history/history.ts'
import { readStandingPauses } from './pauses.ts'

export type CommandRequest =
  /** Call `end` after the answer. */
  | { kind: 'request'; mayLeave(): boolean; end(how: RequestEnd): Promise<void> }
  | { kind: 'none-free' }
  /** The ledger may have lost data, or a standby was promoted and no daemon has judged that yet. */
  | { kind: 'history-differs' }

export type LedgerFault = 'unreadable' | 'read-only' | 'standby-awaited'

/** Claims the requests of a command, which count like those of the daemons. Must be closed. */
export class CommandRequests implements AsyncDisposable {
  readonly #url: string
  readonly #pool: pg.Pool
  readonly #instanceId = randomUUID()
  readonly #overAfterMs: number
  /** The id of the row that keeps the next free request for this command; null if it waits for none. */
  #place: string | null = null

  constructor(url: string, { name, requestTimeoutMs }: { name: string; requestTimeoutMs: number }) {
    this.#url = url
    // Durable, because a request that has left must count even after a crash.
    this.#pool = createPool({ url, name, connections: 2, durable: true, settings: catalogSearchPathSettings })
    this.#overAfterMs = requestOverAfterMs(requestTimeoutMs)
  }

  /** False if no daemon has set a limit, so that nothing is to be counted. */
  hasLimit(): Promise<boolean> {
    return hasLimit(this.#pool)
  }

  /** @throws ServiceMismatch */
  async assertLimitIsOf(service: ServiceIdentity): Promise<void> {
    await withConnectionErrorsExplained(this.#url, async () => {
      if (await this.hasLimit()) await assertLedgerBelongsToService(this.#pool, service)
    })
  }

  /** The pause that was raised last. */
  async readPause(): Promise<{ reason: string; detail: string } | null> {
    const [pause] = await readStandingPauses(this.#pool)
    return pause ?? null
  }

  /**
   * @param ifNoneIsFree `keep-place`: the daemons leave the next free request to this command, if it claims again
   *   within `placeKeptMs`
   * @throws CommitUncertain if a failover may undo the claim
   */
  async claim(ifNoneIsFree: 'exceed' | 'keep-place' | 'give-up' = 'give-up'): Promise<CommandRequest> {
    await using transaction = await beginTransaction(this.#pool, {
      mustSurviveFailover: true,
      openingSql: beginClaimSql,
    })
    const { db } = transaction
    if ((await findHistoryProblem(db)) !== null) return { kind: 'history-differs' }
    await leavePlace(db, this.#place)
    if ((await lockBudget(db)) === 0 && ifNoneIsFree !== 'exceed') {
      if (ifNoneIsFree === 'keep-place') {
        const place = await takePlace(db, this.#instanceId)
        await this.#commitWithoutHanging(transaction)
        this.#place = place
      }
      return { kind: 'none-free' }
    }
    const ageMs = systemClock.stopwatch()
    const requester = { instanceId: this.#instanceId, overAfterMs: this.#overAfterMs }
    const ids = await insertRequests(db, requester, [{ purpose: 'question' }])
    await this.#commitWithoutHanging(transaction)
    this.#place = null
    return {
      kind: 'request',
      mayLeave: () => ageMs() < sendDeadlineMs,
      // If this fails, the request counts for as long as it may still arrive.
      end: (how) => this.#end(ids, how).catch(() => {}),
    }
  }

  /**
   * Claims like `claim`, and says why the ledger cannot be used. `outboxd check` shows the cause in its lines about the
   * ledger.
   *
   * @throws ServiceMismatch
   */
  async tryClaim(
    service: ServiceIdentity,
    ifNoneIsFree: 'keep-place' | 'give-up' = 'give-up',
  ): Promise<CommandRequest | { kind: 'no-limit' } | { kind: 'unknown'; why: LedgerFault }> {
    try {
      if (!(await this.hasLimit())) return { kind: 'no-limit' }
      await assertLedgerBelongsToService(this.#pool, service)
      if (await isStandbyAwaited(this.#pool)) return { kind: 'unknown', why: 'standby-awaited' }
      return await this.claim(ifNoneIsFree)
    } catch (error) {
      if (error instanceof ServiceMismatch) throw error
      if (error instanceof CommitUncertain) return { kind: 'unknown', why: 'standby-awaited' }
      return { kind: 'unknown', why: isReadOnlyServerError(error) ? 'read-only' : 'unreadable' }
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await leavePlace(this.#pool, this.#place).catch(() => {}) // it is over soon by itself
    await this.#pool.end()
  }

  async #end(ids: readonly string[], how: RequestEnd): Promise<void> {
    if (how === 'answered') await endAnsweredRequests(this.#pool, this.#instanceId, ids)
    if (how === 'unsent') await endUnsentRequests(this.#pool, this.#instanceId, ids)
  }

  /** Cancels a wait for a standby, because the session would outlive the command. */
  async #commitWithoutHanging(transaction: Transaction): Promise<void> {
    const { rows } = await transaction.db.query<{ pid: number }>('select pg_backend_pid() as pid')
    const cancel = () =>
      this.#pool.query(
        `select pg_cancel_backend(pid) from pg_stat_activity where pid = $1 and wait_event = 'SyncRep'`,
        rows.map(({ pid }) => pid),
      )
    const timer = setTimeout(() => void cancel().catch(() => {}), standbyWaitMaxMs)
    try {
      await transaction.commit()
    } finally {
      clearTimeout(timer)
    }
  }
}

const standbyWaitMaxMs = 5_000

/** A command claims again every half second. */
const placeKeptMs = 5_000

/**
 * Inserts a request that never leaves. It counts for `placeKeptMs`, so that the daemons see one free request less: the
 * one that this command claims, without this row.
 */
async function takePlace(db: Database, instanceId: string): Promise<string | null> {
  const { rows } = await db.query<{ id: string }>(
    `insert into outboxd.request (instance_id, purpose, over_at)
     select $1, 'question', clock_timestamp() + ($2 - window_ms) * interval '1 ms' from outboxd.ledger returning id`,
    [instanceId, placeKeptMs],
  )
  return rows[0]?.id ?? null
}

async function leavePlace(db: Database, id: string | null): Promise<void> {
  if (id !== null) await db.query('delete from outboxd.request where id = $1', [id])
}

export const historyDiffersMessage =
  'the ledger may have lost committed data, and so forgotten requests that count. `outboxd status` says what to do'
