import type pg from 'pg'
import type { Clock } from '../../../src/clock.ts'
import { type Sandbox, type SandboxOptions, startSandbox } from '../../../src/sandbox/startSandbox.ts'
import { type Daemon, daemonEnvironment, startDaemon } from '../../support/daemon.ts'
import { createDatabase, type TestDatabase } from '../../support/database.ts'
import { type FaultProxy, startFaultProxy } from '../../support/faultProxy.ts'
import { openPool } from '../../support/postgres.ts'
import { until } from '../../support/until.ts'

/** The outcome of a record in the outbox, in the ledger and at the service. */
export interface Outcome {
  /** The outbox row's status. */
  status: string
  state: string | null
  attempt: number
  code: string | null
  error: string | null
  mayHaveArrived: boolean | null
  /** Each step as "from to". */
  steps: string[]
  causes: string[]
  /** Statuses of the POSTs that the service got, null for an answer that it did not give. */
  posts: (number | null)[]
  /** Idempotency keys of these POSTs. */
  keys: string[]
  /** Number of transactions and orders that the service made of the record. */
  effects: number
}

/** A service and a database behind fault proxies, with functions to fill and read them. */
export interface Harness extends AsyncDisposable {
  pool: pg.Pool
  sandbox: Sandbox
  /** The proxy in front of the service. */
  service: FaultProxy
  /** The proxy in front of Postgres. */
  postgres: FaultProxy
  /** Environment of a daemon. */
  env: ReturnType<typeof daemonEnvironment>
  /** Starts a daemon in this process. */
  start(env?: Record<string, string>, clock?: Clock): Promise<Daemon>
  /** Inserts a record of type data whose body holds `marker`. @returns its outbox id */
  insert(marker: string, more?: { key?: string; type?: string; field2?: string; customerId?: string }): Promise<string>
  outcome(marker: string): Promise<Outcome>
  /** Waits until the outbox row has one of these statuses. */
  becomes(marker: string, ...statuses: string[]): Promise<Outcome>
  /** Creates a fault at the sandbox. */
  fault(spec: Record<string, unknown>): Promise<void>
  /** Calls the sandbox's control API. */
  control(method: string, path: string, body?: unknown): Promise<unknown>
  pauses(): Promise<string[]>
}

/** @param databaseUrl a migrated database to use instead of a new one */
export async function setup(settings: Partial<SandboxOptions> = {}, databaseUrl?: string): Promise<Harness> {
  await using stack = new AsyncDisposableStack()
  const telemetry = await createDatabase('sandbox_template')
  const database = databaseUrl === undefined ? await createDatabase() : opened(databaseUrl)
  stack.use(database)
  stack.use(telemetry)
  const sandbox = await startSandbox({
    databaseUrl: telemetry.url,
    port: 0,
    rateLimitRequests: 10_000,
    processingTime: 'constant:0.1',
    ...settings,
  })
  stack.defer(() => sandbox.close())
  const service = await startFaultProxy({ target: { host: '127.0.0.1', port: sandbox.port } })
  stack.defer(() => service.close())
  const postgres = await startFaultProxy({ target: { host: '127.0.0.1', port: Number(new URL(database.url).port) } })
  stack.defer(() => postgres.close())
  const env = daemonEnvironment(database.url, service.url, impatient)
  const daemons = new Set<Daemon>()
  stack.defer(async () => {
    await service.setFault(null)
    await postgres.setFault(null)
    await Promise.all([...daemons].map((daemon) => daemon.stop()))
  })

  const control = async (method: string, path: string, body?: unknown) => {
    const json =
      body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }
    const response = await fetch(`${sandbox.url}/_sandbox/${path}`, { method, ...json })
    if (!response.ok) throw new Error(await response.text())
    return response.json()
  }
  const outcome = (marker: string) => readOutcome(database.pool, telemetry.pool, marker)
  const owned = stack.move()
  return {
    pool: database.pool,
    sandbox,
    service,
    postgres,
    env,
    async start(more = {}, clock) {
      const daemon = await startDaemon({ ...env, ...more }, clock)
      daemons.add(daemon)
      return daemon
    },
    insert: (marker, more = {}) => insert(database.pool, marker, more),
    outcome,
    async becomes(marker, ...statuses) {
      await until(
        () => readStatus(database.pool, marker),
        ({ status, state }) => statuses.includes(status) && status === state,
      )
      return outcome(marker)
    },
    async fault(spec) {
      await control('POST', 'faults', spec)
    },
    control,
    async pauses() {
      const { rows } = await database.pool.query<{ reason: string }>(
        'select reason from outboxd.standing_pause order by reason',
      )
      return rows.map(({ reason }) => reason)
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  }
}

