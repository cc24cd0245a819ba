import type { Clock } from '../clock.ts'
import type { StoreConfig } from '../config.ts'
import type { TransactionRef } from '../ledger/transactions.ts'
import type { Testimony } from '../operations/askForTransaction.ts'
import type { Databases } from '../operations/databases.ts'
import type { Turns } from './createTurns.ts'

export interface ConsoleParts {
  /** @throws DatabaseUnusable; the error page says so */
  databases(): Promise<Databases>
  config: StoreConfig
  clock: Clock
  /** Turns of whatever searches all records. */
  searches: Turns
  /** Asks the service once for a transaction, with slots of the budget. Never throws. */
  askService(transaction: TransactionRef): Promise<Testimony>
  /** Writes a line to the console's own log, never a record's data. */
  say(line: string): void
}

export const nowVersion = '/now/version'

export function openLater<T extends AsyncDisposable>(open: () => Promise<T>): AsyncDisposable & { get(): Promise<T> } {
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
