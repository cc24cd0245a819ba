import { inject } from 'vitest'
import { startSandbox } from '../../src/sandbox/sandbox.ts'
import { createDatabase } from '../support/database.ts'

/** The service that the contract test asks. */
export interface Target extends AsyncDisposable {
  /** {base_url} and {auth_url} of docs/reference/interface.md, without a slash at the end. */
  baseUrl: string
  authUrl: string
  clientId: string
  clientSecret: string
  /** Customers that the service knows: an id for submissions, a uuid for orders. */
  customer: string
  orderCustomer: string
  /** A customer that the service does not know. If it is undefined, E001 is not tested. */
  unknownCustomer: string | undefined
  /** Where the OrderCreated queue can be read over HTTP as one JSON document. If it is undefined, section 6 is not tested. */
  eventsUrl: string | undefined
  /** Where the sandbox says how many requests it had. Undefined for any other service. */
  countsUrl: string | undefined
  /** Whether to use up the rate limit. Other programs with these credentials then get 429 for a minute. */
  exhaust: boolean
  /** How long processing may take, in milliseconds. */
  waitMs: number
  /** Time between two polls, in milliseconds. */
  pollMs: number
}

/**
 * Returns the service at CONTRACT_URL, or a sandbox if that variable is not set (docs/start/sandbox.md, "The service's own tests").
 *
 * | variable | |
 * |---|---|
 * | CONTRACT_URL (or CONTRACT_BASE_URL), CONTRACT_AUTH_URL | {base_url}, and {auth_url} if it differs |
 * | CONTRACT_CLIENT_ID, CONTRACT_CLIENT_SECRET | test credentials; default: the sandbox's |
 * | CONTRACT_CUSTOMER, CONTRACT_ORDER_CUSTOMER | customers that the service knows: an id, a uuid |
 * | CONTRACT_UNKNOWN_CUSTOMER | a customer that it does not know; without it E001 is not tested |
 * | CONTRACT_EVENTS_URL | where the OrderCreated queue can be read; without it section 6 is not tested |
 * | CONTRACT_EXHAUST=1 | sends 100 more submissions to use up the rate limit; without it 429 is not tested |
 * | CONTRACT_WAIT_SECONDS | how long processing may take; default: 60 |
 * | NODE_EXTRA_CA_CERTS | a certificate authority of your own |
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