function opened(url: string): TestDatabase {
  const pool = openPool(url)
  return { url, pool, [Symbol.asyncDispose]: () => pool.end() }
}

/** The URL of the same database through the proxy. */
export function through(proxy: FaultProxy, databaseUrl: string): string {
  const url = new URL(databaseUrl)
  url.port = String(proxy.port)
  return url.href
}

/** For tests of requests that are not answered. On a busy machine, the answers to their other requests take seconds. */
export const shortTimeout = { REQUEST_TIMEOUT_SECONDS: '5' }

/** Short pauses and windows, but no request is given up: that would make its record uncertain. */
const impatient = {
  RATE_LIMIT_REQUESTS: '500',
  RATE_LIMIT_WINDOW_SECONDS: '6',
  REQUEST_TIMEOUT_SECONDS: '60',
  UNAVAILABLE_PAUSE_SECONDS: '0.3',
  UNAUTHORIZED_PAUSE_SECONDS: '0.3',
  LOG_LEVEL: 'silent',
}

async function insert(
  pool: pg.Pool,
  marker: string,
  { key, type = 'data', field2 = '', customerId = 'C1' }: Parameters<Harness['insert']>[1] & {},
): Promise<string> {
  const payload =
    type === 'order'
      ? { customerId: '7b0e6c3e-2f5d-4b43-9d5a-0f6f3c1c9a11', items: [marker] }
      : { customerId, orderDate: '2026-11-21T10:00:00Z', amount: 12.5, field2: `${field2}${marker}` }
  const { rows } = await pool.query<{ id: string }>(
    'insert into outbox (type, key, payload) values ($1, $2, $3) returning id::text',
    [type, key ?? null, JSON.stringify(payload)],
  )
  return rows[0]?.id ?? ''
}

/** Reads only the part of an outcome that tests poll. */
async function readStatus(pool: pg.Pool, marker: string): Promise<Pick<Outcome, 'status' | 'state'>> {
  const { rows } = await pool.query<Pick<Outcome, 'status' | 'state'>>(
    `select o.status, s.state from outbox o left join outboxd.submission s on s.outbox_id = o.id::text
     where o.payload::text like $1`,
    [`%${marker}"%`],
  )
  return rows[0] ?? { status: 'missing', state: null }
}

const missing = {
  status: 'missing',
  state: null,
  attempt: 0,
  code: null,
  error: null,
  mayHaveArrived: null,
  steps: [],
  causes: [],
}

async function readOutcome(pool: pg.Pool, telemetry: pg.Pool, marker: string): Promise<Outcome> {
  const { rows } = await pool.query<Omit<Outcome, 'posts' | 'keys' | 'effects'>>(
    `select o.status, s.state, coalesce(s.attempt, 0) as attempt, s.error_code as code, s.error,
       s.may_have_arrived as "mayHaveArrived",
       coalesce((select array_agg(concat_ws(' ', e.from_state, e.to_state) order by e.id) from outboxd.submission_event e
         where e.submission_id = s.id), '{}') as steps,
       coalesce((select array_agg(coalesce(e.message, e.cause) order by e.id) from outboxd.submission_event e
         where e.submission_id = s.id), '{}') as causes
     from outbox o left join outboxd.submission s on s.outbox_id = o.id::text
     where o.payload::text like $1`,
    [`%${marker}"%`],
  )
  const { rows: arrivals } = await telemetry.query<{ status: number | null; key: string; effect: boolean }>(
    `select status, idempotency_key as key, coalesce(transaction_id, order_id::text) is not null as effect
     from sandbox.ledger where method = 'POST' and endpoint in ('submit', 'order') and body like $1 order by sequence`,
    [`%${marker}"%`],
  )
  return {
    ...(rows[0] ?? missing),
    posts: arrivals.map(({ status }) => status),
    keys: arrivals.map(({ key }) => key),
    effects: arrivals.filter(({ effect }) => effect).length,
  }
}
