import type pg from 'pg'
import type { Browser, BrowserContextOptions } from 'playwright-core'
import { startSandbox } from '../../../src/sandbox/startSandbox.ts'
import { openBrowser, openWindow, type Window } from '../../support/browser.ts'
import { daemonEnvironment, startDaemonProcess } from '../../support/daemon.ts'
import { createDatabase } from '../../support/database.ts'
import { type Program, startProgram } from '../../support/program.ts'
import { until } from '../../support/until.ts'
import { fillPast } from './past.ts'

/** An ERP's database, the service, a daemon, a console and a browser, all of them real. */
export interface Night extends AsyncDisposable {
  /** The database of both the ERP and the ledger. */
  readonly pool: pg.Pool
  readonly browser: Browser
  /** The console's origin, such as http://127.0.0.1:9465. */
  readonly origin: string
  /** The daemon's and the console's environment. */
  readonly env: Record<string, string>
  /** Writes a record into the outbox as the ERP does. @returns its outbox id */
  insert(payload: Record<string, unknown>, more?: { type?: string; key?: string }): Promise<string>
  /** Waits until the outbox row has this status. */
  becomes(outboxId: string, status: string): Promise<void>
  /** Calls the sandbox's control API. */
  control(method: string, path: string, body?: unknown): Promise<unknown>
  /** The id of the transaction that the service accepted last. */
  lastTransaction(): Promise<string>
  /** Opens a window of another operator. */
  openWindow(options?: BrowserContextOptions): Promise<Window>
}

/** Short times, so that the test takes seconds instead of minutes. */
const impatient = {
  RATE_LIMIT_REQUESTS: '300',
  RATE_LIMIT_WINDOW_SECONDS: '60',
  REQUEST_TIMEOUT_SECONDS: '6',
  UNAVAILABLE_PAUSE_SECONDS: '1',
}

/** Starts all parts. The console's operator is Ada. */
export async function startNight(): Promise<Night> {
  await using stack = new AsyncDisposableStack()
  const [database, service, browser] = await Promise.all([
    createDatabase(),
    createDatabase('sandbox_template'),
    openBrowser(),
  ])
  stack.use(database)
  stack.use(service)
  stack.defer(() => browser.close())
  const sandbox = await startSandbox({
    databaseUrl: service.url,
    port: 0,
    rateLimitRequests: 300,
    processingTime: 'constant:0.2',
    e003RetryAfterSeconds: 0,
    synchronousCommit: 'off',
  })
  stack.defer(() => sandbox.close())
  await fillPast(database)
  const env = daemonEnvironment(database.url, sandbox.url, impatient)
  const [daemon, serving] = await Promise.all([startDaemonProcess(env), startConsoleProcess(env, ['--as', 'Ada'])])
  stack.use(daemon)
  stack.use(serving.console)
  const owned = stack.move()
  return {
    pool: database.pool,
    browser,
    origin: serving.origin,
    env,
    async insert(payload, { type = 'data', key } = {}) {
      const whole = { customerId: 'C1', orderDate: '2026-11-21T10:00:00Z', amount: 12.5, field2: 'x', ...payload }
      const { rows } = await database.pool.query<{ id: string }>(
        'insert into outbox (type, key, payload) values ($1, $2, $3) returning id::text',
        [type, key ?? null, JSON.stringify(type === 'data' ? whole : payload)],
      )
      return rows[0]?.id ?? ''
    },
    async becomes(outboxId, status) {
      await until(
        async () => (await database.pool.query('select status from outbox where id = $1', [outboxId])).rows[0]?.status,
        (seen) => seen === status,
      )
    },
    async control(method, path, body) {
      const json =
        body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }
      const response = await fetch(`${sandbox.url}/_sandbox/${path}`, { method, ...json })
      if (!response.ok) throw new Error(await response.text())
      return response.json()
    },
    async lastTransaction() {
      const { rows } = await service.pool.query<{ id: string }>(
        'select id from sandbox.transactions order by accepted_at desc limit 1',
      )
      return rows[0]?.id ?? ''
    },
    openWindow: (options = {}) => openWindow(browser, { ...options, origin: serving.origin }),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  }
}

/** Starts `outboxd console` as a process on a free port. Resolves when it listens. */
async function startConsoleProcess(
  env: Record<string, string>,
  args: readonly string[],
): Promise<{ console: Program; origin: string }> {
  const console = startProgram({ args: ['console', '--port', '0', '--json', ...args], env })
  try {
    const line = await console.line((each) => each.startsWith('{'))
    return { console, origin: (JSON.parse(line) as { url: string }).url }
  } catch (error) {
    await console.stop()
    throw error
  }
}
