import { setTimeout as pause } from 'node:timers/promises'
import type { BenchDatabase } from './postgres.ts'
import { arrivals } from './workloads.ts'

/** A window represents a minute. */
const recordsPerWindow = 6

/** Adds a few records per window at random times, the same in each run. */
export async function trickle(database: BenchDatabase, windowMs: number, windows: number): Promise<void> {
  const startMs = performance.now()
  for (const atMs of arrivals(recordsPerWindow, windowMs, windows * windowMs, 1)) {
    await pause(Math.max(0, startMs + atMs - performance.now()))
    await insertOne(database)
  }
}

async function insertOne({ pool }: BenchDatabase): Promise<void> {
  await pool.query(
    `insert into outbox (type, payload) values ('data', '{"customerId": "C1", "orderDate": "2026-11-21T10:00:00Z",
       "amount": 12.5, "field1": "value1", "field2": "idle"}')`,
  )
}
