import pg from 'pg'
import type { TestProject } from 'vitest/node'
import { startEmbeddedPostgres } from '../../src/demo/embeddedPostgres.ts'

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
  await client.query('create database outboxd_template')
  await client.end()
  project.provide('postgresUrl', postgres.url)
  return () => postgres.stop()
}
