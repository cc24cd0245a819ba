import { randomBytes } from 'node:crypto'
import { createServer, type IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'
import { listenOnLoopback } from './listenOnLoopback.ts'

/** A service's choices for what docs/reference/interface.md does not show. It shares no code with the sandbox. */
export interface ForeignChoices {
  field2Max?: number
  /** A new token ends the one before. */
  isOneToken?: boolean
  /** Requests allowed within the window; refused ones count, too. */
  limit?: { requests: number; windowMs: number }
  /** Each POST must carry its key as a bare UUID. */
  demandsUuid?: boolean
  /** Milliseconds until a transaction can be read. */
  hiddenMs?: number
  /** Every POST whose number is a multiple of this is applied and answered 500. */
  failsEach?: number
  /** Ids are T1, T2 and so on. */
  countsIds?: boolean
  /** A limit that refills gradually, with X-RateLimit-Remaining. */
  bucket?: { size: number; perSecond: number }
  /** The answer to an id that the service does not know. */
  unknownId?: { status: number; body: object }
  /** Every path that it does not know gets 403, as from some gateways. */
  forbidsUnknownPaths?: boolean
  /** The answer to a POST has no body; its id is in Location, or nowhere. */
  bare?: { status: number; location: boolean }
  /** From this call on, every answer is a page with this status for a while. */
  maintenance?: { fromCall: number; forMs: number; status: number }
  /** A token that is not valid gets a redirect to a page to sign in. */
  redirectsToSignIn?: boolean
  /** The header that holds the key, by default `idempotency-key`. */
  keyHeader?: string
  /** A key is recognised only this long after it came. */
  keyKnownAfterMs?: number
  /** data.order_date is required, and may be any text. */
  dateRequired?: boolean
  /** X-RateLimit-Remaining counts records and orders apart, each from its own limit. Neither is enforced. */
  limitsApart?: { data: number; orders: number }
  /** The refusal of a long field2 says how long it may be. */
  saysLength?: boolean
}

interface Reply {
  status: number
  body: object | string
  headers?: Record<string, string>
}

interface Stored {
  id: string
  sinceMs: number
  body: { items?: unknown }
}

/** Starts the service: messages in its refusals, ids like `T-00001042`, statuses accepted, pending, completed. */
export async function startForeignService(choices: ForeignChoices) {
  const tokens = new Set<string>()
  const stored = new Map<string, Stored>()
  let [calls, maintenanceUntilMs] = [0, 0]
  const keys = new Map<string, Stored>()
  let arrivals: number[] = []
  const counts = { limited: 0, taken: 0 }

  const left = { ...(choices.limitsApart ?? { data: 0, orders: 0 }) }

  const refuse = (status: number, error: string): Reply => ({
    status,
    body: { error: { message: error, code: codeIn(error) } },
  })

  async function answer(request: IncomingMessage): Promise<Reply> {
    const { method, url = '', headers } = request
    const sent = await text(request)
    if (url === '/oauth/token') {
      if (new URLSearchParams(sent).get('client_secret') !== 'sandbox-secret') return refuse(401, 'bad client')
      if (choices.isOneToken) tokens.clear()
      const token = randomBytes(12).toString('hex')
      tokens.add(token)
      return { status: 200, body: { access_token: token, token_type: 'Bearer', expires_in: 3600 } }
    }
    calls++
    if (choices.maintenance && calls === choices.maintenance.fromCall)
      maintenanceUntilMs = performance.now() + choices.maintenance.forMs
    if (choices.maintenance && performance.now() < maintenanceUntilMs)
      return { status: choices.maintenance.status, body: '<!doctype html><h1>We will be back soon</h1>' }
    if (!tokens.has(headers.authorization?.slice(7) ?? ''))
      return choices.redirectsToSignIn
        ? { status: 302, body: '<h1>Sign in</h1>', headers: { location: '/login' } }
        : refuse(401, 'token not valid')
    if (choices.limit && !letIn(choices.limit)) return refuse(429, 'slow down')
    if (choices.bucket && !drip()) return refuse(429, 'slow down')
    const [, , , kind = '', id] = url.split('/')
    if (kind !== 'data' && kind !== 'orders') return refuse(choices.forbidsUnknownPaths ? 403 : 404, 'nothing here')
    const key = headers[choices.keyHeader ?? 'idempotency-key']
    return method === 'POST' ? submit(kind, sent, key) : read(decodeURIComponent(id ?? ''))
  }

  const ownId = (n: number) => (choices.countsIds ? `T${n + 1}` : `T-${String(1_000 + n).padStart(8, '0')}`)

  const { size = 0, perSecond = 0 } = choices.bucket ?? {}
  const bucket = { level: size, atMs: performance.now() }
  function drip(): boolean {
    const nowMs = performance.now()
    bucket.level = Math.min(size, bucket.level + ((nowMs - bucket.atMs) * perSecond) / 1_000)
    bucket.atMs = nowMs
    if (bucket.level < 1) return false
    bucket.level--
    return true
  }

  function letIn({ requests, windowMs }: NonNullable<ForeignChoices['limit']>): boolean {
    const nowMs = performance.now()
    arrivals = arrivals.filter((atMs) => atMs > nowMs - windowMs)
    if (arrivals.length >= requests) {
      counts.limited++
      return false
    }
    arrivals.push(nowMs)
    return true
  }

  function submit(kind: string, sent: string, key: string | string[] | undefined): Reply {
    if (choices.demandsUuid && !/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(String(key)))
      return refuse(400, 'header idempotency-key has to be a UUID')
    const known = keys.get(String(key))
    if (known !== undefined && performance.now() - known.sinceMs >= (choices.keyKnownAfterMs ?? 0))
      return refuse(409, 'E002 this key was used')
    const body = parsed(sent)
    const customer = String(body?.customerId ?? '')
    const isKnown = kind === 'orders' ? !customer.startsWith('00000000') : customer !== 'NOBODY'
    if (customer === '' || (kind === 'data' && [...customer].length > 10)) return refuse(400, 'customerId is not right')
    if (kind === 'orders' && !Array.isArray(body?.items)) return refuse(400, 'items are missing')
    if (kind === 'data' && String(body?.data?.field2 ?? '').length > (choices.field2Max ?? Number.POSITIVE_INFINITY))
      return refuse(400, `field2 is too long${choices.saysLength ? `, at most ${choices.field2Max} characters` : ''}`)
    if (choices.dateRequired && kind === 'data' && !body?.data?.order_date) return refuse(400, 'order_date is missing')
    if (kind === 'data' && typeof body?.data?.field2 !== 'string') return refuse(400, 'field2 is missing')
    if (!isKnown) return refuse(400, 'E001 customer is not known')
    const record = {
      id: kind === 'orders' ? crypto.randomUUID() : ownId(stored.size),
      sinceMs: performance.now(),
      body,
    }
    stored.set(record.id, record)
    if (key !== undefined && known === undefined) keys.set(String(key), record)
    counts.taken++
    if (choices.failsEach && counts.taken % choices.failsEach === 0) return refuse(500, 'lost on the way back')
    if (choices.bare) {
      const headers = choices.bare.location ? { location: `/api/v1/${kind}/${record.id}` } : {}
      return { status: choices.bare.status, body: '', headers }
    }
    return kind === 'orders'
      ? { status: 201, body: { orderId: record.id, status: 'pending', createdAt: new Date().toISOString() } }
      : { status: 200, body: { transactionId: record.id, status: 'accepted', timestamp: new Date().toISOString() } }
  }

  function read(id: string): Reply {
    const record = stored.get(id)
    const ageMs = record === undefined ? 0 : performance.now() - record.sinceMs
    if (record === undefined && choices.unknownId) return choices.unknownId
    if (record === undefined || ageMs < (choices.hiddenMs ?? 0)) return refuse(404, 'no such id')
    const later = ageMs < 1_200 ? 'pending' : 'completed'
    const status = ageMs < 400 ? 'accepted' : later
    return {
      status: 200,
      body: record.id.startsWith('T')
        ? { transactionId: id, status }
        : { orderId: id, status, items: record.body.items },
    }
  }

  const server = createServer(async (request, response) => {
    const { status, body, headers } = await answer(request)
    const kind = request.url?.split('/')[3]
    if (choices.limitsApart && (kind === 'data' || kind === 'orders')) left[kind]--
    const remaining =
      choices.limitsApart && (kind === 'data' || kind === 'orders')
        ? { 'x-ratelimit-remaining': left[kind] }
        : choices.bucket && { 'x-ratelimit-remaining': Math.floor(bucket.level) }
    const type = typeof body === 'string' ? 'text/html' : 'application/json'
    response
      .writeHead(status, { 'content-type': type, ...remaining, ...headers })
      .end(typeof body === 'string' ? body : JSON.stringify(body))
  })
  return { ...(await listenOnLoopback(server)), counts }
}

const codeIn = (message: string) => /^E\d{3}/.exec(message)?.[0]

// biome-ignore lint/suspicious/noExplicitAny: a body may hold anything
function parsed(body: string): any {
  try {
    return JSON.parse(body)
  } catch {
    return null
  }
}
