/** What was counted of a line and not written: how often it came, and when it last did, in ms since 1970. */
export interface Counted {
  times: number
  lastMs: number
}

/** Writes a line, with what was counted of it since the one before; undefined: it is the first. */
export type Write = (counted?: Counted) => void

export interface Repeats {
  /** Writes a line at once, unless one just like it was written within the last minute: then it is counted. */
  tell(line: string, write: Write): void
  /** Says now what was counted: the process leaves. */
  flush(): void
}

const countedForMs = 60_000
/** So many different lines are remembered at once; beyond that every line is written. */
const linesMax = 1_000

interface Line extends Counted {
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
    if (line.times === 0) return
    line.write(line)
    remember(key, line.write)
  }

  function remember(key: string, write: Write): void {
    lines.set(key, { times: 0, lastMs: 0, write, timer: setTimeout(() => sum(key), countedForMs).unref() })
  }

  return {
    tell(key, write) {
      const line = lines.get(key)
      if (line !== undefined) {
        line.times += 1
        line.lastMs = Date.now()
        return
      }
      write()
      if (lines.size < linesMax) remember(key, write)
    },
    flush() {
      for (const line of lines.values()) {
        clearTimeout(line.timer)
        if (line.times > 0) line.write(line)
      }
      lines.clear()
    },
  }
}
