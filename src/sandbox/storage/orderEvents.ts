import type pg from 'pg'
import { PgBoss } from 'pg-boss'
import type { OrderCreatedEvent } from '../endpoints/apiSchemas.ts'

export const queueSchema = 'sandbox_queue'
export const queueName = 'OrderCreated'

const tenYearsSeconds = 315_360_000

export class OrderEvents {
  readonly #boss: PgBoss

  /** @param pool runs pg-boss's statements. Its background work is off. */
  constructor(pool: pg.Pool) {
    this.#boss = new PgBoss({
      db: { executeSql: (text, values) => pool.query(text, values) },
      schema: queueSchema,
      supervise: false,
      schedule: false,
    })
    this.#boss.on('error', (error) => process.stderr.write(`sandbox: message queue: ${error.message}\n`))
  }

  async open(): Promise<void> {
    await this.#boss.start()
    await this.#boss.createQueue(queueName, { retentionSeconds: tenYearsSeconds })
  }

  /** Puts the event on the queue, in the transaction of `session`. */
  async put(session: pg.ClientBase, event: OrderCreatedEvent): Promise<void> {
    const db = { executeSql: (text: string, values?: unknown[]) => session.query(text, values) }
    await this.#boss.insert(queueName, [{ id: event.id, data: event }], { db })
  }

  async close(): Promise<void> {
    await this.#boss.stop({ graceful: false, close: false })
  }
}
