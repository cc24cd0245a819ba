import pg from 'pg'
import { PgBoss } from 'pg-boss'
import { systemClock } from '../../../src/clock.ts'
import { readConfig } from '../../../src/config.ts'
import { loadMappings } from '../../../src/mapping/loadMappings.ts'
import { mapOutboxRecord } from '../../../src/mapping/mapRecord.ts'
import { createServiceClient } from '../../../src/service/client.ts'

/**
 * Opens what a loop has that outboxd is compared with: the same mapping and HTTP client, and pg-boss.
 *
 * @param schema of the loop's pg-boss
 */
export function openLoop(schema: string) {
  const config = readConfig(process.env)
  const mappings = loadMappings(config.mappingsDir)
  const client = createServiceClient({
    service: config.service,
    credentials: () => config.service,
    maxInFlight: config.maxInFlight,
    clock: systemClock,
  })
  const pool = new pg.Pool({ connectionString: config.databaseUrl, max: 12 })
  const boss = new PgBoss({ connectionString: config.databaseUrl, schema, max: 12, schedule: false })
  boss.on('error', (error) => process.stderr.write(`${error}\n`))
  return {
    config,
    client,
    pool,
    boss,
    /** Maps an outbox row. @returns the request's body */
    async readBody(id: string): Promise<string> {
      const { rows } = await pool.query('select type, key, payload::text as payload from outbox where id = $1', [id])
      const record = { ...rows[0], outboxId: id, unreadable: null, createdAt: null }
      const mapped = mapOutboxRecord(mappings, record, id)
      if (mapped.kind !== 'mapped') throw new Error(mapped.reason)
      return mapped.body
    },
  }
}
