import type { Log } from '../observe/log.ts'

export interface Unsettled {
  submissionId: string
  outboxId: string
  transactionId: string | null
}

export interface WaitForOutcomesDeps {
  log: Log
  stopTaking(): Promise<void>
  inFlight(): number
  drained(): Promise<void>
  lostClaims(): { readonly length: number }
  unsettled(): Unsettled[]
  recoverClaims(): Promise<void>
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
  const giveUp = new AbortController()
  let waitedMs = 0
  const timers = [
    setInterval(() => {
      waitedMs += tellEveryMs
      tellWaiting(deps, waitedMs)
    }, tellEveryMs),
    setTimeout(() => giveUp.abort(), giveUpMs),
  ] as const
  const givenUp = new Promise<false>((resolve) => giveUp.signal.addEventListener('abort', () => resolve(false)))
  try {
    const settled = await Promise.race([stopAndSettle(deps, giveUp.signal), givenUp])
    if (!settled) tellGivenUp(deps)
    return settled
  } finally {
    for (const timer of timers) clearTimeout(timer)
  }
}

async function stopAndSettle(deps: WaitForOutcomesDeps, signal: AbortSignal): Promise<boolean> {
  await deps.stopTaking()
  await Promise.all([deps.drained(), recoverAll(deps, signal)])
  return true
}

async function recoverAll({ lostClaims, recoverClaims }: WaitForOutcomesDeps, signal: AbortSignal): Promise<void> {
  while (lostClaims().length > 0 && !signal.aborted) {
    await recoverClaims().catch(() => {})
    if (lostClaims().length > 0) await new Promise((resolve) => setTimeout(resolve, lookEveryMs))
  }
}

function tellWaiting(deps: WaitForOutcomesDeps, lastedMs: number): void {
  const records = deps.unsettled()
  const what = [
    ...(deps.inFlight() > 0 ? ['answers, or the ledger’s database to write them'] : []),
    ...(deps.lostClaims().length > 0 ? ['that database to say what became of claims'] : []),
  ]
  const awaited = what.join(' and ') || 'a round to end'
  deps.log.warn(
    `stopping takes long: the daemon waits for ${awaited}. A second signal stops it at once and leaves these records in doubt`,
    {
      lastedMs,
      count: records.length,
      records,
    },
  )
}

function tellGivenUp({ log, unsettled }: WaitForOutcomesDeps): void {
  const records = unsettled()
  log.error('outcomes could not be found out or written in time: another instance settles these records', {
    count: records.length,
  })
  for (const record of records) log.error('record was left in doubt: its outcome is not written', { ...record })
}
