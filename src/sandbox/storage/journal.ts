import pg from 'pg'
import type { Endpoint, OrderCreatedEvent } from '../endpoints/requestSchemas.ts'
import type { Step } from '../scenario/scenarioSchema.ts'
import { DatabaseAway } from './sandboxDatabase.ts'

export interface LedgerRow {
  arrivedUs: number
  endpoint: Endpoint | 'other'
  method: string
  path: string
  client: string | null
  address: string
  idempotencyKey: string | null
  /** Without the client secret. */
  body: string
  status: number | null
  counted: boolean
  faultId: number | null
}

export type Effect = TransactionEffect | OrderEffect

interface CommonEffect {
  id: string
  customerId: string
  position: number
  statuses: readonly Step[] | null
  doneUs: number
}

interface TransactionEffect extends CommonEffect {
  kind: 'transaction'
  acceptedUs: number
  outcome: 'completed' | 'failed'
  errorCode: string | null
}

interface OrderEffect extends CommonEffect {
  kind: 'order'
  items: string
  createdUs: number
  event: OrderCreatedEvent
}

export interface Entry {
  row: LedgerRow
  effect: Effect | undefined
}

const batchMax = 500

/** Bounded, because behind a locked table each batch takes seconds. */
const waitMsMax = 5_000

const tooBusy = `a request waited for more than ${waitMsMax} ms to be written`

interface Waiting {
  entry: Entry
  sinceMs: number
  done: () => void
  failed: (error: unknown) => void
}

/**
 * Writes requests and their effects before the answers go out. Batches what arrives during a commit, for a thousand
 * requests a second.
 */
export class Journal {
  readonly #writeBatch: (entries: readonly Entry[]) => Promise<void>
  readonly #waiting: Waiting[] = []
  #running: Promise<void> | undefined

  constructor(writeBatch: (entries: readonly Entry[]) => Promise<void>) {
    this.#writeBatch = writeBatch
  }

  /** @throws the database's error; DatabaseAway if the commit failed or is unknown */
  write(entry: Entry): Promise<void> {
    return new Promise((done, failed) => {
      this.#waiting.push({ entry, sinceMs: performance.now(), done, failed })
      this.#running ??= this.#run()
    })
  }

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
      if (batch.length === 1 || !isEntryRefused(error)) for (const { failed } of batch) failed(error)
      else for (const single of batch) await this.#writeOrSplit([single])
    }
  }
}

/** True if Postgres refused a value or a constraint of one entry, so that the others can be written. */
export function isEntryRefused(error: unknown): boolean {
  return error instanceof pg.DatabaseError && /^(2[0-3]|54)/.test(error.code ?? '')
}
