/** What keeps a budget from being spent though it has slots. */
export interface Starvation {
  part: 'permits' | 'token'
  /** For the operator. */
  detail: string
}

export type StarvationWatch = ReturnType<typeof watchStarvation>

/** Permits in a row that run out: more are no accident. */
const lapsedMax = 5
/** Tokens in a row that were over too soon: more are no accident. */
const outlivedMax = 3

/** Notices that the budget has slots and cannot be spent. */
export function watchStarvation() {
  let lapsed = 0
  let token: Starvation | null = null
  let outlived: Starvation | null = null
  return {
    /** @param left whether a request left with its permit; false if the permit had run out before */
    sawPermit(left: boolean): void {
      lapsed = left ? 0 : lapsed + 1
    },
    /**
     * With one request a window, a token that lasts no longer is over before the request that it was fetched for.
     *
     * @param lifetimeMs of a token that was fetched; null if it does not say
     */
    sawToken(lifetimeMs: number | null, { requests, windowMs }: { requests: number; windowMs: number }): void {
      token =
        lifetimeMs === null || requests > 1 || lifetimeMs > windowMs
          ? null
          : { part: 'token', detail: tokenDetail(lifetimeMs, windowMs) }
    },
    /** @param inARow tokens that were over before the service let a request in with them, without one that was not */
    sawOutlived(inARow: number, lifetimeMs: number): void {
      outlived = inARow < outlivedMax ? null : { part: 'token', detail: outlivedDetail(inARow, lifetimeMs) }
    },
    starving: (): Starvation[] =>
      [lapsed >= lapsedMax ? permits : null, token ?? outlived].filter((each) => each !== null),
  }
}

const permits: Starvation = {
  part: 'permits',
  detail: 'slots run out before a request can leave with them: the ledger’s database is far away or slow',
}

const tokenDetail = (lifetimeMs: number, windowMs: number) =>
  `a token lasts ${lifetimeMs / 1000} s, and with RATE_LIMIT_REQUESTS=1 the request for it may leave ${windowMs / 1000} s later`

const outlivedDetail = (inARow: number, lifetimeMs: number) =>
  `a token lasts ${lifetimeMs / 1000} s, and ${inARow} in a row were over before a request had been let in with them: it is too short for this limit and the way to the service; ask for longer ones, or look at TOKEN_EXPIRES_IN_UNIT`
