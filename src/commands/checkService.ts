import { randomUUID } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import { systemClock } from '../clock.ts'
import type { Config } from '../config.ts'
import { slotReachMs } from '../dispatch/purse.ts'
import type { Answer, ServiceRequest } from '../record.ts'
import { createServiceClient, type ServiceClient } from '../service/client.ts'
import { decideToken } from '../service/decideToken.ts'
import { readAnswer } from '../service/reading.ts'
import { borrowSlots, type SlotLoan } from '../store/operator.ts'
import type { Finding } from './check.ts'
import { showDuration } from './time.ts'

/** The token request and the call. */
const requests = 2
/** How long to wait for slots while a daemon spends them. */
const slotsWithinMs = 10_000
const slotsAgainMs = 500

/**
 * Asks for a token and makes one harmless call, each a finding. Spends slots where there is a budget to take them from;
 * where nobody can know what a daemon has spent it asks only if told so.
 */
export async function checkService(config: Config, signal: AbortSignal, askAnyway: boolean): Promise<Finding[]> {
  const { loan, ageMs } = await waitForSlots(config, signal)
  if (loan.kind === 'none-free') return [notAsked(noneFree)]
  if (loan.kind === 'unknown' && !askAnyway) return [notAsked(unknown)]
  const client = createServiceClient({ service: config.service, maxInFlight: 1, clock: systemClock })
  const { requestTimeoutMs } = config.service
  const mayLeave = () => loan.kind !== 'loan' || ageMs() < slotReachMs(config.rateLimit.windowMs, requestTimeoutMs)
  try {
    return await ask(client, mayLeave)
  } finally {
    await client.close()
    if (loan.kind === 'loan') await loan.giveBack()
  }
}

const noneFree = `no slot of the budget was free for ${showDuration(slotsWithinMs)}: a daemon spends them, so see outboxd status`
const unknown =
  'the ledger cannot be read, so nobody knows what a daemon has spent; outboxd check --ask-anyway asks all the same'
const tooLate = 'the slot’s time had run out before the request could leave: run outboxd check again'

/** It is no problem of the service's, and yet nobody may take it for a success. */
const notAsked = (why: string): Finding => ({ what: 'service', isOk: false, words: `not asked: ${why}` })

async function waitForSlots(config: Config, signal: AbortSignal): Promise<{ loan: SlotLoan; ageMs: () => number }> {
  const { windowMs } = config.rateLimit
  const permits = Math.min(requests, config.rateLimit.requests)
  const reachMs = slotReachMs(windowMs, requests * config.service.requestTimeoutMs)
  const elapsedMs = systemClock.stopwatch()
  for (;;) {
    const ageMs = systemClock.stopwatch()
    const loan = await borrowSlots(config.stateDatabaseUrl, { permits, reachMs })
    if (loan.kind !== 'none-free' || elapsedMs() > slotsWithinMs || signal.aborted) return { loan, ageMs }
    await wait(slotsAgainMs)
  }
}

async function ask(client: ServiceClient, mayLeave: () => boolean): Promise<Finding[]> {
  const asked = await client.requestToken(mayLeave)
  if (asked === null) return [notAsked(tooLate)]
  const { answer, token } = asked
  if (token === null) return [{ what: 'token', isOk: false, words: decideToken(answer).detail }]
  const lifetime =
    token.lifetimeMs === null
      ? 'which does not say how long it lasts (TOKEN_EXPIRES_IN_UNIT?)'
      : `good for ${showDuration(token.lifetimeMs)}`
  const granted = `the issuer gave one, ${lifetime}, in ${Math.round(answer.tookMs)} ms`
  const harmless: ServiceRequest = { endpoint: 'status', body: randomUUID(), idempotencyKey: null }
  const call = await client.send(harmless, token.accessToken, mayLeave)
  return [{ what: 'token', isOk: true, words: granted }, call === null ? notAsked(tooLate) : judgeCall(call)]
}

/** The transaction that is asked for does not exist: whatever says so in the service's own words is as good as a success. */
export function judgeCall(answer: Answer): Finding {
  const { pause, said } = readAnswer(answer, 'data')
  const what = 'service'
  if (pause !== null) return { what, isOk: false, words: pause.detail }
  if (answer.kind === 'no-answer') return { what, isOk: false, words: `asked for a transaction: ${said}` }
  const { status, tookMs, rateRemaining } = answer
  if (status >= 500) return { what, isOk: false, words: said }
  if (status !== 404 && status !== 400 && status !== 200)
    return {
      what,
      isOk: false,
      words: `${said}; expected 404, as the transaction does not exist: look at SERVICE_BASE_URL`,
    }
  const left = rateRemaining === null ? '' : `; it says that ${rateRemaining} requests remain`
  return { what, isOk: true, words: `it takes our token and answers (${status} in ${Math.round(tookMs)} ms)${left}` }
}
