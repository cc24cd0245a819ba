import { type StarvationWatch, watchStarvation } from './dispatch/starvation.ts'
import type { Log } from './observe/log.ts'
import type { Problems } from './store/store.ts'

/** Says where the budget is there and cannot be spent. */
export interface BudgetWatch {
  permits: StarvationWatch
  /** Judges a token that was fetched, by how long it lasts; null where it does not say. */
  tokenLasts(lifetimeMs: number | null, limit: { requests: number; windowMs: number }): void
}

interface BudgetWatchDeps {
  problems: Pick<Problems, 'raise' | 'clear'>
  log: Log
  /** Each host sees this for itself. */
  host: string
}

export function watchBudget({ problems, log, host }: BudgetWatchDeps): BudgetWatch {
  const notNoted = (error: unknown) => log.warn('a problem could not be noted', { error })
  const subjectOf = (what: 'permits' | 'token') => `${what} of ${host}`

  function begin(what: 'permits' | 'token', detail: string): void {
    log.warn(detail)
    problems.raise([{ kind: 'budget_starved', subject: subjectOf(what), detail, retryInMs: null }]).catch(notNoted)
  }

  function end(what: 'permits' | 'token'): void {
    problems.clear('budget_starved', [subjectOf(what)]).catch(notNoted)
  }

  return {
    permits: watchStarvation({
      began: () =>
        begin(
          'permits',
          'slots run out before a request can leave with them: is the ledger’s database far away or slow?',
        ),
      ended: () => end('permits'),
    }),
    // With one request a window, a token that lasts no longer is over before the request that it was fetched for.
    tokenLasts(lifetimeMs, { requests, windowMs }) {
      if (lifetimeMs === null || requests > 1 || lifetimeMs > windowMs) end('token')
      else
        begin(
          'token',
          `a token lasts ${lifetimeMs / 1000} s, and with RATE_LIMIT_REQUESTS=1 the request for it may leave ${windowMs / 1000} s later`,
        )
    },
  }
}
