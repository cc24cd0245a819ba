import { chmod, mkdtemp, rm, statfs, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestProject } from 'vitest/node'
import { startReaper } from '../../src/embedded/reaper.ts'
import { startSandbox } from '../../src/sandbox/startSandbox.ts'
import { createDatabaseOn, migrateAll, startPostgres } from './postgres.ts'

declare module 'vitest' {
  export interface ProvidedContext {
    postgresUrl: string
  }
}

/**
 * Starts one PostgreSQL for the whole run (of the binaries in TEST_POSTGRES, if set), without the syncs that only a
 * power cut needs, and makes the templates that test files clone. Also makes one temporary folder for tests and their
 * programs, which is removed however the run ends.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const reaper = startReaper()
  const folder = await mkdtemp(join(await fastestFolder(), 'tests-')) // short: the paths of sockets have a bound
  reaper.addFolder(folder)
  await chmod(folder, 0o711) // root's PostgreSQL runs as nobody
  process.env.TMPDIR = folder

  const access = join(folder, 'pg_hba.conf')
  await writeFile(access, accessRules)
  const settings = { hba_file: access, fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off' }
  const postgres = await startPostgres(settings, process.env.TEST_POSTGRES)
  await migrateAll(await createDatabaseOn(postgres.url, 'outboxd_template'))
  const sandbox = await startSandbox({ databaseUrl: await createDatabaseOn(postgres.url, 'sandbox_template'), port: 0 })
  await sandbox.close()
  project.provide('postgresUrl', postgres.url)
  return async () => {
    await postgres.stop()
    await rm(folder, { recursive: true, force: true, maxRetries: 5 })
    await reaper.done()
  }
}

/** A run opens ten thousand sessions, and checking a password doubles the time of each. Only other roles need one. */
const accessRules = `
host all postgres 127.0.0.1/32 trust
host all all      127.0.0.1/32 scram-sha-256
local all all                  scram-sha-256
`

const neededBytes = 4 * 1024 ** 3

/** Returns a folder in memory if there is enough, because a run creates hundreds of databases of some 900 files. */
async function fastestFolder(): Promise<string> {
  const memory = '/dev/shm'
  const { bavail, bsize } = await statfs(memory).catch(() => ({ bavail: 0, bsize: 0 }))
  return process.env.TMPDIR === undefined && bavail * bsize >= neededBytes ? memory : tmpdir()
}
