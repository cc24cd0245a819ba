import { setTimeout as wait } from 'node:timers/promises'
import { systemClock } from '../clock.ts'
import type { Config } from '../config.ts'
import { createServiceClient, type ServiceClient } from '../service/client.ts'
import { slotReachMs } from '../slotReach.ts'
import { borrowSlots, type SlotLoan } from '../store/borrowSlots.ts'

/** How long to wait for slots while a daemon spends them. */
export const slotsWithinMs = 10_000
const slotsAgainMs = 500

/** What came of asking, or why nothing was asked. */
export type Asked<T> =
  | { kind: 'asked'; result: T }
  /** A daemon spends the budget. */
  | { kind: 'none-free' }
  /** The ledger cannot be read, or not be written, so nobody knows what a daemon has spent. */
  | { kind: 'unknown'; readOnly: boolean }

export interface AskingDeps<T> {
  signal: AbortSignal
  /** Ask though the ledger cannot say what is left of the budget. */
  askAnyway: boolean
  /** No slot is free at the moment, and it is waited for one. */
  onWait(): void
  /** How many requests to take slots for; where the limit is lower, as many as that. */
  requestsMax: number
  /** The service showed a certificate that ends then, epoch ms. */
  onCertificate(expiresAtMs: number): void
  /** @param mayLeave whether the slots may still be used  @param requests how many may be made */
  ask(client: ServiceClient, mayLeave: () => boolean, requests: number): Promise<T>
}

/**
 * Lets a command ask the service, and pays from the budget if there is one.
 *
 * @throws ForeignService if the ledger belongs to another service
 */
export async function withBorrowedClient<T>(config: Config, deps: AskingDeps<T>): Promise<Asked<T>> {
  const { loan, ageMs } = await waitForSlots(config, deps)
  if (loan.kind === 'none-free' || (loan.kind === 'unknown' && !deps.askAnyway)) return loan
  const { service } = config
  const client = createServiceClient({
    service,
    credentials: () => service,
    maxInFlight: 1,
    clock: systemClock,
    onCertificate: deps.onCertificate,
  })
  const { requestTimeoutMs } = service
  const mayLeave = () => loan.kind !== 'loan' || ageMs() < slotReachMs(config.rateLimit.windowMs, requestTimeoutMs)
  try {
    return { kind: 'asked', result: await deps.ask(client, mayLeave, permitsFor(config, deps)) }
  } finally {
    await client.close()
    if (loan.kind === 'loan') await loan.giveBack()
  }
}

const permitsFor = ({ rateLimit }: Config, { requestsMax }: { requestsMax: number }) =>
  Math.min(requestsMax, rateLimit.requests)

async function waitForSlots(
  config: Config,
  { signal, onWait, requestsMax }: Pick<AskingDeps<unknown>, 'signal' | 'onWait' | 'requestsMax'>,
): Promise<{ loan: SlotLoan; ageMs: () => number }> {
  const { windowMs } = config.rateLimit
  const permits = permitsFor(config, { requestsMax })
  const reachMs = slotReachMs(windowMs, requestsMax * config.service.requestTimeoutMs)
  const elapsedMs = systemClock.stopwatch()
  for (let turn = 0; ; turn++) {
    const ageMs = systemClock.stopwatch()
    const loan = await borrowSlots(config.stateDatabaseUrl, { permits, reachMs, service: config.service })
    if (loan.kind !== 'none-free' || elapsedMs() > slotsWithinMs || signal.aborted) return { loan, ageMs }
    if (turn === 0) onWait()
    await wait(slotsAgainMs)
  }
}
