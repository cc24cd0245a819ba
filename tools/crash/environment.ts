import type pg from 'pg'
import { type DatabaseConfig, readDatabaseConfig } from '../../src/config.ts'
import { daemonEnvironment } from '../../test/support/daemon.ts'
import { createDatabaseOn, openPool, startPostgres } from '../../test/support/postgres.ts'
import { type Cluster, startCluster } from './cluster.ts'
import type { ProgramCopy } from './programCopy.ts'

/** Compressed time: the limit's window, in seconds, and the requests in it. */
export const rateLimit = { requests: 300, windowSeconds: 6 }

/** What the daemons run against: a Postgres that is crashed and fails over, and a service whose ledger can be trusted. */
export interface Environment extends Surroundings {
  /** The server that holds the outbox and, in another database, the ledger; every COMMIT waits for its standby. */
  cluster: Cluster
}

/** The databases on a server, wherever its address leads, and the service. */
export interface Surroundings extends AsyncDisposable {
  outbox: pg.Pool
  ledger: pg.Pool
  /** The sandbox's own database, on a server that nobody touches. */
  telemetry: pg.Pool
  sandboxUrl: string
  /** Environment of a daemon and of commands, whichever program it is. */
  env: Record<string, string>
  /** The same for an operator's commands. */
  config: DatabaseConfig
}

export interface SurroundingsOptions {
  /** `ignore` shows a record that was sent twice as two effects. */
  idempotency: 'ignore' | 'e002'
  seed: number
  /** The program that the databases are migrated by. */
  migratedBy: ProgramCopy
  /** What the daemons are told about the server's standby. */
  standby: DatabaseConfig['ledgerStandby']
}

export interface EnvironmentOptions extends Omit<SurroundingsOptions, 'standby'> {
  /** Folder of another PostgreSQL's binaries for the server of outbox and ledger; null: the registry's. */
  postgresDir: string | null
}

/** @param program runs the sandbox */
export async function openEnvironment(program: ProgramCopy, options: EnvironmentOptions): Promise<Environment> {
  await using stack = new AsyncDisposableStack()
  const cluster = await startCluster({ isSynchronous: true, postgresDir: options.postgresDir })
  stack.use(cluster)
  const surroundings = await openSurroundings(program, cluster.clientUrl, { ...options, standby: 'synchronous' })
  stack.use(surroundings)
  await cluster.follow()
  const owned = stack.move()
  return { ...surroundings, cluster, [Symbol.asyncDispose]: () => owned.disposeAsync() }
}

/** Makes the databases on a server, and starts a service beside it. */
export async function openSurroundings(
  program: ProgramCopy,
  serverUrl: string,
  { idempotency, seed, migratedBy, standby }: SurroundingsOptions,
): Promise<Surroundings> {
  await using stack = new AsyncDisposableStack()
  // A killed server leaves its writes to the kernel, which lives: fsync is for power cuts of the machine.
  const still = await startPostgres({ fsync: 'off' })
  stack.use(still)
  const erpUrl = await createDatabaseOn(serverUrl, 'erp')
  const stateUrl = await createDatabaseOn(serverUrl, 'state')
  const sandbox = await startSandboxProcess(program, {
    SANDBOX_DATABASE_URL: still.url,
    SANDBOX_RATE_LIMIT_REQUESTS: String(rateLimit.requests),
    SANDBOX_RATE_LIMIT_WINDOW_SECONDS: String(rateLimit.windowSeconds),
    SANDBOX_PROCESSING_TIME: 'lognormal:0.3:0.5',
    SANDBOX_IDEMPOTENCY: idempotency,
    SANDBOX_SEED: String(seed),
  })
  stack.use(sandbox.program)
  const [outbox, ledger, telemetry] = [erpUrl, stateUrl, still.url].map(openBounded) as [pg.Pool, pg.Pool, pg.Pool]
  for (const pool of [outbox, ledger, telemetry]) stack.defer(() => pool.end())
  const env = daemonEnvironment(erpUrl, sandbox.url, {
    STATE_DATABASE_URL: stateUrl,
    LEDGER_STANDBY: standby,
    RATE_LIMIT_REQUESTS: String(rateLimit.requests),
    RATE_LIMIT_WINDOW_SECONDS: String(rateLimit.windowSeconds),
    REQUEST_TIMEOUT_SECONDS: '2',
    UNAVAILABLE_PAUSE_SECONDS: '1',
    UNAUTHORIZED_PAUSE_SECONDS: '1',
    MAPPINGS_DIR: `${program.dir}/mappings`,
  })
  await runToEnd(migratedBy, ['migrate', '--outbox'], env)
  const owned = stack.move()
  return {
    outbox,
    ledger,
    telemetry,
    sandboxUrl: sandbox.url,
    env,
    config: readDatabaseConfig(env),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  }
}

/** Runs a command to its end. @throws Error with its last words where it leaves with anything but 0 */
export async function runToEnd(copy: ProgramCopy, args: string[], env: Record<string, string>): Promise<void> {
  const program = copy.start(args, env)
  const { code, signal } = await program.ended()
  if (code !== 0) throw new Error(`${args.join(' ')} left with ${code ?? signal}:\n${program.lastLines()}`)
}

/** Nothing that the campaign does may hang for ever: its server is crashed under it. */
const openBounded = (url: string): pg.Pool => {
  const pool = openPool(url, { max: 4, connectionTimeoutMillis: 5_000, query_timeout: 60_000 })
  pool.on('connect', (client) => client.on('error', () => {}))
  return pool
}

async function startSandboxProcess(copy: ProgramCopy, settings: Record<string, string>) {
  const program = copy.start(['sandbox', '--port', '0', '--json'], settings, (line) => {
    // Its welcome is of no interest here, its complaints are.
    if (line.startsWith('sandbox: ')) process.stderr.write(`${line}\n`)
  })
  void program.ended().then(({ code, signal }) => {
    if (code !== 0) process.stderr.write(`the sandbox left with ${code ?? signal}: ${program.lastLines()}\n`)
  })
  const line = await program.line((each) => each.startsWith('{'))
  return { program, url: (JSON.parse(line) as { url: string }).url }
}
