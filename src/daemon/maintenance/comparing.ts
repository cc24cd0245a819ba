export interface ComparingDeps {
  /**
   * Looks for rows that the ledger has lost, where no instance has for so long.
   *
   * @param goOn asked in between: false ends it
   * @returns `begun`: it goes on the next time
   */
  compareLedger(everyMs: number, goOn: () => boolean): Promise<'not-due' | 'begun' | 'done'>
}

/** Compares the outbox with the ledger: at the start, and then each hour. */
export interface Comparing {
  /** One round. @returns after how many milliseconds to begin the next */
  runOnce(): Promise<number>
  /** Ends a comparison that is under way: the daemon stops. */
  giveUp(): void
}

/** Instances that are started together compare once. */
const atStartMs = 60_000
const hourlyMs = 3_600_000
const lookEveryMs = 60_000

export function createComparing({ compareLedger }: ComparingDeps): Comparing {
  let everyMs = atStartMs
  let isGivenUp = false
  return {
    async runOnce() {
      const comparison = await compareLedger(everyMs, () => !isGivenUp)
      if (comparison !== 'not-due') everyMs = hourlyMs
      return comparison === 'begun' ? 0 : lookEveryMs
    },
    giveUp() {
      isGivenUp = true
    },
  }
}
