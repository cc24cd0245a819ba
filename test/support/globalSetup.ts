import pg from 'pg'
import type { TestProject } from 'vitest/node'
import { startEmbeddedPostgres } from '../../src/postgres/embeddedPostgres.ts'
import { migrateOutbox, migrateState } from '../../src/store/migrateStores.ts'

const templateDatabase = 'outboxd_template'

declare module 'vitest' {
  export interface ProvidedContext {
    postgresUrl: string
  }
}

/** One PostgreSQL for the whole run, without the syncs that only a power cut needs, and the template that test files clone. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const postgres = await startEmbeddedPostgres({ fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off' })
  const client = new pg.Client(postgres.url)
  await client.connect()
  await client.query(`create database ${templateDatabase}`)
  await client.end()
  const template = new URL(postgres.url)
  template.pathname = templateDatabase
  await migrateState(template.href)
  await migrateOutbox(template.href, 'outbox')
  project.provide('postgresUrl', postgres.url)
  return () => postgres.stop()
}
