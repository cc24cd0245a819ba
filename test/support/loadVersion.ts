import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { checkout } from './program.ts'

export type Version = '0.1.0' | '0.2.0'

/** Loads a version's pg_dump into an empty database: its ledger with the outbox, or the sandbox's ledger. */
export async function loadVersion(url: string, version: Version, what: 'ledger' | 'service'): Promise<void> {
  const client = new pg.Client(url) // a separate client, because the dump empties the search path
  await client.connect()
  try {
    const read = (name: string) => readFileSync(join(checkout, 'test', 'ledger', `version-${version}`, name), 'utf8')
    await client.query(read(`${what}.sql`))
    // The sandbox accepts no schema from before 0.2.0.
    if (version === '0.1.0' && what === 'service') await client.query(read('sandboxTo0.2.0.sql'))
  } finally {
    await client.end()
  }
}
