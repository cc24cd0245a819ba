export interface OutboxHistoryDeps {
  /** The rows that waited before the first was ever captured. */
  readHistory(): Promise<{ rows: number } | null>
  /** Says where `outboxd status` finds it that the table has a history. */
  raise(detail: string): Promise<void>
  /** The history is through. */
  clear(): Promise<void>
  warn(event: string, fields: { count: number }): void
}

/** Minds a table with a history that was given to a ledger that knows nothing yet: all of it is sent, which is seldom meant. */
export interface OutboxHistory {
  /** Says so, where it is. */
  tell(): Promise<void>
  /** So many rows wait: once they are few the history is through. */
  sawWaiting(rows: number): Promise<void>
}

/** More rows than these, before anything was ever captured, are a history. */
const historyMin = 1_000

export function createOutboxHistory({ readHistory, raise, clear, warn }: OutboxHistoryDeps): OutboxHistory {
  let mayStand = true
  return {
    async tell() {
      const history = await readHistory().catch(() => null) // its database may be away
      if (history === null || history.rows <= historyMin) return
      warn('the outbox table has a history, and all of it is to be sent; outboxd adopt --start leaves it alone', {
        count: history.rows,
      })
      await raise(
        `${history.rows} rows waited in the outbox table before anything was captured, and all of them are to be sent`,
      )
    },
    async sawWaiting(rows) {
      if (!mayStand || rows > historyMin) return
      await clear()
      mayStand = false
    },
  }
}
