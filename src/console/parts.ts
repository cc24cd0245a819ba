import type { Clock } from '../clock.ts'
import type { StoreConfig } from '../config.ts'
import type { TransactionRef } from '../ledger/transactions.ts'
import type { Testimony } from '../operations/askForTransaction.ts'
import type { Databases } from '../operations/databases.ts'
import type { Live } from './live/createLive.ts'
import type { Searches } from './searches.ts'

/** What every page of the console is made with. */
export interface ConsoleParts {
  /** The databases (`openLater`). @throws DatabaseUnusable; a route lets it through, and the viewer is told in words */
  databases(): Promise<Databases>
  config: StoreConfig
  clock: Clock
  /** Tells viewers what has changed. */
  live: Live
  searches: Searches
  /** Asks the service once for a transaction, with slots of the budget. Never throws. */
  askService(transaction: TransactionRef): Promise<Testimony>
  /** Writes a line for the person who runs the console; the data of a record never stand in it. */
  say(line: string): void
}

/** Opens something when it is first asked for, keeps it open, and tries again if that failed. Disposal closes it. */
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
