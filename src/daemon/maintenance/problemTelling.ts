export interface ProblemTellingDeps<Problem> {
  /** Whether an outcome has waited to be written for so long that it matters who holds it up. */
  waitsLong(): boolean
  /** The server's processes of others that are waited for just now. */
  readBlockers(): Promise<number[]>
  /** What is wrong in this instance. */
  problems(blockers: readonly number[]): readonly Problem[]
  /** Says that exactly these stand. */
  tell(problems: readonly Problem[]): Promise<void>
  /** They could not be told; the next round tells them. */
  onFailed(error: unknown): void
}

/** Says where `outboxd status` finds it what is wrong in this instance. Never throws. */
export interface ProblemTelling {
  runOnce(): Promise<void>
  /** Says that nothing is wrong any more: the instance leaves. */
  clear(): Promise<void>
}

export function createProblemTelling<Problem>(deps: ProblemTellingDeps<Problem>): ProblemTelling {
  /** A lock is waited for again and again: in between nobody is seen to hold it. */
  let blockers: number[] = []

  async function look(): Promise<void> {
    const isLong = deps.waitsLong()
    const seen = isLong ? await deps.readBlockers().catch(() => []) : []
    if (!isLong || seen.length > 0) blockers = seen
  }

  return {
    async runOnce() {
      await look()
      await deps.tell(deps.problems(blockers)).catch(deps.onFailed)
    },
    clear: () => deps.tell([]).catch(deps.onFailed),
  }
}
