import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import type { Clients } from './clients.ts'
import { unavailable } from './endpoints/apiRefusals.ts'
import { type Answer, problem } from './endpoints/problemAnswer.ts'
import type { Endpoint } from './endpoints/requestSchemas.ts'
import { applyFault, type Delivery, stopsBefore } from './faults/applyFault.ts'
import type { FaultAction, Faults } from './faults/faults.ts'
import { isAllowed } from './gate/allowedAddresses.ts'
import type { ClientRates } from './gate/clientRates.ts'
import type { Failures } from './gate/failures.ts'
import type { Tokens } from './gate/issuedTokens.ts'
import { bound, isForm, leftOut } from './gate/maskSecrets.ts'
import type { Draws } from './processing/draws.ts'
import type { SandboxClock } from './sandboxClock.ts'
import type { LiveSettings } from './sandboxSettings.ts'
import type { RecordScripts } from './scenario/recordScripts.ts'
import { DatabaseAway, type Outage } from './storage/databaseAway.ts'
import { type Effect, isOneEntrysFault, type Journal, type LedgerRow } from './storage/journal.ts'
import type { KeyedMutex } from './storage/keyedMutex.ts'

/** The parts of a running sandbox that its endpoints work with. */
export interface Parts {
  pool: pg.Pool
  clock: SandboxClock
  /** Reads the settings as they are now for a client; null for whoever is none of ours. */
  live: (client: string | null) => LiveSettings
  clients: Clients
  bodyLimitBytes: number
  tokens: Tokens
  rates: ClientRates
  /** Of those who have not shown who they are, by address. */
  failures: Failures
  faults: Faults
  scripts: RecordScripts
  journal: Journal
  outage: Outage
  mutex: KeyedMutex
  draws: Draws
  /** Aborts when the sandbox closes: nothing is held back any longer. */
  closing: AbortSignal
}

/** A request, whole. */
export interface Exchange {
  arrivedUs: number
  endpoint: Endpoint | 'other'
  method: string
  /** Without its query, and masked where nothing is served: a mistaken client may have put a secret there. */
  path: string
  /** The last segment of the path, where it is an id. */
  id: string
  address: string
  authorization: string | undefined
  contentType: string
  idempotencyKey: string | null
  body: string
  /** As the ledger keeps it. */
  maskedBody: string
  /** Whether the bytes of the body were UTF-8; in `body`, what is not is U+FFFD. */
  isUtf8: boolean
  /** Waits until no other request holds `name`, and holds it until this one is in the ledger. */
  lock(name: string): Promise<void>
}

/** Who sent it and whether it may pass; `headers` go on whatever is answered. */
export interface Admission {
  client: string | null
  counted: boolean
  headers: Record<string, string>
  refusal: Answer | undefined
}

export interface Outcome {
  answer: Answer
  effect?: Effect
  /** Set where the database is away: there is nothing to write, and nowhere. */
  isAway?: true
  /** What a script has in store for this answer. */
  fault?: FaultAction | undefined
}

export type Gate = (parts: Parts, exchange: Exchange) => Promise<Admission>
export type Handler = (parts: Parts, exchange: Exchange, client: string) => Promise<Outcome>

/** A request's way: may it pass, is a fault switched on, what is applied, into the ledger, and only then the answer. */
export async function serve(
  parts: Parts,
  request: Omit<Exchange, 'lock'>,
  gate: Gate,
  handler: Handler,
): Promise<Delivery> {
  const held: (() => void)[] = []
  let delivered: { delivery: Delivery; delayMs: number }
  const exchange = { ...request, lock: async (name: string) => void held.push(await parts.mutex.take(name)) }
  try {
    const admission = await gate(parts, exchange)
    const fault = admission.refusal ? undefined : parts.faults.choose({ ...exchange, client: admission.client })
    const outcome = await decide(parts, exchange, admission, fault?.spec, handler)
    const action = fault?.spec ?? outcome.fault
    const newId = () => parts.draws.wrongId(admission.client ?? '')
    const delivery = applyFault(outcome.answer, action, admission.headers, newId)
    const written = outcome.isAway
      ? 'written'
      : await record(parts, exchange, admission, delivery, outcome.effect, fault?.id ?? null)
    delivered = written === 'written' ? { delivery, delayMs: delayAfterMs(action) } : { delivery: written, delayMs: 0 }
  } finally {
    for (const release of held) release()
  }
  await wait(parts, delivered.delayMs)
  return delivered.delivery
}

const stopped = problem(500, 'The sandbox was told to fail before applying the request.')

async function decide(
  parts: Parts,
  exchange: Exchange,
  admission: Admission,
  fault: FaultAction | undefined,
  handler: Handler,
): Promise<Outcome> {
  if (admission.refusal) return { answer: admission.refusal }
  const client = admission.client ?? ''
  try {
    const action = fault ?? (await parts.scripts.answer(exchange, client))
    if (stopsBefore(action)) return { answer: stopped, fault: action }
    if (action && heldBefore(action)) await wait(parts, action.delayMs)
    const outcome = await handler(parts, exchange, client)
    return { ...outcome, fault: outcome.fault ?? action }
  } catch (error) {
    if (error instanceof DatabaseAway) {
      parts.outage.met(error)
      return { answer: unavailable(parts, admission.client), isAway: true }
    }
    const message = error instanceof Error ? error.stack : String(error)
    process.stderr.write(`sandbox: ${exchange.method} ${exchange.path}: ${message}\n`)
    return { answer: problem(500, 'The sandbox made a mistake; its own words are on its stderr.') }
  }
}

