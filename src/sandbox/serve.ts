import { setTimeout as delay } from 'node:timers/promises'
import { unavailableAnswer } from './endpoints/apiRefusals.ts'
import { applyAnswerSettings } from './endpoints/applyAnswerSettings.ts'
import { refusalAnswer } from './endpoints/problemAnswer.ts'
import type { Admission, Arrival, Exchange, Gate, Handler, Outcome, Parts } from './exchange.ts'
import { type AnswerStyle, applyFault, type Delivery, isStoppedBeforeProcessing } from './faults/applyFault.ts'
import type { FaultAction } from './faults/faults.ts'
import { omissionNote, truncateForLedger } from './gate/maskSecrets.ts'
import { toServiceUs } from './sandboxClock.ts'
import type { LiveSettings } from './sandboxSettings.ts'
import { type Effect, isEntryRefused, type LedgerRow } from './storage/journal.ts'
import { DatabaseAway } from './storage/sandboxDatabase.ts'

/**
 * Serves a request:
 *
 *     gate      decides if it may pass
 *     fault     finds the fault or script for it
 *     handler   makes the answer and its changes
 *     ledger    commits the request and the changes
 *     answer    leaves only now
 */
export async function serveRequest(
  parts: Parts,
  request: Omit<Arrival, 'lock'>,
  gate: Gate,
  handler: Handler,
): Promise<Delivery> {
  const held: (() => void)[] = []
  let delivered: { delivery: Delivery; delayMs: number }
  const arrival = { ...request, lock: async (name: string) => void held.push(await parts.mutex.take(name)) }
  try {
    let admission = await gate(parts, arrival)
    const live = parts.live(admission.client)
    const exchange = { ...arrival, idempotencyKey: idempotencyKeyOf(arrival, live) }
    const style = styleOf(parts, arrival, admission, live)
    const fault = admission.refusal ? undefined : parts.faults.choose({ ...exchange, client: admission.client })
    const outcome = await decide(parts, exchange, admission, fault?.spec, handler)
    const action = fault?.spec ?? outcome.fault
    let delivery = applyFault(outcome.answer, action, style)
    if (admission.ifItFails && delivery.kind === 'answer' && delivery.status >= 400) {
      delivery = { ...delivery, headers: { ...delivery.headers, ...admission.ifItFails() } }
      admission = { ...admission, counted: false }
    }
    const written = outcome.isAway
      ? 'written'
      : await record(parts, exchange, admission, { delivery, style }, outcome.effect, fault?.id ?? null)
    delivered = written === 'written' ? { delivery, delayMs: delayAfterMs(action) } : { delivery: written, delayMs: 0 }
  } finally {
    for (const release of held) release()
  }
  await wait(parts, delivered.delayMs)
  return delivered.delivery
}

function idempotencyKeyOf({ header }: Arrival, { idempotencyHeaders }: LiveSettings): string | null {
  return idempotencyHeaders.map((name) => header(name)).find((value) => value) ?? null
}

function styleOf(parts: Parts, { header }: Arrival, { client, headers }: Admission, live: LiveSettings): AnswerStyle {
  const asksForGzip = /\bgzip\b/i.test(header('accept-encoding') ?? '')
  return {
    headers,
    present: (answer) => applyAnswerSettings(answer, live, toServiceUs(parts.clock.nowUs(), live)),
    isGzip: live.compression === 'always' || (live.compression === 'asked' && asksForGzip),
    newId: () => parts.random.wrongId(client ?? ''),
  }
}

const stopped = refusalAnswer(500, 'A fault of the sandbox stopped the request before it was applied.')

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
    if (isStoppedBeforeProcessing(action)) return { answer: stopped, fault: action }
    if (action && isHeldBefore(action)) await wait(parts, action.delayMs)
    const outcome = await handler(parts, exchange, client)
    return { ...outcome, fault: outcome.fault ?? action }
  } catch (error) {
    if (error instanceof DatabaseAway) {
      parts.outage.reportDown(error)
      return { answer: unavailableAnswer(parts, admission.client), isAway: true }
    }
    const message = error instanceof Error ? error.stack : String(error)
    process.stderr.write(`sandbox: ${exchange.method} ${exchange.path}: ${message}\n`)
    return { answer: refusalAnswer(500, 'The sandbox failed. Its stderr has the error.') }
  }
}

interface Outgoing {
  delivery: Delivery
  style: AnswerStyle
}

async function record(
  parts: Parts,
  exchange: Exchange,
  { client, counted }: Admission,
  { delivery, style }: Outgoing,
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
    parts.outage.reportUp()
    return 'written'
  } catch (error) {
    if (error instanceof DatabaseAway) return answerWhileAway(parts, error, { delivery, style }, effect, client)
    process.stderr.write(`sandbox: a request could not be stored: ${error instanceof Error ? error.message : error}\n`)
    if (isEntryRefused(error)) await noteFailure(parts, row)
    return applyFault(refusalAnswer(500, 'The request could not be stored.'), undefined, style)
  }
}

/**
 * Answers truthfully without the ledger: a refusal stays, E003 if nothing was stored, no answer if something may have
 * been.
 */
function answerWhileAway(
  parts: Parts,
  error: DatabaseAway,
  { delivery, style }: Outgoing,
  effect: Effect | undefined,
  client: string | null,
): Delivery {
  parts.outage.reportDown(error)
  if (effect && error.mayBeStored) return { kind: 'drop' }
  if (delivery.kind === 'drop' || (!effect && delivery.status >= 400 && delivery.status < 500)) return delivery
  return applyFault(unavailableAnswer(parts, client), undefined, style)
}

async function noteFailure(parts: Parts, row: LedgerRow): Promise<void> {
  await parts.journal.write({ row: { ...row, status: 500 }, effect: undefined }).catch(() => {})
}

/** Keeps only the size of bodies beyond the limit, so that an unknown client cannot fill the disk. */
function keptOfStranger({ idempotencyKey, maskedBody }: Exchange, status: number | null) {
  const body =
    status === 429 && maskedBody !== '' ? omissionNote(maskedBody, 'too many requests') : truncateForLedger(maskedBody)
  return { idempotencyKey: idempotencyKey && truncateForLedger(idempotencyKey), body }
}

function delayAfterMs(fault: FaultAction | undefined): number {
  return fault === undefined || isHeldBefore(fault) ? 0 : fault.delayMs
}

function isHeldBefore(fault: FaultAction): boolean {
  return fault.kind === 'delay' && fault.when === 'before'
}

async function wait(parts: Parts, delayMs: number): Promise<void> {
  if (delayMs > 0) await delay(delayMs, undefined, { signal: parts.closing }).catch(() => {})
}
