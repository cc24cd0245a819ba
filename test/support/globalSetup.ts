import type { TestProject } from 'vitest/node'
import { createDatabaseOn, migrateAll, startPostgres } from './postgres.ts'

declare module 'vitest' {
  export interface ProvidedContext {
    postgresUrl: string
  }
}

/** One PostgreSQL for the whole run, without the syncs that only a power cut needs, and the template that test files clone. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const postgres = await startPostgres({ fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off' })
  await migrateAll(await createDatabaseOn(postgres.url, 'outboxd_template'))
  project.provide('postgresUrl', postgres.url)
  return postgres.stop
}
