import { randomUUID } from 'node:crypto'
import * as budget from '../ledger/budget.ts'
import { assertService, ForeignService, type ServiceIdentity } from '../ledger/servedService.ts'
import { type Database, isReadOnly } from '../postgres/database.ts'
import { inspectDatabase } from '../postgres/inspectDatabase.ts'

/** What came of asking the budget for a few requests. */
export type SlotLoan =
  | { kind: 'loan' /** After the answers: used slots are free again one window later. */; giveBack(): Promise<void> }
  | { kind: 'none-free' }
  /** There is a ledger's database and no budget in it: no daemon has set it up yet, so nobody else spends from it. */
  | { kind: 'no-budget' }
  /** Nobody can say what a daemon has spent: the ledger cannot be read, or not be written. */
  | { kind: 'unknown'; readOnly: boolean }

/**
 * Takes slots for requests that are no submission's.
 *
 * @param service that is going to be asked
 * @throws ForeignService if the ledger belongs to another one
 */
export async function borrowSlots(
  url: string,
  { permits, reachMs, service }: { permits: number; reachMs: number; service: ServiceIdentity },
): Promise<SlotLoan> {
  const onBudget = <T>(look: (db: Database) => Promise<T>) =>
    inspectDatabase({ variable: 'STATE_DATABASE_URL', url, look })
  try {
    return await onBudget(async (db) => {
      if (!(await budget.hasSlots(db))) return { kind: 'no-budget' }
      await assertService(db, service)
      const slots = await budget.takeSlots(db, permits, reachMs, randomUUID())
      const spent = (used: boolean) =>
        slots.map((slot) => ({ ...slot, used, submissions: 0, polls: 0, others: used ? slot.permits : 0 }))
      if (slots.reduce((sum, slot) => sum + slot.permits, 0) >= permits)
        return { kind: 'loan', giveBack: () => onBudget((again) => budget.giveBack(again, spent(true))) }
      await budget.giveBack(db, spent(false))
      return { kind: 'none-free' }
    })
  } catch (error) {
    if (error instanceof ForeignService) throw error
    return { kind: 'unknown', readOnly: isReadOnly(error) } // check's finding about the ledger says why
  }
}
