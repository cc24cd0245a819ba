/** The settings that hold for all instances. */
interface Agreed {
  requests: number
  windowMs: number
  /** What held before, where it was something else; null where nothing has changed. */
  before: unknown
  differences: readonly { detail: string }[]
}

export interface ObservingDeps<Ledger, Backlog extends { waiting: number }, Acts> {
  /** Looks whether each database answers, and shows it. */
  watchDatabases(): Promise<void>
  /** Says again what this instance was given, and finds out what holds among all. */
  agreeOnSettings(): Promise<Agreed>
  warn(event: string): void
  readLedger(): Promise<Ledger>
  /** On a clock that only goes forward. */
  elapsedMs(): number
  /** What waits in the outbox. */
  readBacklog(): Promise<Backlog>
  /** @param backlog as it was last seen, null where it has not been */
  show(ledger: Ledger, backlog: Backlog | null): void
  /** What operators have ordered since this was last asked. */
  takeOperatorActs(): Promise<Acts>
  onOperatorActs(acts: Acts): void
  sawWaiting(rows: number): Promise<void>
  /** Says which rows somebody has locked before capture. */
  watchLocks(): Promise<void>
  /** Says what the triggers on the ERP's tables could not do. */
  tellCaptureProblems(): Promise<void>
}

/** Looks at how the databases stand: for the metrics, and for the problems that only looking finds. */
export interface Observing {
  /** One round. @returns after how many milliseconds to begin the next */
  runOnce(): Promise<number>
}

const everyMs = 5_000
/** So many rows are counted at every look: a few milliseconds. */
const countedAlwaysMax = 20_000
const countEveryMostMs = 600_000

/**
 * How long a count of so many waiting rows stands before they are counted again. Each row costs the same, so twice as many
 * are counted half as often: the outbox's database spends some thousandth of a core on it however many wait, and within that time a
 * few thousandths of them at most are sent at the usual limit. Pure.
 */
export function countEveryMs(waiting: number): number {
  return Math.min(countEveryMostMs, everyMs * Math.max(1, waiting / countedAlwaysMax))
}

export function createObserving<Ledger, Backlog extends { waiting: number }, Acts>(
  deps: ObservingDeps<Ledger, Backlog, Acts>,
): Observing {
  let differences = ''
  let backlog: Backlog | null = null
  let countAtMs = Number.NEGATIVE_INFINITY

  async function countBacklog(): Promise<Backlog> {
    const nowMs = deps.elapsedMs()
    if (backlog !== null && nowMs < countAtMs) return backlog
    const counted = await deps.readBacklog()
    // The rounds themselves are that far apart: a little less, so that none falls just before its time.
    countAtMs = nowMs + countEveryMs(counted.waiting) - everyMs / 2
    return counted
  }

  function tellSettings(agreed: Agreed): void {
    if (agreed.before !== null)
      deps.warn(`for all instances ${agreed.requests} requests in ${agreed.windowMs / 1000} s hold now`)
    const details = agreed.differences.map(({ detail }) => detail)
    if (details.join('\n') !== differences)
      for (const detail of details.length > 0 ? details : ['the settings of the instances no longer differ'])
        deps.warn(detail)
    differences = details.join('\n')
  }

  return {
    async runOnce() {
      await deps.watchDatabases() // before one that does not ends the round
      tellSettings(await deps.agreeOnSettings())
      const ledger = await deps.readLedger()
      deps.show(ledger, backlog) // the outbox may be away, or slow
      deps.onOperatorActs(await deps.takeOperatorActs())
      backlog = await countBacklog()
      deps.show(ledger, backlog)
      await deps.sawWaiting(backlog.waiting)
      await deps.watchLocks()
      await deps.tellCaptureProblems()
      return everyMs
    },
  }
}
