import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { preparePostgresProgram, runInitdb, startServer, stopServer } from '../../src/embedded/postgresServer.ts'

/** A PostgreSQL in a temporary folder, on loopback, for tests and benchmarks. */
export interface EmbeddedPostgres {
  /** `postgres://` URL of the maintenance database, with password. */
  readonly url: string
  readonly port: number
  readonly pid: number
  /** The folder of its data. `stop` removes it. */
  readonly folder: string
  /** Ends the server like a power cut (SIGQUIT), and starts it again with the same port and data. */
  restartImmediately(): Promise<void>
  /** Ends the server and removes its folder. */
  stop(): Promise<void>
}

/**
 * Starts a PostgreSQL from the binaries in the npm registry.
 *
 * @param settings server settings on top of the defaults, such as `{ fsync: 'off' }`
 * @param binDir  folder with binaries of a different PostgreSQL, instead of those from npm
 * @throws Error naming the missing package if this platform has no binaries, or with the server's output
 */
export async function startEmbeddedPostgres(
  settings: Record<string, string> = {},
  binDir?: string,
): Promise<EmbeddedPostgres> {
  const root = await mkdtemp(join(tmpdir(), 'outboxd-postgres-'))
  try {
    return await startIn(root, settings, binDir)
  } catch (error) {
    await rm(root, { recursive: true, force: true })
    throw error
  }
}

async function startIn(
  root: string,
  settings: Record<string, string>,
  binDir: string | undefined,
): Promise<EmbeddedPostgres> {
  const program = await preparePostgresProgram(root, binDir)
  const dataDir = join(root, 'data')
  const passwordFile = join(root, 'password')
  await writeFile(passwordFile, 'postgres\n', { mode: 0o644 })
  await runInitdb(program, dataDir, ['--auth=scram-sha-256', `--pwfile=${passwordFile}`, '--no-sync'], root)

  const port = await freePort()
  const defaults = { port: String(port), max_connections: '300', jit: 'off' } // as in outboxd's sessions; Debian's default is on
  const options = { dataDir, folder: root, settings: { ...defaults, ...settings } }
  let server = await startServer(program, options)

  return {
    url: `postgres://postgres:postgres@127.0.0.1:${port}/postgres?sslmode=disable`,
    port,
    folder: root,
    get pid() {
      return server.pid as number
    },
    async restartImmediately() {
      await stopServer(server, 'SIGQUIT')
      server = await startServer(program, options)
    },
    async stop() {
      await stopServer(server, 'SIGINT')
      await rm(root, { recursive: true, force: true })
    },
  }
}

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const { port } = probe.address() as { port: number }
  probe.close()
  await once(probe, 'close')
  return port
}
