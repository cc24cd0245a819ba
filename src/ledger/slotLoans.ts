import { randomUUID } from 'node:crypto'
import type pg from 'pg'
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
import { computeRequestsEndAfterMs, permitValidMs } from '../slotDurations.ts'
import { assertLedgerBelongsToService, type ServiceIdentity, ServiceMismatch } from './binding.ts'
import * as budget from './budget.ts'
import { emptyInstanceMemory, isStandbyAwaited, readAndJudgeHistory } from './history/history.ts'
import { readActivePauses } from './pauses.ts'

export type LentSlot =
  /** Call `done` after the answer. The slot is free one window later. */
  | { kind: 'slot'; mayLeave(): boolean; done(): Promise<void> }
  | { kind: 'none-free' }
  | { kind: 'paused'; reason: string; detail: string }

/** Lends a command one slot for each of its requests. Must be closed. */
export type CommandSlots = NonNullable<Awaited<ReturnType<typeof openCommandSlots>>>

/**
 * Opens the slots of a ledger that belongs to the command's service (`assertSlotsBelongToService`).
 * @returns null if no daemon has set up a budget
 */
export async function openCommandSlots(
  url: string,
  { windowMs, requestTimeoutMs, stopwatch }: { windowMs: number; requestTimeoutMs: number; stopwatch(): () => number },
) {
  const pool = openBudgetPool(url, 'outboxd discover')
  let hasAnySlots = false
  try {
    hasAnySlots = await budget.hasAnySlots(pool)
  } finally {
    if (!hasAnySlots) await pool.end()
  }
  if (!hasAnySlots) return null
  return {
    async take(): Promise<LentSlot> {
      const [pause] = await readActivePauses(pool)
      if (pause !== undefined) return { kind: 'paused', ...pause }
      const ageMs = stopwatch()
      const loan = await lend(pool, 1, computeRequestsEndAfterMs(windowMs, requestTimeoutMs))
      if (loan.kind === 'history-differs') return { kind: 'paused', reason: 'history', detail: historyDiffersMessage }
      if (loan.kind === 'none-free') return loan
      return { kind: 'slot', mayLeave: () => ageMs() < permitValidMs(windowMs), done: () => loan.giveBack(pool) }
    },
    [Symbol.asyncDispose]: () => pool.end(),
  }
}

export const historyDiffersMessage =
  'the ledger may have lost committed data, and so forgotten which slots are taken. `outboxd status` says what to do'

/** Durable, because a taken slot must survive a crash once its request has left. */
const openBudgetPool = (url: string, name: string): pg.Pool =>
  createPool({ url, name, connections: 2, durable: true, settings: catalogSearchPathSettings })

type Lent =
  | { kind: 'lent'; giveBack(db: Database): Promise<void> }
  | { kind: 'none-free' }
  /** The ledger may have lost data, or a standby was promoted and no daemon has judged that yet. */
  | { kind: 'history-differs' }

/** @throws CommitUncertain if a failover may undo the taking */
async function lend(pool: pg.Pool, permits: number, requestsEndAfterMs: number): Promise<Lent> {
  const take = async (db: Database): Promise<Lent> => {
    if (!(await isHistoryUnchanged(db))) return { kind: 'history-differs' }
    const slots = await budget.takeSlots(db, permits, requestsEndAfterMs, randomUUID())
    const spent = (used: boolean) =>
      slots.map((slot) => ({ ...slot, used, submissions: 0, polls: 0, others: used ? slot.permits : 0 }))
    if (slots.reduce((sum, slot) => sum + slot.permits, 0) >= permits)
      return { kind: 'lent', giveBack: (later) => budget.returnSlots(later, spent(true)) }
    if (slots.length > 0) await budget.returnSlots(db, spent(false))
    return { kind: 'none-free' }
  }
  await using transaction = await beginTransaction(pool, { mustSurviveFailover: true })
  const lent = await take(transaction.db)
  await commitWithoutHanging(pool, transaction)
  return lent
}

const standbyWaitMaxMs = 5_000

/** Cancels a wait for a standby, because the session would outlive the command. */
async function commitWithoutHanging(pool: pg.Pool, transaction: Transaction): Promise<void> {
  const { rows } = await transaction.db.query<{ pid: number }>('select pg_backend_pid() as pid')
  const cancel = () =>
    pool.query(
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

/** Judges by the history alone. Only daemons also search the ledger for rows that name lost transactions. */
async function isHistoryUnchanged(db: Database): Promise<boolean> {
  const findRowNamingTransaction = async () => ({ kind: 'none' }) as const
  // The value of LEDGER_STANDBY does not matter, because only a daemon may accept a promotion.
  const { verdict } = await readAndJudgeHistory(db, emptyInstanceMemory, { standby: 'none', findRowNamingTransaction })
  return verdict.kind === 'stands'
}

export type SlotLoan =
  /** Call `giveBack` after the answers. The slots are free one window later. */
  | { kind: 'loan'; giveBack(): Promise<void> }
  | { kind: 'none-free' }
  | { kind: 'no-budget' }
  | { kind: 'history-differs' }
  | { kind: 'unknown'; why: LedgerFault }

export type LedgerFault = 'unreadable' | 'read-only' | 'standby-awaited'

/** @throws ServiceMismatch */
export async function borrowSlots(
  url: string,
  { permits, requestsEndAfterMs, service }: { permits: number; requestsEndAfterMs: number; service: ServiceIdentity },
): Promise<SlotLoan> {
  const onBudget = <T>(work: (pool: pg.Pool) => Promise<T>) => withBudgetPool(url, work)
  try {
    return await onBudget(async (pool) => {
      if (!(await budget.hasAnySlots(pool))) return { kind: 'no-budget' }
      await assertLedgerBelongsToService(pool, service)
      if (await isStandbyAwaited(pool)) return { kind: 'unknown', why: 'standby-awaited' }
      const loan = await lend(pool, permits, requestsEndAfterMs)
      return loan.kind !== 'lent' ? loan : { kind: 'loan', giveBack: () => onBudget(loan.giveBack) }
    })
  } catch (error) {
    if (error instanceof ServiceMismatch) throw error
    if (error instanceof Error && error.cause instanceof CommitUncertain)
      return { kind: 'unknown', why: 'standby-awaited' }
    return { kind: 'unknown', why: isReadOnlyServerError(error) ? 'read-only' : 'unreadable' } // `outboxd check` shows why in its lines about the ledger
  }
}

/**
 * Does nothing if no daemon has set up a budget.
 * @throws ServiceMismatch
 */
export async function assertSlotsBelongToService(url: string, service: ServiceIdentity): Promise<void> {
  await withBudgetPool(url, async (pool) => {
    if (await budget.hasAnySlots(pool)) await assertLedgerBelongsToService(pool, service)
  })
}

async function withBudgetPool<T>(url: string, work: (pool: pg.Pool) => Promise<T>): Promise<T> {
  const pool = openBudgetPool(url, 'outboxd check')
  try {
    return await withConnectionErrorsExplained(url, () => work(pool))
  } finally {
    await pool.end()
  }
}
