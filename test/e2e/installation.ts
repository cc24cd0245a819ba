import { mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type pg from 'pg'
import { onTestFinished } from 'vitest'
import { startSandbox } from '../../src/sandbox/startSandbox.ts'
import { daemonEnvironment, startDaemon } from '../support/daemon.ts'
import { createDatabase } from '../support/database.ts'

/** A database, a service with a high limit, and a folder of mappings. */
export interface Installation {
  /** The database of both the ERP and the ledger. */
  pool: pg.Pool
  url: string
  mappingsDir: string
  serviceUrl: string
  /** Starts one more instance. @returns a function that stops it */
  startInstance(env?: Record<string, string>): Promise<() => Promise<unknown>>
  /** Bodies of the POSTs in the order in which the service got them. */
  arrivals(): Promise<string[]>
}

/** @param files the folder of mappings: name and text */
export async function install(files: Record<string, string>): Promise<Installation> {
  const [database, service] = await Promise.all([createDatabase(), createDatabase('sandbox_template')])
  onTestFinished(() => database[Symbol.asyncDispose]())
  onTestFinished(() => service[Symbol.asyncDispose]())
  const sandbox = await startSandbox({
    databaseUrl: service.url,
    port: 0,
    rateLimitRequests: 100_000,
    processingTime: 'constant:0.05',
    synchronousCommit: 'off',
  })
  onTestFinished(() => sandbox.close())
  const mappingsDir = await mkdtemp(join(tmpdir(), 'outboxd-mappings-'))
  for (const [name, text] of Object.entries(files)) await writeFile(join(mappingsDir, name), text)

  return {
    pool: database.pool,
    url: database.url,
    mappingsDir,
    serviceUrl: sandbox.url,
    async startInstance(more = {}) {
      const daemon = await startDaemon(
        daemonEnvironment(database.url, sandbox.url, {
          RATE_LIMIT_REQUESTS: '30000',
          MAPPINGS_DIR: mappingsDir,
          LOG_LEVEL: 'error',
          ...more,
        }),
      )
      onTestFinished(daemon.stop)
      return daemon.stop
    },
    async arrivals() {
      const { rows } = await service.pool.query<{ body: string }>(
        `select body from sandbox.ledger where method = 'POST' and path like '/api/%' order by sequence`,
      )
      return rows.map(({ body }) => body)
    },
  }
}
