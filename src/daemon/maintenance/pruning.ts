export interface PruningDeps<Pruned> {
  /**
   * Deletes what is due, in small batches.
   *
   * @param goOn asked in between: false ends it
   * @param onProgress what this round has done so far
   * @returns `begun`: there is more to do; `elsewhere`: another instance does it
   */
  prune(goOn: () => boolean, onProgress: (pruned: Pruned) => void): Promise<'through' | 'begun' | 'elsewhere'>
  /** For how long the oldest that should have gone has been due, milliseconds; 0 where none is. */
  readOverdueMs(): Promise<number>
  /** On a clock that only goes forward. */
  elapsedMs(): number
  onPruned(pruned: Pruned): void
  showOverdue(overdueMs: number): void
  /** Says that exactly these stand. */
  tellBehind(problems: { subject: string; detail: string; retryInMs: null }[]): Promise<void>
}

/** Keeps the ledger at its size. */
export interface Pruning {
  /** One round. @returns after how many milliseconds to begin the next, unless woken before */
  runOnce(): Promise<number>
  /** Ends a round that is under way: the daemon stops. */
  giveUp(): void
}

/** A round of a loop that takes long looks stuck: the next one goes on. */
const roundMaxMs = 20_000
/** node-cron wakes it each minute; this is for where it does not. */
const atLeastEveryMs = 90_000
/** What is due goes within a minute. */
const behindMs = 86_400_000

export function createPruning<Pruned>(deps: PruningDeps<Pruned>): Pruning {
  let isGivenUp = false
  return {
    async runOnce() {
      const untilMs = deps.elapsedMs() + roundMaxMs
      let done: Pruned | null = null
      const goOn = () => !isGivenUp && deps.elapsedMs() < untilMs
      const end = await deps
        .prune(goOn, (pruned) => {
          done = pruned
        })
        .finally(() => done !== null && deps.onPruned(done))
      const overdueMs = await deps.readOverdueMs()
      deps.showOverdue(overdueMs)
      await deps.tellBehind(overdueMs > behindMs ? [behind(overdueMs)] : [])
      return end === 'begun' ? 0 : atLeastEveryMs
    },
    giveUp() {
      isGivenUp = true
    },
  }
}

function behind(overdueMs: number) {
  const days = Math.floor(overdueMs / 86_400_000)
  const detail = `the oldest that RETENTION_DAYS or RETENTION_PAYLOAD_DAYS lets go has been due for ${days} ${days === 1 ? 'day' : 'days'}`
  return { subject: '', detail, retryInMs: null }
}
