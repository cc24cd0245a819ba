import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { childEnvironment } from '../embedded/postgresServer.ts'
import { startPrivatePostgres } from '../embedded/privatePostgres.ts'
import { startReaper } from '../embedded/reaper.ts'
import { createErpTables } from './erp.ts'
import { CommandEnded, type CommandSpec, type RunningCommand, startCommand } from './startCommand.ts'

/** All processes of the demo. Disposal ends them. */
export interface Installation extends AsyncDisposable {
  readonly erp: pg.Pool
  readonly sandboxUrl: string
  readonly daemonUrl: string
  readonly consoleUrl: string | null
  /** The environment for every other command. */
  readonly variables: Record<string, string>
  readonly folder: string
  watchStatus(onLine: (line: string) => void): RunningCommand
  /** Rejects with CommandEnded when the daemon, the sandbox or the console ends by itself. Never resolves. */
  readonly broken: Promise<never>
}

interface InstallationDeps {
  /** Environment for the commands, without databases, services and secrets. */
  env: Record<string, string | undefined>
  signal: AbortSignal
  hasConsole: boolean
  print: (message: string) => void
}

const mappingsDir = join(import.meta.dirname, '..', '..', 'mappings')
const credentials = { SERVICE_CLIENT_ID: 'demo', SERVICE_CLIENT_SECRET: 'demo-secret' }

/** Longer than the daemon waits at its start. */
const readyWithinMs = 10_000

/** Short, so that the demo ends soon. */
const processingTime = 'lognormal:1:0.3'

/** @throws the signal's reason when it is aborted */
export async function installDemo({ env, signal, hasConsole, print: say }: InstallationDeps): Promise<Installation> {
  await using stack = new AsyncDisposableStack()
  const reaper = startReaper()
  stack.defer(() => reaper.done())
  const folder = await mkdtemp(join(tmpdir(), 'outboxd-demo-'))
  reaper.addFolder(folder)
  stack.defer(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }))
  const base = { ...childEnvironment(env), NODE_ENV: 'production' }
  const start = (spec: Pick<CommandSpec, 'args' | 'env' | 'onLine'>, end = stack) => {
    const command = startCommand({ ...spec, env: { ...base, ...spec.env }, folder, reaper })
    end.defer(() => command.stop())
    return command
  }

  say('starting PostgreSQL in a temporary folder')
  const server = await startPrivatePostgres()
  stack.defer(() => server.stop())
  signal.throwIfAborted()
  const erpUrl = await createDatabase(server.url, 'erp')
  const serviceUrl = await createDatabase(server.url, 'service')

  say('outboxd migrate --outbox; outboxd sandbox')
  const sandbox = start({
    args: ['sandbox', '--port', '0', '--json'],
    env: { SANDBOX_DATABASE_URL: serviceUrl, SANDBOX_PROCESSING_TIME: processingTime, ...credentials },
    onLine: (line) => announcedIn(line, 'url'),
  })
  const databases = { DATABASE_URL: erpUrl, STATE_DATABASE_URL: erpUrl, OUTBOX_TABLE: 'outbox' }
  await completed(start({ args: ['migrate', '--outbox'], env: databases }), 'migrate')
  const erp = openPool(stack, erpUrl)
  await createErpTables(erp)
  const sandboxUrl = await sandbox.announced
  signal.throwIfAborted()

  say('outboxd run (it starts to send when its database has been up for some seconds)')
  const variables = {
    ...databases,
    SERVICE_BASE_URL: sandboxUrl,
    SERVICE_AUTH_URL: sandboxUrl,
    ...credentials,
    MAPPINGS_DIR: mappingsDir,
  }
  const daemon = start({
    args: ['run'],
    env: { ...variables, HTTP_PORT: '0' },
    onLine: (line) => announcedIn(line, 'port'),
  })
  const daemonUrl = `http://127.0.0.1:${await daemon.announced}`
  signal.throwIfAborted()
  await untilReady(daemonUrl, signal)
  const served = hasConsole
    ? start({
        args: ['console', '--port', '0', '--json'],
        env: variables,
        onLine: (line) => announcedIn(line, 'url'),
      })
    : null
  const consoleUrl = served === null ? null : await served.announced
  if (consoleUrl !== null) say(`outboxd console: ${consoleUrl}`)
  signal.throwIfAborted()
  const parts = [failure(daemon, 'run'), failure(sandbox, 'sandbox'), ...(served ? [failure(served, 'console')] : [])]
  const broken = Promise.race(parts)
  broken.catch(() => {}) // they also end when they are stopped
  const all = stack.move()
  return {
    erp,
    sandboxUrl,
    daemonUrl,
    consoleUrl,
    variables,
    folder,
    watchStatus: (onLine) =>
      start({ args: ['status', '--watch'], env: variables, onLine: (line) => void onLine(line) }, all),
    broken,
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  }
}

/** Waits for the daemon's loops, which begin some seconds after Postgres. */
async function untilReady(daemonUrl: string, signal: AbortSignal): Promise<void> {
  const deadlineMs = performance.now() + readyWithinMs
  while (performance.now() < deadlineMs) {
    const answer = await fetch(`${daemonUrl}/readyz`, { signal }).catch(() => undefined)
    await answer?.body?.cancel()
    if (answer?.ok) return
    await delay(100, undefined, { signal })
  }
}

async function createDatabase(server: string, name: string): Promise<string> {
  const client = new pg.Client({ connectionString: server, connectionTimeoutMillis: 5_000 })
  await client.connect()
  try {
    await client.query(`create database ${pg.escapeIdentifier(name)}`)
  } finally {
    await client.end()
  }
  return Object.assign(new URL(server), { pathname: `/${name}` }).href
}

function openPool(stack: AsyncDisposableStack, url: string): pg.Pool {
  const pool = new pg.Pool({ connectionString: url, max: 3, application_name: 'ERP', connectionTimeoutMillis: 5_000 })
  // Ctrl-C in the terminal also reaches PostgreSQL, which ends the connections.
  pool.on('error', () => {})
  pool.on('connect', (client) => client.on('error', () => {}))
  stack.defer(() => pool.end())
  return pool
}

async function completed(command: RunningCommand, name: string): Promise<void> {
  const exitCode = await command.ended
  if (exitCode !== 0) throw new CommandEnded(name, exitCode, command.lastMessage())
}

async function failure(command: RunningCommand, name: string): Promise<never> {
  const exitCode = await command.ended
  throw new CommandEnded(name, exitCode, command.lastMessage())
}

function announcedIn(line: string, field: string): string | undefined {
  try {
    const value = (JSON.parse(line) as Record<string, unknown>)[field]
    return value === undefined ? undefined : String(value)
  } catch {
    return undefined
  }
}
