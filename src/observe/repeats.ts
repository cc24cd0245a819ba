/** Repeats that were counted and not written. `lastMs` is in epoch milliseconds. */
interface CountedRepeats {
  times: number
  lastMs: number
}

type Write = (counted?: CountedRepeats) => void

const countedForMs = 60_000
const linesMax = 1_000

interface Line extends CountedRepeats {
  write: Write
  timer: NodeJS.Timeout
}

/** Writes the first of equal lines at once, and the repeats as one line per minute. */
export function createRepeatedLineLog() {
  const lines = new Map<string, Line>()

  function sumUp(key: string): void {
    const line = lines.get(key)
    if (line === undefined) return
    lines.delete(key)
    if (line.times === 0) return
    line.write(line)
    remember(key, line.write)
  }

  function remember(key: string, write: Write): void {
    lines.set(key, { times: 0, lastMs: 0, write, timer: setTimeout(() => sumUp(key), countedForMs).unref() })
  }

  return {
    tell(key: string, write: Write): void {
      const line = lines.get(key)
      if (line !== undefined) {
        line.times += 1
        line.lastMs = Date.now()
        return
      }
      write()
      if (lines.size < linesMax) remember(key, write)
    },
    flush(): void {
      for (const line of lines.values()) {
        clearTimeout(line.timer)
        if (line.times > 0) line.write(line)
      }
      lines.clear()
    },
  }
}
