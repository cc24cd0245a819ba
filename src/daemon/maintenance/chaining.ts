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
  /**
   * Verifies the blocks of the last day, from where the last part ended.
   *
   * @returns `through`, with the first difference if there is one
   */
  verifyLastDay(goOn: () => boolean): Promise<{ end: 'begun' } | { end: 'through'; broken: string | null }>
  /** Raises the problem of a broken chain, or ends it. */
  tellBroken(broken: string | null): Promise<void>
  /** On a clock that only goes forward. */
  elapsedMs(): number
  /** Writes a head where it is kept outside the database. */
  onEndOfDay(head: { number: string; hash: string }): void
  showBehind(behindMs: number): void
}

/** Keeps the logs' chain up with the logs, and verifies its last day: at the start, and each night as the chain begins another day. */
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
  let due: 'start' | 'night' | null = 'start'
  return {
    async runOnce() {
      const untilMs = deps.elapsedMs() + roundMaxMs
      const goOn = () => !isGivenUp && deps.elapsedMs() < untilMs
      const round = await deps.chain(goOn)
      if (round.endOfDay !== null) {
        deps.onEndOfDay(round.endOfDay)
        due = 'night'
      }
      deps.showBehind(round.behindMs)
      if (round.end === 'begun' || due === null) return round.end === 'begun' ? 0 : everyMs
      const verified = await deps.verifyLastDay(goOn)
      if (verified.end === 'begun') return 0
      // An instance that starts by day does not end what another found at night.
      if (verified.broken !== null || due === 'night') await deps.tellBroken(verified.broken)
      due = null
      return everyMs
    },
    giveUp() {
      isGivenUp = true
    },
  }
}
