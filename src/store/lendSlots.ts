import { randomUUID } from 'node:crypto'
import * as budget from '../ledger/budget.ts'
import { activePause } from '../ledger/pauses.ts'
import { createPool, type Database } from '../postgres/database.ts'
import { ownNames } from '../postgres/sessionSettings.ts'
import { permitValidMs, slotReachMs } from '../slotReach.ts'

/** What came of asking the budget for one request. */
export type LentSlot =
  | {
      kind: 'slot'
      mayLeave(): boolean /** After the answer: it is free again one window later. */
      done(): Promise<void>
    }
  | { kind: 'none-free' }
  /** Nobody sends at the moment. */
  | { kind: 'paused'; reason: string; detail: string }

/** Slots of the ledger's budget one by one, for a command that makes many requests. Must be closed. */
export interface SlotLender extends AsyncDisposable {
  take(): Promise<LentSlot>
}

interface LenderOptions {
  url: string
  windowMs: number
  requestTimeoutMs: number
  ageMs(): () => number
}

/** @returns null where there is a database without a budget in it: no daemon spends from it. @throws pg's errors where it cannot be reached */
export async function openSlotLender({
  url,
  windowMs,
  requestTimeoutMs,
  ageMs,
}: LenderOptions): Promise<SlotLender | null> {
  const pool = createPool({ url, name: 'outboxd discover', connections: 1, onIdleError: () => {}, settings: ownNames })
  const close = () => pool.end()
  try {
    if (!(await budget.hasSlots(pool))) {
      await close()
      return null
    }
  } catch (error) {
    await close()
    throw error
  }
  const instance = randomUUID()
  const reachMs = slotReachMs(windowMs, requestTimeoutMs)
  return {
    async take() {
      const pause = await readPause(pool)
      if (pause !== null) return { kind: 'paused', ...pause }
      const age = ageMs()
      const slots = await budget.takeSlots(pool, 1, reachMs, instance)
      if (slots.length === 0) return { kind: 'none-free' }
      const spent = slots.map((slot) => ({ ...slot, used: true, submissions: 0, polls: 0, others: 1 }))
      return {
        kind: 'slot',
        mayLeave: () => age() < permitValidMs(windowMs),
        done: () => budget.giveBack(pool, spent),
      }
    },
    [Symbol.asyncDispose]: close,
  }
}

async function readPause(db: Database): Promise<{ reason: string; detail: string } | null> {
  const { rows } = await db.query<{ reason: string; detail: string }>(
    `select reason, detail from outboxd.pause where ${activePause} order by reason limit 1`,
  )
  return rows[0] ?? null
}
