import type pg from 'pg'
import { PgBoss } from 'pg-boss'
import type { OrderCreatedEvent } from '../endpoints/endpoints.ts'

export const queueSchemaName = 'sandbox_queue'
export const queueName = 'OrderCreated'

const tenYearsSeconds = 315_360_000

export interface OrderEventQueue {
  put(session: pg.ClientBase, event: OrderCreatedEvent): Promise<void>
  close(): Promise<void>
}

/** Starts pg-boss without background work. */
export async function openOrderEventQueue(pool: pg.Pool): Promise<OrderEventQueue> {
  const boss = new PgBoss({
    db: { executeSql: (text, values) => pool.query(text, values) },
    schema: queueSchemaName,
    supervise: false,
    schedule: false,
  })
  boss.on('error', (error) => process.stderr.write(`sandbox: message queue: ${error.message}\n`))
  await boss.start()
  await boss.createQueue(queueName, { retentionSeconds: tenYearsSeconds })
  return {
    async put(session, event) {
      const db = { executeSql: (text: string, values?: unknown[]) => session.query(text, values) }
      await boss.insert(queueName, [{ id: event.id, data: event }], { db })
    },
    close: () => boss.stop({ graceful: false, close: false }),
  }
}
