import type { Log } from '../observe/log.ts'
import type { Dispatcher } from './dispatch/dispatcher.ts'

export interface WaitForOutcomesDeps extends Pick<Dispatcher, 'drained' | 'unsettled' | 'recoverClaims'> {
  log: Log
  stopTaking(): Promise<void>
  lostClaims(): { readonly length: number }
}

const tellEveryMs = 10_000
const lookEveryMs = 1_000
/** A supervisor usually kills the daemon much earlier. */
const giveUpMs = 600_000

/**
 * Waits until every outcome is known and written. An instance that leaves earlier puts records in doubt that were never
 * sent, or whose answer it has.
 *
 * @returns false if it gave up
 */
export async function waitForOutcomes(deps: WaitForOutcomesDeps): Promise<boolean> {
  const { log, unsettled } = deps
  const giveUp = new AbortController()
  const settled = stopAndSettle(deps, giveUp.signal).then(() => true)
  for (let lastedMs = tellEveryMs; lastedMs <= giveUpMs; lastedMs += tellEveryMs) {
    const waiting = Promise.withResolvers<false>()
    const timer = setTimeout(waiting.resolve, tellEveryMs, false)
    const isSettled = await Promise.race([settled, waiting.promise]).finally(() => clearTimeout(timer))
    if (isSettled) return true
    const records = unsettled()
    log.warn(
      'stopping takes long: the daemon waits for answers, or for the ledger’s database to write them or to say what became of claims. A second signal stops it at once and leaves these records in doubt',
      { lastedMs, count: records.length, records },
    )
  }
  giveUp.abort()
  const records = unsettled()
  log.error('outcomes could not be found out or written in time: another instance settles these records', {
    count: records.length,
  })
  for (const record of records) log.error('record was left in doubt: its outcome is not written', { ...record })
  return false
}

async function stopAndSettle(deps: WaitForOutcomesDeps, signal: AbortSignal): Promise<void> {
  await deps.stopTaking()
  await Promise.all([deps.drained(), recoverAll(deps, signal)])
}

async function recoverAll({ lostClaims, recoverClaims }: WaitForOutcomesDeps, signal: AbortSignal): Promise<void> {
  while (lostClaims().length > 0 && !signal.aborted) {
    await recoverClaims().catch(() => {})
    if (lostClaims().length > 0) await new Promise((resolve) => setTimeout(resolve, lookEveryMs))
  }
}
