import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http'
import { afterEach } from 'vitest'
import { systemClock } from '../../src/clock.ts'
import type { Config } from '../../src/config.ts'
import type { Answer, ServiceRequest } from '../../src/model/service.ts'
import { createServiceClient, type ServiceClient } from '../../src/service/client.ts'
import { listenOnLoopback } from '../support/listenOnLoopback.ts'

const cleanups: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

/** Runs `cleanup` after the test, last in first out. */
export function later(cleanup: () => unknown): void {
  cleanups.push(cleanup)
}

export const secret = 's3cr3t+with/odd=characters'
export const accessToken = 'eyJ0.token.value'
export const submitRequest: ServiceRequest = {
  endpoint: 'submit',
  body: '{"customerId":"c1","amount":1234.50}',
  idempotencyKey: '0193c1b2-0000-7000-8000-000000000001',
}
export const statusRequest: ServiceRequest = { endpoint: 'status', body: 'tx 1/ä?', idempotencyKey: null }

interface Received {
  method: string
  url: string
  headers: IncomingMessage['headers']
  httpVersion: string
  body: string
  /** The connection's number, from 1. */
  connection: number
}

/** A node:http server that remembers what it got before it answers. */
export async function startServer(answer: (request: Received, response: ServerResponse) => void) {
  const received: Received[] = []
  const connections: unknown[] = []
  const listener: RequestListener = async (request, response) => {
    if (!connections.includes(request.socket)) connections.push(request.socket)
    const connection = connections.indexOf(request.socket) + 1
    const { method = '', url = '', headers, httpVersion } = request
    const entry = { method, url, headers, httpVersion, body: '', connection }
    try {
      for await (const chunk of request) entry.body += chunk
    } catch {
      return
    }
    received.push(entry)
    answer(entry, response)
  }
  const server = createServer(listener)
  const listening = await listenOnLoopback(server)
  later(() => listening[Symbol.asyncDispose]())
  const { url, port } = listening
  return { server, received, url, target: { host: '127.0.0.1', port } }
}

/** A client whose requests may all leave. */
export function clientFor(url: string, service: Partial<Config['service']> & { clientSecret?: string } = {}) {
  const client = permittedClientFor(url, service)
  const always = () => true
  return {
    ...client,
    send: async (request: ServiceRequest, token: string) => given(await client.send(request, token, always)),
    requestToken: async () => given(await client.requestToken(always)),
  }
}

function given<T>(answer: T | null): T {
  if (answer === null) throw new Error('the request did not leave, but should have')
  return answer
}

export function permittedClientFor(
  url: string,
  service: Partial<Config['service']> & { clientSecret?: string } = {},
  onCertificate: (expiresAtMs: number) => void = () => {},
): ServiceClient {
  const whole = {
    baseUrl: url,
    authUrl: url,
    clientId: 'client',
    clientSecret: secret,
    ca: null,
    cert: null,
    key: null,
    proxy: null,
    expiresInUnitMs: 1000,
    tokenRefreshMs: 300_000,
    idempotencyHeader: 'Idempotency-Key',
    idempotencyKeyForm: 'quoted' as const,
    requestTimeoutMs: 10_000,
    answerMaxBytes: 1_000_000,
    ...service,
  }
  const client = createServiceClient({
    clock: systemClock,
    maxInFlight: 4,
    onCertificate,
    service: whole,
    credentials: () => whole,
  })
  later(() => client.close())
  return client
}

export function json(response: ServerResponse, status: number, body: unknown, headers: Record<string, string> = {}) {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))
}

/** The answer as a response, or a failed test. */
export function responded(answer: Answer): Answer & { kind: 'response' } {
  if (answer.kind !== 'response') throw new Error(`no answer: ${answer.detail}`)
  return answer
}
