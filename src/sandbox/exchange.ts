import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import type { Clients } from './clients.ts'
import { unavailable } from './endpoints/apiRefusals.ts'
import { presentAnswer } from './endpoints/presentAnswer.ts'
import { type Answer, problem } from './endpoints/problemAnswer.ts'
import type { Endpoint } from './endpoints/requestSchemas.ts'
import { applyFault, type Delivery, type Manner, stopsBefore } from './faults/applyFault.ts'
import type { FaultAction, Faults } from './faults/faults.ts'
import type { ClientRates } from './gate/clientRates.ts'
import type { Failures } from './gate/failures.ts'
import type { Tokens } from './gate/issuedTokens.ts'
import { bound, leftOut } from './gate/maskSecrets.ts'
import type { Draws } from './processing/draws.ts'
import { type SandboxClock, toldUs } from './sandboxClock.ts'
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
  /** Of the header with this name; undefined where there is none. */
  header(name: string): string | undefined
  /** Of the first header that carries one, going by the client's settings. */
  idempotencyKey: string | null
  body: string
  /** As the ledger keeps it. */
  maskedBody: string
  /** Whether the bytes of the body were UTF-8; in `body`, what is not is U+FFFD. */
  isUtf8: boolean
  /** Waits until no other request holds `name`, and holds it until this one is in the ledger. */
  lock(name: string): Promise<void>
}

/** A request before anybody knows whose it is. */
export type Arrival = Omit<Exchange, 'idempotencyKey'>

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

export type Gate = (parts: Parts, exchange: Arrival) => Promise<Admission>
export type Handler = (parts: Parts, exchange: Exchange, client: string) => Promise<Outcome>

/** A request's way: may it pass, is a fault switched on, what is applied, into the ledger, and only then the answer. */
export async function serve(
  parts: Parts,
  request: Omit<Arrival, 'lock'>,
  gate: Gate,
  handler: Handler,
): Promise<Delivery> {
  const held: (() => void)[] = []
  let delivered: { delivery: Delivery; delayMs: number }
  const arrival = { ...request, lock: async (name: string) => void held.push(await parts.mutex.take(name)) }
  try {
    const admission = await gate(parts, arrival)
    const live = parts.live(admission.client)
    const exchange = { ...arrival, idempotencyKey: idempotencyKeyOf(arrival, live) }
    const manner = mannerOf(parts, arrival, admission, live)
    const fault = admission.refusal ? undefined : parts.faults.choose({ ...exchange, client: admission.client })
    const outcome = await decide(parts, exchange, admission, fault?.spec, handler)
    const action = fault?.spec ?? outcome.fault
    const delivery = applyFault(outcome.answer, action, manner)
    const written = outcome.isAway
      ? 'written'
      : await record(parts, exchange, admission, { delivery, manner }, outcome.effect, fault?.id ?? null)
    delivered = written === 'written' ? { delivery, delayMs: delayAfterMs(action) } : { delivery: written, delayMs: 0 }
  } finally {
    for (const release of held) release()
  }
  await wait(parts, delivered.delayMs)
  return delivered.delivery
}

/** An empty one is none. */
function idempotencyKeyOf({ header }: Arrival, { idempotencyHeaders }: LiveSettings): string | null {
  return idempotencyHeaders.map((name) => header(name)).find((value) => value) ?? null
}

function mannerOf(parts: Parts, { header }: Arrival, { client, headers }: Admission, live: LiveSettings): Manner {
  const asksForGzip = /\bgzip\b/i.test(header('accept-encoding') ?? '')
  return {
    headers,
    present: (answer) => presentAnswer(answer, live, toldUs(parts.clock.nowUs(), live)),
    isGzip: live.compression === 'always' || (live.compression === 'asked' && asksForGzip),
    newId: () => parts.draws.wrongId(client ?? ''),
  }
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

/** What is about to be sent, and how something else would be. */
interface Outgoing {
  delivery: Delivery
  manner: Manner
}

async function record(
  parts: Parts,
  exchange: Exchange,
  { client, counted }: Admission,
  { delivery, manner }: Outgoing,
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
    if (error instanceof DatabaseAway) return answerWhileAway(parts, error, { delivery, manner }, effect, client)
    process.stderr.write(`sandbox: a request could not be stored: ${error instanceof Error ? error.message : error}\n`)
    if (isOneEntrysFault(error)) await noteFailure(parts, row)
    return applyFault(problem(500, 'The request could not be stored.'), undefined, manner)
  }
}

/**
 * What is true though the ledger does not have the request: a refusal as it is; E003 where surely nothing was stored; no answer
 * where a transaction or an order may have been.
 */
function answerWhileAway(
  parts: Parts,
  error: DatabaseAway,
  { delivery, manner }: Outgoing,
  effect: Effect | undefined,
  client: string | null,
): Delivery {
  parts.outage.met(error)
  if (effect && error.mayBeStored) return { kind: 'drop' }
  if (delivery.kind === 'drop' || (!effect && delivery.status >= 400 && delivery.status < 500)) return delivery
  return applyFault(unavailable(parts, client), undefined, manner)
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
