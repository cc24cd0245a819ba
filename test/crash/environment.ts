import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import pg from 'pg'
import { readStoreConfig, type StoreConfig } from '../../src/config.ts'
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../src/postgres/embeddedPostgres.ts'
import { migrateOutbox, migrateState } from '../../src/store/migrateStores.ts'
import type { ProgramCopy } from './programCopy.ts'

/** Compressed time: the limit's window, in seconds, and the requests in it. */
export const rateLimit = { requests: 300, windowSeconds: 6 }

/** What the daemons run against: one Postgres that is crashed, and a service whose ledger can be trusted. */
export interface Environment extends AsyncDisposable {
  /** The server that holds the outbox and, in another database, the ledger. */
  postgres: EmbeddedPostgres
  outbox: pg.Pool
  ledger: pg.Pool
  /** The sandbox's own database, on a server that nobody touches. */
  telemetry: pg.Pool
  sandboxUrl: string
  /** Environment of a daemon. */
  env: Record<string, string>
  /** The same for an operator's commands. */
  config: StoreConfig
}

/** @param idempotency `ignore` shows a record that was sent twice as two effects */
export async function openEnvironment(
  program: ProgramCopy,
  { idempotency, seed }: { idempotency: 'ignore' | 'e002'; seed: number },
): Promise<Environment> {
  await using stack = new AsyncDisposableStack()
  // A killed server leaves its writes to the kernel, which lives: fsync is for power cuts of the machine.
  const [postgres, still] = await Promise.all([
    startEmbeddedPostgres({ fsync: 'off' }),
    startEmbeddedPostgres({ fsync: 'off' }),
  ])
  stack.defer(() => postgres.stop())
  stack.defer(() => still.stop())
  const urls = await createDatabases(postgres.url, ['erp', 'state'])
  const [erpUrl = '', stateUrl = ''] = urls
  await migrateState(stateUrl)
  await migrateOutbox(erpUrl, 'outbox')
  const sandbox = await startSandboxProcess(program, {
    SANDBOX_DATABASE_URL: still.url,
    SANDBOX_RATE_LIMIT_REQUESTS: String(rateLimit.requests),
    SANDBOX_RATE_LIMIT_WINDOW_SECONDS: String(rateLimit.windowSeconds),
    SANDBOX_PROCESSING_TIME: 'lognormal:0.3:0.5',
    SANDBOX_IDEMPOTENCY: idempotency,
    SANDBOX_SEED: String(seed),
  })
  stack.defer(() => end(sandbox.process))
  const [outbox, ledger, telemetry] = [erpUrl, stateUrl, still.url].map(openPool) as [pg.Pool, pg.Pool, pg.Pool]
  for (const pool of [outbox, ledger, telemetry]) stack.defer(() => pool.end())
  const owned = stack.move()
  const env = daemonEnvironment({ erpUrl, stateUrl, sandboxUrl: sandbox.url, program })
  return {
    postgres,
    outbox,
    ledger,
    telemetry,
    sandboxUrl: sandbox.url,
    env,
    config: readStoreConfig(env),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  }
}

function daemonEnvironment(where: { erpUrl: string; stateUrl: string; sandboxUrl: string; program: ProgramCopy }) {
  return {
    PATH: process.env.PATH ?? '',
    NODE_ENV: 'production',
    NODE_COMPILE_CACHE: `${where.program.dir}/cache`,
    DATABASE_URL: where.erpUrl,
    STATE_DATABASE_URL: where.stateUrl,
    SERVICE_BASE_URL: where.sandboxUrl,
    SERVICE_AUTH_URL: where.sandboxUrl,
    SERVICE_CLIENT_ID: 'sandbox',
    SERVICE_CLIENT_SECRET: 'sandbox-secret',
    RATE_LIMIT_REQUESTS: String(rateLimit.requests),
    RATE_LIMIT_WINDOW_SECONDS: String(rateLimit.windowSeconds),
    REQUEST_TIMEOUT_SECONDS: '2',
    UNAVAILABLE_PAUSE_SECONDS: '1',
    UNAUTHORIZED_PAUSE_SECONDS: '1',
    MAPPINGS_DIR: `${where.program.dir}/mappings`,
    HTTP_PORT: '0',
  }
}

async function createDatabases(server: string, names: string[]): Promise<string[]> {
  const client = new pg.Client(server)
  await client.connect()
  for (const name of names) await client.query(`create database ${name}`)
  await client.end()
  return names.map((name) => server.replace(/[^/]*$/, name))
}

function openPool(url: string): pg.Pool {
  const pool = new pg.Pool({ connectionString: url, max: 4, connectionTimeoutMillis: 5_000, query_timeout: 60_000 })
  pool.on('error', () => {})
  pool.on('connect', (client) => client.on('error', () => {}))
  return pool
}

async function startSandboxProcess(program: ProgramCopy, settings: Record<string, string>) {
  const sandbox = spawn(process.execPath, [program.main, 'sandbox', '--port', '0', '--json'], {
    cwd: program.dir,
    env: { PATH: process.env.PATH ?? '', NODE_ENV: 'production', ...settings },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const lastMessage: string[] = []
  createInterface({ input: sandbox.stderr }).on('line', (message) => {
    lastMessage.push(message)
    // Its welcome is of no interest here, its complaints are.
    if (message.startsWith('sandbox: ')) process.stderr.write(`${message}\n`)
  })
  sandbox.on('exit', (code, signal) => {
    if (code !== 0)
      process.stderr.write(`the sandbox left with ${code ?? signal}: ${lastMessage.slice(-20).join('\n')}\n`)
  })
  const [line] = await once(createInterface({ input: sandbox.stdout }), 'line')
  return { process: sandbox, url: (JSON.parse(line) as { url: string }).url }
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exited = once(child, 'exit')
  child.kill('SIGTERM')
  await exited
}
