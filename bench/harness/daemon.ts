import { join } from 'node:path'
import { type Child, startChild } from './child.ts'

export interface DaemonOptions {
  databaseUrl: string
  serviceUrl: string
  /** The daemon’s variables, on top of the defaults below. */
  env?: Record<string, string>
  flags?: readonly string[]
  /** Another main than the checkout's. */
  main?: string
}

const root = join(import.meta.dirname, '..', '..')

/** The checkout's own main. */
export const sourceMain = join(root, 'src', 'main.ts')

/** The environment of a daemon on this database and this service. */
export function daemonEnvironment(databaseUrl: string, serviceUrl: string): Record<string, string> {
  return {
    DATABASE_URL: databaseUrl,
    SERVICE_BASE_URL: serviceUrl,
    SERVICE_AUTH_URL: serviceUrl,
    SERVICE_CLIENT_ID: 'sandbox',
    SERVICE_CLIENT_SECRET: 'sandbox-secret',
    MAPPINGS_DIR: join(root, 'mappings'),
    HTTP_PORT: '0',
  }
}

/** Starts the daemon as a user would, `node src/main.ts run`, and resolves when it runs. */
export async function startDaemon(options: DaemonOptions): Promise<Child> {
  const { databaseUrl, serviceUrl, env = {}, flags = [], main = sourceMain } = options
  const child = startChild({
    script: main,
    args: ['run'],
    flags,
    env: { ...daemonEnvironment(databaseUrl, serviceUrl), ...env },
  })
  await child.line((line) => line.includes('"event":"running"'))
  return child
}
