import { setTimeout as delay } from 'node:timers/promises'
import { unavailableServiceAnswer } from './endpoints/apiRefusals.ts'
import { applyRefusalSettings } from './endpoints/applyRefusalSettings.ts'
import { refusalAnswer } from './endpoints/problemAnswer.ts'
import type { Admission, Arrival, Exchange, Gate, Handler, Outcome, SandboxParts } from './exchange.ts'
import { type AnswerStyle, applyFault, type Delivery, isStoppedBeforeProcessing } from './faults/applyFault.ts'
import type { Fault, FaultAction } from './faults/faults.ts'
import { toServiceTimeUs } from './sandboxClock.ts'
import type { LiveSettings } from './sandboxSettings.ts'
import { DatabaseAway } from './storage/sandboxDatabase.ts'
import { isValueRefused, writeRequest } from './storage/writeRequest.ts'

/**
 * Serves a request:
 *
 *     gate      decides if the request may pass
 *     fault     finds the fault or script for the request
 *     handler   makes the answer and its changes
 *     log       commits the request and the changes
 *     answer    leaves only after the commit
 */
export async function serveRequest(
  parts: SandboxParts,
  arrival: Arrival,
  gate: Gate,
  handler: Handler,
): Promise<Delivery> {
  const admission = await gate(parts, arrival)
  const live = parts.liveSettingsOf(admission.client)
  const idempotencyKey = live.idempotencyHeaders.map((name) => arrival.header(name)).find((value) => value) ?? null
  const exchange = { ...arrival, client: admission.client ?? '', idempotencyKey }
  const fault = admission.refusal ? undefined : parts.faults.chooseAndCount(exchange)
  const served = { exchange, admission, fault, style: styleOf(parts, exchange, admission, live) }
  try {
    const action = admission.refusal ? undefined : (fault?.spec ?? (await parts.scripts.findFaultAndCount(exchange)))
    if (action && isHeldBefore(action)) await wait(parts, action.delayMs)
    const outages = parts.databaseFailures.count
    const { delivery, delayMs } = await parts.oneAtATime(async () => {
      // If a table is locked, a request takes a second to fail. Those that waited for the failed request fail at once.
      if (parts.databaseFailures.count > outages)
        throw new DatabaseAway('the database did not answer the request before this one', false)
      try {
        const outcome = await decide(parts, served, action, handler)
        return await record(parts, served, outcome, outcome.fault ?? action)
      } catch (error) {
        parts.databaseFailures.count += 1
        throw error
      }
    })
    await wait(parts, delayMs)
    return delivery
  } catch (error) {
    return answerWithoutLedger(parts, served, error)
  }
}

interface Served {
  exchange: Exchange
  admission: Admission
  style: AnswerStyle
  fault: Fault | undefined
}

function styleOf(
  parts: SandboxParts,
  { header, client }: Exchange,
  { headers }: Admission,
  live: LiveSettings,
): AnswerStyle {
  const asksForGzip = /\bgzip\b/i.test(header('accept-encoding') ?? '')
  return {
    headers,
    present: (answer) => applyRefusalSettings(answer, live, toServiceTimeUs(parts.clock.nowUs(), live)),
    isGzip: live.compression === 'always' || (live.compression === 'asked' && asksForGzip),
    newWrongId: () => parts.random.wrongId(client),
  }
}

const stopped = refusalAnswer(500, 'A fault of the sandbox stopped the request before it was applied.')
const failed = refusalAnswer(500, 'The sandbox failed. Its stderr has the error.')

async function decide(
  parts: SandboxParts,
  { exchange, admission: { refusal } }: Served,
  action: FaultAction | undefined,
  handler: Handler,
): Promise<Outcome> {
  if (refusal) return { answer: refusal }
  if (isStoppedBeforeProcessing(action)) return { answer: stopped }
  try {
    return await handler(parts, exchange)
  } catch (error) {
    if (error instanceof DatabaseAway) throw error
    reportFailure(exchange, error)
    return { answer: failed }
  }
}

async function record(parts: SandboxParts, served: Served, outcome: Outcome, action: FaultAction | undefined) {
  const { exchange, admission, style, fault } = served
  let delivery = applyFault(outcome.answer, action, style)
  let { counted } = admission
  if (admission.uncountFailedRequest && delivery.kind === 'answer' && delivery.status >= 400) {
    delivery = { ...delivery, headers: { ...delivery.headers, ...admission.uncountFailedRequest() } }
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

/**
 * Answers a request that could not be stored. Drops the connection if a commit may have succeeded. Otherwise sends the
 * gate's refusal, or E003 (service unavailable).
 */
function answerWithoutLedger(parts: SandboxParts, { exchange, admission, style }: Served, error: unknown): Delivery {
  reportFailure(exchange, error)
  if (!(error instanceof DatabaseAway)) return applyFault(failed, undefined, style)
  if (error.mayBeStored) return { kind: 'drop' }
  return applyFault(admission.refusal ?? unavailableServiceAnswer(parts, exchange.client), undefined, style)
}

function reportFailure({ method, endpoint }: Exchange, error: unknown): void {
  const message = error instanceof Error && !(error instanceof DatabaseAway) ? error.stack : String(error)
  process.stderr.write(`sandbox: ${method} ${endpoint} failed: ${message}\n`)
}

function isHeldBefore(fault: FaultAction): boolean {
  return fault.kind === 'delay' && fault.when === 'before'
}

async function wait(parts: SandboxParts, delayMs: number): Promise<void> {
  if (delayMs > 0) await delay(delayMs, undefined, { signal: parts.closing }).catch(() => {})
}
