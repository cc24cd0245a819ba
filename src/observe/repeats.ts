/** Repeats that were counted and not written. `lastMs` is in epoch milliseconds. */
interface CountedRepeats {
  times: number
  lastMs: number
}

type Write = (counted?: CountedRepeats) => void

const countedForMs = 60_000
const linesMax = 1_000

/** Writes the first of equal lines at once. After a minute, the next one says how often it was repeated. */
export function createRepeatedLineLog() {
  const lines = new Map<string, CountedRepeats & { sinceMs: number; write: Write }>()
  return {
    tell(key: string, write: Write): void {
      const nowMs = performance.now()
      const line = lines.get(key)
      if (line !== undefined && nowMs - line.sinceMs < countedForMs) {
        Object.assign(line, { times: line.times + 1, lastMs: Date.now() })
        return
      }
      write(line?.times ? line : undefined)
      lines.delete(key)
      lines.set(key, { sinceMs: nowMs, times: 0, lastMs: 0, write })
      const [oldest] = lines.keys()
      if (lines.size > linesMax && oldest !== undefined) lines.delete(oldest)
    },
    flush(): void {
      for (const line of lines.values()) if (line.times > 0) line.write(line)
      lines.clear()
    },
  }
}
