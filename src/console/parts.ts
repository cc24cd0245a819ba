import type { Clock } from '../clock.ts'
import type { StoreConfig } from '../config.ts'
import type { TransactionRef } from '../ledger/transactions.ts'
import type { Testimony } from '../operations/askForTransaction.ts'
import type { OperatorStore } from '../store/operatorStore.ts'
import type { Live } from './live/createLive.ts'

/** What every page of the console is made with. */
export interface ConsoleParts {
  /**
   * The databases: opened when they are first asked for and kept open, tried again each time while they are away.
   *
   * @throws DatabaseUnusable; a route lets it through, and the reader is told in words
   */
  store(): Promise<OperatorStore>
  config: StoreConfig
  clock: Clock
  /** What tells viewers that something has changed, and reads once for all of them what all of them look at. */
  live: Live
  /** Asks the service once for a transaction, with slots of the budget. Never throws. */
  askService(transaction: TransactionRef): Promise<Testimony>
  /** Writes a line for whoever runs the console; the data of a record never stand in it. */
  say(line: string): void
}

/** Something that is opened when it is first asked for, and tried again where that failed. Disposal closes it. */
export interface OpenedLater<T> extends AsyncDisposable {
  get(): Promise<T>
}

export function openLater<T extends AsyncDisposable>(open: () => Promise<T>): OpenedLater<T> {
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
