import { type Sandbox, type SandboxOptions, startSandbox } from '../../src/sandbox/startSandbox.ts'
import { createDatabase, type TestDatabase } from '../support/database.ts'
import { credentials } from '../support/serviceEnvironment.ts'

/** A body of any shape. */
// biome-ignore lint/suspicious/noExplicitAny: tests read answers of any shape
export type Json = any

export interface Reply {
  status: number
  headers: Headers
  text: string
  json: Json
}

/** A sandbox with its own database, and functions to call it. */
export interface Setup extends AsyncDisposable {
  sandbox: Sandbox
  database: TestDatabase
  /** Asks for a new token. */
  token(): Promise<string>
  /** Calls the API with a token, unless `headers` has another authorization. */
  call(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Reply>
  /** Calls the control API. Throws if it refuses. */
  control(method: string, path: string, body?: unknown): Promise<Json>
  restart(): Promise<void>
}

export async function setup(options: Partial<SandboxOptions> = {}): Promise<Setup> {
  const database = await createDatabase('sandbox_template')
  const start = () => startSandbox({ databaseUrl: database.url, port: 0, rateLimitRequests: 10_000, ...options })
  let sandbox = await start()
  let bearer: string | undefined
  const send = async (method: string, path: string, body: unknown, headers: Record<string, string>): Promise<Reply> => {
    const text = typeof body === 'string' ? body : JSON.stringify(body)
    const init = { method, headers, redirect: 'manual' as const, ...(body === undefined ? {} : { body: text }) }
    const response = await fetch(sandbox.url + path, init)
    const answer = await response.text()
    return { status: response.status, headers: response.headers, text: answer, json: parsed(answer) }
  }
  const token = async () => {
    const { clientId, clientSecret } = credentials
    const form = { grant_type: 'client_credentials', client_id: clientId, client_secret: clientSecret }
    const reply = await send('POST', '/oauth/token', new URLSearchParams(form).toString(), {
      'content-type': 'application/x-www-form-urlencoded',
    })
    return String(reply.json.access_token)
  }
  return {
    get sandbox() {
      return sandbox
    },
    database,
    token,
    async call(method, path, body, headers = {}) {
      bearer ??= await token()
      const json = body === undefined ? {} : { 'content-type': 'application/json' }
      return send(method, path, body, { authorization: `Bearer ${bearer}`, ...json, ...headers })
    },
    async control(method, path, body) {
      const reply = await send(
        method,
        `/_sandbox${path}`,
        body,
        body === undefined ? {} : { 'content-type': 'application/json' },
      )
      if (reply.status >= 300) throw new Error(`${method} ${path}: ${reply.text}`)
      return reply.json
    },
    async restart() {
      await sandbox.close()
      sandbox = await start()
    },
    async [Symbol.asyncDispose]() {
      await sandbox.close()
      await database[Symbol.asyncDispose]()
    },
  }
}

/** A submission as in section 2.2. `change` replaces or adds fields of data. */
export function submission(change: Record<string, unknown> = {}, customerId = 'C1'): Record<string, unknown> {
  return { customerId, data: { field1: 'value1', field2: 'text', ...change } }
}

export function order(items: unknown[] = [{ sku: 'A', quantity: 1 }]): Record<string, unknown> {
  return { customerId: 'a3bb189e-8bf9-4888-9912-ace4e6543002', items }
}

function parsed(text: string): Json {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
