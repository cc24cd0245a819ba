import type { Clock } from '../clock.ts'
import type { StoreConfig } from '../config.ts'
import type { TransactionRef } from '../ledger/transactions.ts'
import type { Testimony } from '../operations/askForTransaction.ts'
import type { Databases } from '../operations/databases.ts'
import type { Semaphore } from './createSemaphore.ts'

export interface ConsoleParts {
  databases(): Promise<Databases>
  config: StoreConfig
  clock: Clock
  searches: Semaphore
  /** Spends slots of the budget. Never throws. */
  askService(transaction: TransactionRef): Promise<Testimony>
  /** Writes a line to the console's own log, never a record's data. */
  say(line: string): void
}

export const nowVersionPath = '/now/version'

export function openLazily<T extends AsyncDisposable>(open: () => Promise<T>): AsyncDisposable & { get(): Promise<T> } {
  let opening: Promise<T> | undefined
  return {
    get() {
      const begun = opening ?? open()
      opening = begun
      begun.catch(() => {
        opening = undefined
      })
      return begun
    },
    async [Symbol.asyncDispose]() {
      const opened = await opening?.catch(() => undefined)
      await opened?.[Symbol.asyncDispose]()
    },
  }
}
