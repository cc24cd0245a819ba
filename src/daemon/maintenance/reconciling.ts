import { takeEach } from './takeEach.ts'

export interface ReconcilingDeps<Problem> {
  /** Brings polls back whose holder is silent. */
  supervise(): Promise<void>
  /** How long the oldest poll was overdue at the last look, milliseconds. */
  pollOverdueMs(): number
  /** Gives tracked submissions without a live job a new one. @returns how many */
  recreateMissingJobs(): Promise<number>
  onJobsRecreated(count: number): void
  /** Lets records go that wait though nothing before them blocks any more. @returns how many */
  releaseWaitingKeys(): Promise<number>
  onReleased(): void
  deleteStaleInstances(): Promise<void>
  /** Deletes counts of requests that nobody asks for any more. */
  pruneRequestCounts(): Promise<void>
  /** For how long a transaction may process until it is told; null: for ever. */
  stuckAfterMs: number | null
  findStuck(stuckAfterMs: number): Promise<Problem[]>
  /** Says that exactly these stuck transactions stand. */
  replaceStuck(problems: readonly Problem[]): Promise<void>
  /** Writes what became of records in the minutes and hours that are over. @returns whether there is more to write */
  sumUp(): Promise<boolean>
  /** Adds the small differences up again of which the counts are made. */
  compactCounts(): Promise<void>
}

/** Keeps the ledger, the queue and the instances in step with each other. */
export interface Reconciling {
  /** One round. @returns after how many milliseconds to begin the next */
  runOnce(): Promise<number>
}

const everyMs = 3_000
/** All is looked at in each tenth round; what is suspicious meanwhile, in the next. */
const wholeEveryRounds = 10
const suspiciousMs = 5_000

export function createReconciling<Problem>(deps: ReconcilingDeps<Problem>): Reconciling {
  let rounds = 0
  let isBehind = false
  const sumUp = async () => {
    isBehind = await deps.sumUp()
  }
  const whole = [
    async () => deps.onJobsRecreated(await deps.recreateMissingJobs()),
    async () => {
      if ((await deps.releaseWaitingKeys()) > 0) deps.onReleased()
    },
    deps.deleteStaleInstances,
    deps.pruneRequestCounts,
    async () => {
      const { stuckAfterMs } = deps
      await deps.replaceStuck(stuckAfterMs === null ? [] : await deps.findStuck(stuckAfterMs))
    },
    deps.compactCounts,
    sumUp,
  ]
  return {
    async runOnce() {
      const isWhole = rounds++ % wholeEveryRounds === 0
      // A poll that is long due may be in the hand of a dead instance.
      const isSuspicious = deps.pollOverdueMs() > suspiciousMs
      await takeEach([
        ...(isWhole || isSuspicious ? [deps.supervise] : []),
        ...(isWhole ? whole : isBehind ? [sumUp] : []),
      ])
      return everyMs
    },
  }
}
