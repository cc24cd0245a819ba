/** Writes a line; `repeated`: so many like it have come since the one before, and were not written. 0: it is the first. */
export type Write = (repeated: number) => void

export interface Repeats {
  /** Writes a line at once, unless one just like it was written within the last minute: then it is counted. */
  tell(line: string, write: Write): void
  /** Says now what was counted: the process leaves. */
  flush(): void
}

const countedForMs = 60_000
/** So many different lines are remembered at once; beyond that every line is written. */
const linesMax = 1_000

interface Line {
  repeated: number
  write: Write
  timer: NodeJS.Timeout
}

/** Counts the lines that repeat each other: the first is written at once, the others as one line a minute. */
export function createRepeats(): Repeats {
  const lines = new Map<string, Line>()

  /** The minute is over: what came in it is said, and the next begins; after a minute without any the line is forgotten. */
  function sum(key: string): void {
    const line = lines.get(key)
    if (line === undefined) return
    lines.delete(key)
    if (line.repeated === 0) return
    line.write(line.repeated)
    remember(key, line.write)
  }

  function remember(key: string, write: Write): void {
    lines.set(key, { repeated: 0, write, timer: setTimeout(() => sum(key), countedForMs).unref() })
  }

  return {
    tell(key, write) {
      const line = lines.get(key)
      if (line !== undefined) {
        line.repeated += 1
        return
      }
      write(0)
      if (lines.size < linesMax) remember(key, write)
    },
    flush() {
      for (const { timer, repeated, write } of lines.values()) {
        clearTimeout(timer)
        if (repeated > 0) write(repeated)
      }
      lines.clear()
    },
  }
}
