import type pg from 'pg'
import { type DatabaseConfig, readDatabaseConfig } from '../../src/config.ts'
import { daemonEnvironment } from '../../test/support/daemon.ts'
import { startPgbouncer } from '../../test/support/pgbouncer.ts'
import { createDatabaseOn, openPool, startPostgres } from '../../test/support/postgres.ts'
import { type Cluster, startCluster } from './cluster.ts'
import type { ProgramCopy } from './programCopy.ts'

/** The service's limit in a tenth of its time. The load of a campaign uses it up. */
export const rateLimit = { requests: 100, windowSeconds: 6 }

/** What the daemons run against: a Postgres that crashes and fails over, and a service whose log can be trusted. */
export interface Environment extends Surroundings {
  /** The server that holds outbox and ledger; every COMMIT waits for its standby. */
  cluster: Cluster
}

/** A database on the server at an address, and the service. */
export interface Surroundings extends AsyncDisposable {
  /** Has the outbox and the ledger. */
  database: pg.Pool
  /** The sandbox's own database, on a server without faults. */
  telemetry: pg.Pool
  sandboxUrl: string
  /** Environment of daemons and commands of every version. */
  env: Record<string, string>
  /** The same for an operator's commands, without the pooler. */
  config: DatabaseConfig
}

export interface SurroundingsOptions {
  /** With `ignore`, a record that was sent twice has two effects. */
  idempotency: 'ignore' | 'e002'
  seed: number
  /** The daemons' setting for the server's standby. */
  standby: DatabaseConfig['ledgerStandby']
  /** True if daemons and commands reach the server through pgbouncer, which assigns its sessions per transaction. */
  isPooled: boolean
}

export interface EnvironmentOptions extends Omit<SurroundingsOptions, 'standby'> {
  /** Folder with binaries of a different PostgreSQL for outbox and ledger; null for those from npm. */
  postgresDir: string | null
}

/** @param program runs the sandbox and migrates the databases */
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

/** Creates the databases on a server, and starts a service. */
export async function openSurroundings(
  program: ProgramCopy,
  serverUrl: string,
  { idempotency, seed, standby, isPooled }: SurroundingsOptions,
): Promise<Surroundings> {
  await using stack = new AsyncDisposableStack()
  // If only the server is killed, the kernel still writes its data. fsync matters only if the machine loses power.
  const still = await startPostgres({ fsync: 'off' })
  stack.use(still)
  const erpUrl = await createDatabaseOn(serverUrl, 'erp')
  const sandbox = await startSandboxProcess(program, {
    SANDBOX_DATABASE_URL: still.url,
    SANDBOX_RATE_LIMIT_REQUESTS: String(rateLimit.requests),
    SANDBOX_RATE_LIMIT_WINDOW_SECONDS: String(rateLimit.windowSeconds),
    SANDBOX_PROCESSING_TIME: 'lognormal:0.3:0.5',
    SANDBOX_IDEMPOTENCY: idempotency,
    SANDBOX_SEED: String(seed),
  })
  stack.use(sandbox.program)
  const [database, telemetry] = [openBounded(erpUrl), openBounded(still.url)]
  for (const pool of [database, telemetry]) stack.defer(() => pool.end())
  const bouncer = isPooled ? stack.use(await startPgbouncer(serverUrl)) : null
  const env = daemonEnvironment(bouncer === null ? erpUrl : bouncer.through(erpUrl), sandbox.url, {
    LEDGER_STANDBY: standby,
    RATE_LIMIT_REQUESTS: String(rateLimit.requests),
    RATE_LIMIT_WINDOW_SECONDS: String(rateLimit.windowSeconds),
    REQUEST_TIMEOUT_SECONDS: '2',
    UNAVAILABLE_PAUSE_SECONDS: '1',
    UNAUTHORIZED_PAUSE_SECONDS: '1',
    MAPPINGS_DIR: `${program.dir}/mappings`,
  })
  await runToEnd(program, ['migrate', '--outbox'], { ...env, DATABASE_URL: erpUrl }) // a pooler is refused
  await database.query(`${noteMarksSql}; ${notePrunedSql}`)
  const owned = stack.move()
  return {
    database,
    telemetry,
    sandboxUrl: sandbox.url,
    env,
    config: readDatabaseConfig({ ...env, DATABASE_URL: erpUrl }),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  }
}

/** Notes which rows were marked when they were captured, because later states hide it. */
const noteMarksSql = `
  create table marked (id bigint primary key);
  create function note_mark() returns trigger language plpgsql as $$
  begin
    insert into public.marked values (new.id) on conflict do nothing;
    return null;
  end $$;
  create trigger note_mark after update on outbox for each row
    when (new.status = 'queued') execute function note_mark()`

/** Notes the outcomes of records that retention deletes, in the ledger's schema, so that a restore takes them back, too. */
const notePrunedSql = `
  create table outboxd.crash_pruned (id uuid primary key, outbox_id text not null, state text not null, transaction_id text);
  create function note_pruned() returns trigger language plpgsql as $$
  begin
    insert into outboxd.crash_pruned values (old.id, old.outbox_id, old.state, old.transaction_id) on conflict do nothing;
    return null;
  end $$;
  create trigger note_pruned after delete on outboxd.submission for each row execute function note_pruned()`

/** Runs a command to its end. @throws Error with its last output if its exit code is not 0 */
export async function runToEnd(copy: ProgramCopy, args: string[], env: Record<string, string>): Promise<void> {
  const program = copy.start(args, env)
  const { code, signal } = await program.ended()
  if (code !== 0) throw new Error(`${args.join(' ')} left with ${code ?? signal}:\n${program.lastLines()}`)
}

/** A pool with timeouts, because a query may otherwise hang forever when the server crashes. */
const openBounded = (url: string): pg.Pool => {
  const pool = openPool(url, { max: 8, connectionTimeoutMillis: 5_000, query_timeout: 60_000 })
  pool.on('connect', (client) => client.on('error', () => {}))
  return pool
}

async function startSandboxProcess(copy: ProgramCopy, settings: Record<string, string>) {
  const program = copy.start(['sandbox', '--port', '0', '--json'], settings, (line) => {
    // Prints the sandbox's errors but not its welcome.
    if (line.startsWith('sandbox: ')) process.stderr.write(`${line}\n`)
  })
  void program.ended().then(({ code, signal }) => {
    if (code !== 0) process.stderr.write(`the sandbox left with ${code ?? signal}: ${program.lastLines()}\n`)
  })
  const line = await program.line((each) => each.startsWith('{'))
  return { program, url: (JSON.parse(line) as { url: string }).url }
}
