import pg from 'pg'
import type { Endpoint, OrderCreatedEvent } from '../endpoints/requestSchemas.ts'
import type { Step } from '../scenario/scenarioSchema.ts'
import { DatabaseAway } from './sandboxDatabase.ts'

/** One request as it arrived and as it is about to be answered; a row of sandbox.ledger. */
export interface LedgerRow {
  arrivedUs: number
  endpoint: Endpoint | 'other'
  method: string
  path: string
  client: string | null
  address: string
  idempotencyKey: string | null
  /** As it arrived, without the client secret. */
  body: string
  /** Null: the connection is dropped without an answer. */
  status: number | null
  counted: boolean
  faultId: number | null
}

/** What a request changed. */
export type Effect = TransactionEffect | OrderEffect

interface CommonEffect {
  id: string
  customerId: string
  /** In the client's stream of draws. */
  position: number
  /** What polls find if it goes by a script; else null. */
  statuses: readonly Step[] | null
  doneUs: number
}

export interface TransactionEffect extends CommonEffect {
  kind: 'transaction'
  acceptedUs: number
  outcome: 'completed' | 'failed'
  errorCode: string | null
}

export interface OrderEffect extends CommonEffect {
  kind: 'order'
  /** JSON text. */
  items: string
  createdUs: number
  event: OrderCreatedEvent
}

export interface Entry {
  row: LedgerRow
  effect: Effect | undefined
}

const batchMax = 500

/** An entry that has waited longer fails: behind a locked table, each batch before it takes seconds. */
const waitMsMax = 5_000

const tooBusy = `a request waited for more than ${waitMsMax} ms to be written`

interface Waiting {
  entry: Entry
  sinceMs: number
  done: () => void
  failed: (error: unknown) => void
}

/**
 * Writes the ledger and the effects before the answers go out, many at a time.
 *
 * While one batch is on its way to the database, the next gathers: a thousand requests a second cost as many commits as
 * the database has time for, and each request still waits for its own.
 */
export class Journal {
  readonly #writeBatch: (entries: readonly Entry[]) => Promise<void>
  readonly #waiting: Waiting[] = []
  #running: Promise<void> | undefined

  constructor(writeBatch: (entries: readonly Entry[]) => Promise<void>) {
    this.#writeBatch = writeBatch
  }

  /** Resolves when the entry is committed; rejects with the database's error or DatabaseAway when it is not, or may not be. */
  write(entry: Entry): Promise<void> {
    return new Promise((done, failed) => {
      this.#waiting.push({ entry, sinceMs: performance.now(), done, failed })
      this.#running ??= this.#run()
    })
  }

  /** Resolves when nothing waits to be written. */
  async idle(): Promise<void> {
    await this.#running
  }

  async #run(): Promise<void> {
    while (this.#waiting.length > 0) {
      const longestMs = performance.now() - waitMsMax
      const batch = this.#waiting.splice(0, batchMax)
      const inTime = batch.filter(({ sinceMs }) => sinceMs >= longestMs)
      for (const { sinceMs, failed } of batch) if (sinceMs < longestMs) failed(new DatabaseAway(tooBusy, false))
      if (inTime.length > 0) await this.#writeOrSplit(inTime)
    }
    this.#running = undefined
  }

  async #writeOrSplit(batch: readonly Waiting[]): Promise<void> {
    try {
      await this.#writeBatch(batch.map(({ entry }) => entry))
      for (const { done } of batch) done()
    } catch (error) {
      if (batch.length === 1 || !isOneEntrysFault(error)) for (const { failed } of batch) failed(error)
      else for (const single of batch) await this.#writeOrSplit([single])
    }
  }
}

/** Whether Postgres refused a value or a constraint: nothing was written, and all entries but the bad one can be. */
export function isOneEntrysFault(error: unknown): boolean {
  return error instanceof pg.DatabaseError && /^(2[0-3]|54)/.test(error.code ?? '')
}
