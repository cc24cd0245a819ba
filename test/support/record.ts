import { randomUUID } from 'node:crypto'
import type { CapturedRecord } from '../../src/model/outbox.ts'

/** Starts above the ids that tests name, because a worker counts on through all its files. */
let outboxIds = 1_000_000

/** A captured record that maps. */
export function record(given: Partial<CapturedRecord> = {}): CapturedRecord {
  outboxIds += 1
  return {
    id: randomUUID(),
    outboxId: String(outboxIds),
    type: 'data',
    key: null,
    resource: 'data',
    payload: '{"amount":1.10}',
    body: '{"amount":1.10}',
    tracked: true,
    sendsOwnId: false,
    idempotencyKey: randomUUID(),
    createdAt: null,
    created: null,
    error: null,
    ...given,
  }
}
