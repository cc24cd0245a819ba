export interface ChainingDeps {
  /**
   * Chains what the logs have got since.
   *
   * @param goOn asked in between: false ends it
   * @returns `begun`: there is more to do; `endOfDay`: the chain's head when a day ended that is over since
   */
  chain(goOn: () => boolean): Promise<{
    end: 'through' | 'begun' | 'elsewhere'
    endOfDay: { number: string; hash: string } | null
    behindMs: number
  }>
  /** On a clock that only goes forward. */
  elapsedMs(): number
  /** Writes a head where it is kept outside the database. */
  onEndOfDay(head: { number: string; hash: string }): void
  showBehind(behindMs: number): void
}

/** Keeps the logs' chain up with the logs. */
export interface Chaining {
  /** One round. @returns after how many milliseconds to begin the next */
  runOnce(): Promise<number>
  /** Ends a round that is under way: the daemon stops. */
  giveUp(): void
}

/** A round of a loop that takes long looks stuck: the next one goes on. */
const roundMaxMs = 20_000
const everyMs = 30_000

export function createChaining(deps: ChainingDeps): Chaining {
  let isGivenUp = false
  return {
    async runOnce() {
      const untilMs = deps.elapsedMs() + roundMaxMs
      const round = await deps.chain(() => !isGivenUp && deps.elapsedMs() < untilMs)
      if (round.endOfDay !== null) deps.onEndOfDay(round.endOfDay)
      deps.showBehind(round.behindMs)
      return round.end === 'begun' ? 0 : everyMs
    },
    giveUp() {
      isGivenUp = true
    },
  }
}
