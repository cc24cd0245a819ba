import { randomUUID } from 'node:crypto'
import { createPool, type Database, isReadOnlyServerError } from '../postgres/database.ts'
import { inspectDatabase } from '../postgres/inspectDatabase.ts'
import { catalogSearchPathSettings } from '../postgres/sessionSettings.ts'
import { computeRequestsEndAfterMs, permitValidMs } from '../slotDurations.ts'
import { assertLedgerBelongsToService, type ServiceIdentity, ServiceMismatch } from './binding.ts'
import * as budget from './budget.ts'
import { isActivePauseSql } from './pauses.ts'

export type LentSlot =
  /** Call `done` after the answer. The slot is free one window later. */
  | { kind: 'slot'; mayLeave(): boolean; done(): Promise<void> }
  | { kind: 'none-free' }
  | { kind: 'paused'; reason: string; detail: string }

/** Lends a command one slot for each of its requests. Must be closed. */
export type CommandSlots = NonNullable<Awaited<ReturnType<typeof openCommandSlots>>>

/** @returns null if no daemon has set up a budget */
export async function openCommandSlots(
  url: string,
  { windowMs, requestTimeoutMs, stopwatch }: { windowMs: number; requestTimeoutMs: number; stopwatch(): () => number },
) {
  const pool = createPool({ url, name: 'outboxd discover', connections: 1, settings: catalogSearchPathSettings })
  let hasAnySlots = false
  try {
    hasAnySlots = await budget.hasAnySlots(pool)
  } finally {
    if (!hasAnySlots) await pool.end()
  }
  if (!hasAnySlots) return null
  return {
    async take(): Promise<LentSlot> {
      const pause = await readPause(pool)
      if (pause !== null) return { kind: 'paused', ...pause }
      const ageMs = stopwatch()
      const loan = await lend(pool, 1, computeRequestsEndAfterMs(windowMs, requestTimeoutMs))
      if (loan === null) return { kind: 'none-free' }
      return { kind: 'slot', mayLeave: () => ageMs() < permitValidMs(windowMs), done: () => loan.giveBack(pool) }
    },
    [Symbol.asyncDispose]: () => pool.end(),
  }
}

/** @returns null if too few slots are free */
async function lend(
  db: Database,
  permits: number,
  requestsEndAfterMs: number,
): Promise<{ giveBack(db: Database): Promise<void> } | null> {
  const slots = await budget.takeSlots(db, permits, requestsEndAfterMs, randomUUID())
  const spent = (used: boolean) =>
    slots.map((slot) => ({ ...slot, used, submissions: 0, polls: 0, others: used ? slot.permits : 0 }))
  if (slots.reduce((sum, slot) => sum + slot.permits, 0) >= permits)
    return { giveBack: (later) => budget.returnSlots(later, spent(true)) }
  if (slots.length > 0) await budget.returnSlots(db, spent(false))
  return null
}

async function readPause(db: Database): Promise<{ reason: string; detail: string } | null> {
  const { rows } = await db.query<{ reason: string; detail: string }>(
    `select reason, detail from outboxd.pause where ${isActivePauseSql} order by reason limit 1`,
  )
  return rows[0] ?? null
}

export type SlotLoan =
  /** Call `giveBack` after the answers. The slots are free one window later. */
  | { kind: 'loan'; giveBack(): Promise<void> }
  | { kind: 'none-free' }
  | { kind: 'no-budget' }
  | { kind: 'unknown'; readOnly: boolean }

export async function borrowSlots(
  url: string,
  { permits, requestsEndAfterMs, service }: { permits: number; requestsEndAfterMs: number; service: ServiceIdentity },
): Promise<SlotLoan> {
  const onBudget = <T>(look: (db: Database) => Promise<T>) =>
    inspectDatabase({ variable: 'STATE_DATABASE_URL', url, read: look })
  try {
    return await onBudget(async (db) => {
      if (!(await budget.hasAnySlots(db))) return { kind: 'no-budget' }
      await assertLedgerBelongsToService(db, service)
      const loan = await lend(db, permits, requestsEndAfterMs)
      return loan === null ? { kind: 'none-free' } : { kind: 'loan', giveBack: () => onBudget(loan.giveBack) }
    })
  } catch (error) {
    if (error instanceof ServiceMismatch) throw error
    return { kind: 'unknown', readOnly: isReadOnlyServerError(error) } // `outboxd check` shows why in its lines about the ledger
  }
}
