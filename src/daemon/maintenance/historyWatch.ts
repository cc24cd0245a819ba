export interface HistoryWatchDeps {
  /** Looks whether the ledger's history is as it was agreed to; if not, everyone pauses from then on. */
  look(): Promise<{ kind: 'stands' | 'waits' } | { kind: 'found'; detail: string } | { kind: 'went-on' }>
  onFound(found: { detail: string }): void
  /** A declared standby was promoted: sending goes on. */
  onWentOn(): void
}

/** Watches for a ledger that has lost what was committed: its database was restored, or has failed over. */
export interface HistoryWatch {
  /** One look. @returns after how many milliseconds to look again */
  runOnce(): Promise<number>
}

const everyMs = 2_000

export function createHistoryWatch({ look, onFound, onWentOn }: HistoryWatchDeps): HistoryWatch {
  return {
    async runOnce() {
      const seen = await look()
      if (seen.kind === 'found') onFound(seen)
      if (seen.kind === 'went-on') onWentOn()
      return everyMs
    },
  }
}
