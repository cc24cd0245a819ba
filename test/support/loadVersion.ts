import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { checkout } from './program.ts'

export type Version = '0.1.0' | '0.2.0'

/** Brings an empty database to what a version left behind, by pg_dump: its ledger with the outbox, or the sandbox's own. */
export async function loadVersion(url: string, version: Version, what: 'ledger' | 'service'): Promise<void> {
  const client = new pg.Client(url) // of its own: the dump empties the search path
  await client.connect()
  try {
    await client.query(readFileSync(join(checkout, 'test', 'ledger', `version-${version}`, `${what}.sql`), 'utf8'))
  } finally {
    await client.end()
  }
}