async function record(
  parts: Parts,
  exchange: Exchange,
  { client, counted, headers }: Admission,
  delivery: Delivery,
  effect: Effect | undefined,
  faultId: number | null,
): Promise<'written' | Delivery> {
  const { arrivedUs, endpoint, method, path, address } = exchange
  const status = delivery.kind === 'drop' ? null : delivery.status
  const kept = client === null ? keptOfStranger(exchange, status) : { ...exchange, body: exchange.maskedBody }
  const { idempotencyKey, body } = kept
  const row = { arrivedUs, endpoint, method, path, client, address, idempotencyKey, body, status, counted, faultId }
  try {
    await parts.journal.write({ row, effect })
    parts.outage.over()
    return 'written'
  } catch (error) {
    if (error instanceof DatabaseAway) return answerWhileAway(parts, error, delivery, effect, { client, headers })
    process.stderr.write(`sandbox: a request could not be stored: ${error instanceof Error ? error.message : error}\n`)
    if (isOneEntrysFault(error)) await noteFailure(parts, row)
    return applyFault(problem(500, 'The request could not be stored.'), undefined, headers, () => '')
  }
}

/**
 * What is true though the ledger does not have the request: a refusal as it is; E003 where surely nothing was stored; no answer
 * where a transaction or an order may have been.
 */
function answerWhileAway(
  parts: Parts,
  error: DatabaseAway,
  delivery: Delivery,
  effect: Effect | undefined,
  { client, headers }: Pick<Admission, 'client' | 'headers'>,
): Delivery {
  parts.outage.met(error)
  if (effect && error.mayBeStored) return { kind: 'drop' }
  if (delivery.kind === 'drop' || (!effect && delivery.status >= 400 && delivery.status < 500)) return delivery
  return applyFault(unavailable(parts, client), undefined, headers, () => '')
}

/** The ledger shall show that it arrived; where that fails, too, nothing was stored all the same. */
async function noteFailure(parts: Parts, row: LedgerRow): Promise<void> {
  await parts.journal.write({ row: { ...row, status: 500 }, effect: undefined }).catch(() => {})
}

/** Whoever has not shown who he is fills no disk: the beginnings, and of what he sent beyond his bound only how much. */
function keptOfStranger({ idempotencyKey, maskedBody }: Exchange, status: number | null) {
  const body = status === 429 && maskedBody !== '' ? leftOut(maskedBody, 'too many requests') : bound(maskedBody)
  return { idempotencyKey: idempotencyKey && bound(idempotencyKey), body }
}

function delayAfterMs(fault: FaultAction | undefined): number {
  return fault === undefined || heldBefore(fault) ? 0 : fault.delayMs
}

function heldBefore(fault: FaultAction): boolean {
  return fault.kind === 'delay' && fault.when === 'before'
}

async function wait(parts: Parts, delayMs: number): Promise<void> {
  if (delayMs > 0) await delay(delayMs, undefined, { signal: parts.closing }).catch(() => {})
}

/** Lets a request to the API pass: a valid token, an allow-listed address, room in the rate window. */
export async function apiGate(parts: Parts, exchange: Exchange): Promise<Admission> {
  const caller = await parts.tokens.identify(exchange.authorization)
  const client = caller.kind === 'client' ? caller.id : null
  const live = parts.live(client)
  const tooMany = caller.kind === 'refused' && parts.failures.count(exchange.address, exchange.arrivedUs)
  if (tooMany) return { client, counted: false, headers: { 'x-ratelimit-remaining': '0' }, refusal: tooMany }
  const slot = parts.rates.take(client, exchange.address, exchange.arrivedUs)
  const headers = remainingHeader(slot.remaining)
  const pass = { client, counted: slot.admitted, headers }
  if (!slot.admitted) {
    const detail = `More than ${live.rateLimitRequests} requests in ${live.rateLimitWindowSeconds} seconds.`
    return { ...pass, refusal: problem(429, detail, {}, { 'retry-after': String(slot.retryAfterSeconds) }) }
  }
  if (caller.kind === 'refused') return { ...pass, refusal: unauthorized(caller.detail, exchange.authorization) }
  if (!isAllowed(exchange.address, live.allowedAddresses)) {
    return { ...pass, refusal: notListed(exchange, live.addressStatus) }
  }
  return { ...pass, refusal: undefined }
}

/** Lets a request for a token pass: it counts nothing, but says what the window of its client or address would take. */
export async function tokenGate({ clients, rates, failures }: Parts, exchange: Exchange): Promise<Admission> {
  const { address, arrivedUs, contentType, body } = exchange
  const mayTry = failures.refusal(address, arrivedUs) === undefined // or the header would tell who has guessed right
  const client = mayTry && isForm(contentType) ? clients.authenticated(new URLSearchParams(body)) : null
  const headers = remainingHeader(rates.remaining(client, address, arrivedUs))
  return { client, counted: false, headers, refusal: undefined }
}

/** On every answer of the API and the token endpoint: docs/interface.md, 8. */
export function remainingHeader(remaining: number): Record<string, string> {
  return { 'x-ratelimit-remaining': String(remaining) }
}

/** Lets everything pass and counts nothing. */
export async function openGate(): Promise<Admission> {
  return { client: null, counted: false, headers: {}, refusal: undefined }
}

function notListed({ address, authorization }: Exchange, status: number): Answer {
  const detail = `The address ${address} is not allow-listed.`
  return status === 401 ? unauthorized(detail, authorization) : problem(status, detail)
}

/** @see RFC 6750, 3: without a token there is no error to name */
function unauthorized(detail: string, authorization: string | undefined): Answer {
  const error = /^Bearer +\S/i.test(authorization ?? '') ? `, error="invalid_token", error_description="${detail}"` : ''
  return problem(401, detail, {}, { 'www-authenticate': `Bearer realm="sandbox"${error}` })
}
