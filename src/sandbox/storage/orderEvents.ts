import { EventEmitter } from 'node:events'
import type pg from 'pg'
import { PgBoss } from 'pg-boss'
import type { OrderCreatedEvent } from '../endpoints/requestSchemas.ts'

/** The pg-boss schema of the message queue, and the queue in it. */
export const queueSchema = 'sandbox_queue'
export const queueName = 'OrderCreated'

const tenYearsSeconds = 315_360_000

/** An event, and the client of its order. */
export interface OwnedEvent {
  client: string | null
  event: OrderCreatedEvent
}

/**
 * The durable message queue that OrderCreated goes to.
 *
 * @see docs/interface.md, 6: after the order is stored, before the 201
 */
export class OrderEvents {
  readonly #boss: PgBoss
  readonly #committed = new EventEmitter<{ events: [OwnedEvent[]] }>().setMaxListeners(0)

  /** @param pool runs pg-boss's own statements; the sandbox only sends, so nothing of pg-boss works in the background */
  constructor(pool: pg.Pool) {
    this.#boss = new PgBoss({
      db: { executeSql: (text, values) => pool.query(text, values) },
      schema: queueSchema,
      supervise: false,
      schedule: false,
    })
    this.#boss.on('error', (error) => process.stderr.write(`sandbox: message queue: ${error.message}\n`))
  }

  /** Creates the schema and the queue if they are missing. Run by one sandbox at a time. */
  async open(): Promise<void> {
    await this.#boss.start()
    await this.#boss.createQueue(queueName, { retentionSeconds: tenYearsSeconds })
  }

  /** Puts events on the queue inside `client`'s transaction. */
  async put(client: pg.ClientBase, events: readonly OrderCreatedEvent[]): Promise<void> {
    await this.#boss.insert(
      queueName,
      events.map((event) => ({ id: event.id, data: event })),
      { db: { executeSql: (text, values) => client.query(text, values) } },
    )
  }

  /** Hands committed events to those that `watch`. */
  announce(events: OwnedEvent[]): void {
    this.#committed.emit('events', events)
  }

  /** Calls `see` for every event committed from now on, until `signal` aborts. */
  watch(see: (events: OwnedEvent[]) => void, signal: AbortSignal): void {
    this.#committed.on('events', see)
    signal.addEventListener('abort', () => this.#committed.off('events', see), { once: true })
  }

  async close(): Promise<void> {
    await this.#boss.stop({ graceful: false, close: false })
  }
}
