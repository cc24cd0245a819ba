import { inject } from 'vitest'
import { startSandbox } from '../../src/sandbox/sandbox.ts'
import { createDatabase } from '../support/database.ts'

/** The service that the contract test is pointed at. */
export interface Target extends AsyncDisposable {
  /** {base_url} and {auth_url} of docs/reference/interface.md, without a slash at the end. */
  baseUrl: string
  authUrl: string
  clientId: string
  clientSecret: string
  /** A customer that the service knows, for submissions and (a uuid) for orders. */
  customer: string
  orderCustomer: string
  /** One that it does not; undefined where nobody said. */
  unknownCustomer: string | undefined
  /** Where the OrderCreated queue can be watched over HTTP, one JSON document; undefined where nobody said. */
  eventsUrl: string | undefined
  /** Where it says how many requests it had; undefined where it is no sandbox of our own. */
  countsUrl: string | undefined
  /** Whether the rate limit may be used up, which stops all other users of these credentials for a minute. */
  exhaust: boolean
  /** How long processing may take, in milliseconds. */
  waitMs: number
  /** Between two polls, in milliseconds. */
  pollMs: number
}

/**
 * The address in CONTRACT_URL, else CONTRACT_BASE_URL, or a sandbox of our own.
 *
 * docs/start/sandbox.md, "The service's own tests". Also read: CONTRACT_AUTH_URL, CONTRACT_CLIENT_ID, CONTRACT_CLIENT_SECRET, CONTRACT_CUSTOMER, CONTRACT_ORDER_CUSTOMER,
 * CONTRACT_UNKNOWN_CUSTOMER, CONTRACT_EVENTS_URL, CONTRACT_EXHAUST=1, CONTRACT_WAIT_SECONDS. Parts of the test that need
 * what was not given are skipped.
 */
export async function contractTarget(env: Record<string, string | undefined>): Promise<Target> {
  const common = {
    clientId: env.CONTRACT_CLIENT_ID ?? 'sandbox',
    clientSecret: env.CONTRACT_CLIENT_SECRET ?? 'sandbox-secret',
    customer: env.CONTRACT_CUSTOMER ?? 'C1',
    orderCustomer: env.CONTRACT_ORDER_CUSTOMER ?? 'a3bb189e-8bf9-4888-9912-ace4e6543002',
    waitMs: Number(env.CONTRACT_WAIT_SECONDS ?? 60) * 1000,
  }
  const elsewhere = (env.CONTRACT_URL ?? env.CONTRACT_BASE_URL)?.replace(/\/$/, '')
  if (elsewhere) {
    return {
      ...common,
      baseUrl: elsewhere,
      authUrl: (env.CONTRACT_AUTH_URL ?? elsewhere).replace(/\/$/, ''),
      unknownCustomer: env.CONTRACT_UNKNOWN_CUSTOMER,
      eventsUrl: env.CONTRACT_EVENTS_URL,
      countsUrl: undefined,
      exhaust: env.CONTRACT_EXHAUST === '1',
      pollMs: 3000,
      async [Symbol.asyncDispose]() {},
    }
  }
  const stack = new AsyncDisposableStack()
  // The suite has a server; run alone, the sandbox brings its own.
  const database = inject('postgresUrl') ? stack.use(await createDatabase('sandbox_template')) : undefined
  const place = database === undefined ? { embedded: true } : { databaseUrl: database.url }
  const sandbox = stack.use(await startSandbox({ ...place, port: 0, processingTime: 'constant:0.5' }))
  return {
    ...common,
    baseUrl: sandbox.url,
    authUrl: sandbox.url,
    unknownCustomer: 'UNKNOWN1',
    eventsUrl: `${sandbox.url}/_sandbox/events?limit=100000`,
    countsUrl: `${sandbox.url}/_sandbox/counts`,
    exhaust: true,
    pollMs: 100,
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  }
}
