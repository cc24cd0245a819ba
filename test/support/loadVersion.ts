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
    const read = (name: string) => readFileSync(join(checkout, 'test', 'ledger', `version-${version}`, name), 'utf8')
    await client.query(read(`${what}.sql`))
    // The sandbox takes no schema of before 0.2.0.
    if (version === '0.1.0' && what === 'service') await client.query(read('sandboxTo0.2.0.sql'))
  } finally {
    await client.end()
  }
}
