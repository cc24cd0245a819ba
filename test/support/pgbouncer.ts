import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from './freePort.ts'
import { until } from './until.ts'

/** True if pgbouncer is installed, as .ci/run does. */
export const hasPgbouncer = spawnSync('pgbouncer', ['--version']).error === undefined

export interface Pgbouncer extends AsyncDisposable {
  /** Returns the URL of a database through pgbouncer. */
  through(databaseUrl: string): string
  /** Kills pgbouncer with SIGKILL, as a crash does. Its sessions on the server end, too. */
  crash(): Promise<void>
  /** Starts pgbouncer again on its port. */
  restart(): Promise<void>
}

/**
 * Starts a pgbouncer that assigns sessions per transaction.
 *
 * @param ignored startup parameters that it ignores instead of refusing the connection
 * @param poolSize how many sessions of the server each database has
 */
export async function startPgbouncer(
  serverUrl: string,
  ignored: readonly string[] = [],
  poolSize = 20,
): Promise<Pgbouncer> {
  const server = new URL(serverUrl)
  const dir = mkdtempSync(join(tmpdir(), 'pgbouncer-'))
  const port = await freePort()
  const file = join(dir, 'pgbouncer.ini')
  writeFileSync(
    file,
    `[databases]
* = host=${server.hostname} port=${server.port} user=${server.username} password=${decodeURIComponent(server.password)}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = ${poolSize}
ignore_startup_parameters = ${ignored.join(', ')}
`,
  )
  const start = async () => {
    const child = spawn('pgbouncer', ['-q', file], { ...unprivileged(dir, file), stdio: 'ignore' })
    await until(() => answers(port), Boolean)
    return child
  }
  let child = await start()
  return {
    through(databaseUrl) {
      const url = new URL(databaseUrl)
      url.port = String(port)
      return url.href
    },
    crash: () => end(child),
    async restart() {
      child = await start()
    },
    [Symbol.asyncDispose]: () => end(child),
  }
}

/** Returns the account nobody if we are root, because pgbouncer refuses to run as root. */
function unprivileged(...paths: string[]): { uid?: number; gid?: number } {
  if (process.getuid?.() !== 0) return {}
  spawnSync('chown', ['65534:65534', ...paths])
  return { uid: 65534, gid: 65534 }
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy()
      resolve(true)
    })
    socket.on('error', () => resolve(false))
  })
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  child.kill('SIGKILL')
  await ended
}
