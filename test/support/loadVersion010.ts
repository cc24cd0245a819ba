import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { checkout } from './program.ts'

/** Brings an empty database to what version 0.1.0 left behind, by pg_dump: its ledger with the outbox, or the sandbox's own. */
export async function loadVersion010(url: string, what: 'ledger' | 'service'): Promise<void> {
  const client = new pg.Client(url) // of its own: the dump empties the search path
  await client.connect()
  try {
    await client.query(readFileSync(join(checkout, 'test', 'ledger', 'version-0.1.0', `${what}.sql`), 'utf8'))
  } finally {
    await client.end()
  }
}
