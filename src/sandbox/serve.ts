import { setTimeout as delay } from 'node:timers/promises'
import { unavailableServiceAnswer } from './endpoints/apiRefusals.ts'
import { applyAnswerSettings } from './endpoints/applyAnswerSettings.ts'
import { refusalAnswer } from './endpoints/problemAnswer.ts'
import type { Admission, Arrival, Exchange, Gate, Handler, Outcome, Parts } from './exchange.ts'
import { type AnswerStyle, applyFault, type Delivery, isStoppedBeforeProcessing } from './faults/applyFault.ts'
import type { Fault, FaultAction } from './faults/faults.ts'
import { toServiceUs } from './sandboxClock.ts'
import type { LiveSettings } from './sandboxSettings.ts'
import { DatabaseAway } from './storage/sandboxDatabase.ts'
import { isValueRefused, writeRequest } from './storage/writeRequest.ts'

/**
 * Serves a request:
 *
 *     gate      decides if it may pass
 *     fault     finds the fault or script for it
 *     handler   makes the answer and its changes
 *     ledger    commits the request and the changes
 *     answer    leaves only now
 */
export async function serveRequest(parts: Parts, arrival: Arrival, gate: Gate, handler: Handler): Promise<Delivery> {
  const admission = await gate(parts, arrival)
  const live = parts.live(admission.client)
  const exchange = { ...arrival, idempotencyKey: idempotencyKeyOf(arrival, live) }
  const style = styleOf(parts, arrival, admission, live)
  const fault = admission.refusal ? undefined : parts.faults.choose({ ...exchange, client: admission.client })
  try {
    const action = admission.refusal
      ? undefined
      : (fault?.spec ?? (await parts.scripts.answer(exchange, admission.client ?? '')))
    if (action && isHeldBefore(action)) await wait(parts, action.delayMs)
    const outages = parts.outages.count
    const { delivery, delayMs } = await parts.oneAtATime(async () => {
      // Behind a locked table each request takes a second, so those that wait do not try.
      if (parts.outages.count > outages) throw new DatabaseAway('it did not answer the request before', false)
      try {
        const outcome = await decide(parts, exchange, admission, action, handler)
        return await record(parts, { exchange, admission, style, outcome, action: outcome.fault ?? action, fault })
      } catch (error) {
        parts.outages.count += 1
        throw error
      }
    })
    await wait(parts, delayMs)
    return delivery
  } catch (error) {
    return answerWithoutLedger(parts, exchange, admission, style, error)
  }
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
const failed = refusalAnswer(500, 'The sandbox failed. Its stderr has the error.')

async function decide(
  parts: Parts,
  exchange: Exchange,
  { refusal, client }: Admission,
  action: FaultAction | undefined,
  handler: Handler,
): Promise<Outcome> {
  if (refusal) return { answer: refusal }
  if (isStoppedBeforeProcessing(action)) return { answer: stopped }
  try {
    return await handler(parts, exchange, client ?? '')
  } catch (error) {
    if (error instanceof DatabaseAway) throw error
    reportFailure(exchange, error)
    return { answer: failed }
  }
}

interface Decided {
  exchange: Exchange
  admission: Admission
  style: AnswerStyle
  outcome: Outcome
  action: FaultAction | undefined
  fault: Fault | undefined
}

async function record(parts: Parts, { exchange, admission, style, outcome, action, fault }: Decided) {
  let delivery = applyFault(outcome.answer, action, style)
  let { counted } = admission
  if (admission.ifItFails && delivery.kind === 'answer' && delivery.status >= 400) {
    delivery = { ...delivery, headers: { ...delivery.headers, ...admission.ifItFails() } }
    counted = false
  }
  const { endpoint, method, path, address, idempotencyKey, maskedBody: body } = exchange
  const { arrivedUs, client } = admission
  const status = delivery.kind === 'drop' ? null : delivery.status
  const faultId = fault?.id ?? null
  const row = { arrivedUs, endpoint, method, path, client, address, idempotencyKey, body, status, counted, faultId }
  try {
    await writeRequest(parts, row, outcome.effect)
    return { delivery, delayMs: action && !isHeldBefore(action) ? action.delayMs : 0 }
  } catch (error) {
    if (!isValueRefused(error)) throw error
    reportFailure(exchange, error)
    await writeRequest(parts, { ...row, status: 500 }, undefined)
    return { delivery: applyFault(failed, undefined, style), delayMs: 0 }
  }
}

/** Answers truthfully: a refusal stays, E003 if nothing was stored, no answer if something may have been. */
function answerWithoutLedger(
  parts: Parts,
  exchange: Exchange,
  { refusal, client }: Admission,
  style: AnswerStyle,
  error: unknown,
): Delivery {
  reportFailure(exchange, error)
  if (!(error instanceof DatabaseAway)) return applyFault(failed, undefined, style)
  if (error.mayBeStored) return { kind: 'drop' }
  return applyFault(refusal ?? unavailableServiceAnswer(parts, client), undefined, style)
}

function reportFailure({ method, endpoint }: Exchange, error: unknown): void {
  const message = error instanceof Error && !(error instanceof DatabaseAway) ? error.stack : String(error)
  process.stderr.write(`sandbox: ${method} ${endpoint} failed: ${message}\n`)
}

function isHeldBefore(fault: FaultAction): boolean {
  return fault.kind === 'delay' && fault.when === 'before'
}

async function wait(parts: Parts, delayMs: number): Promise<void> {
  if (delayMs > 0) await delay(delayMs, undefined, { signal: parts.closing }).catch(() => {})
}
