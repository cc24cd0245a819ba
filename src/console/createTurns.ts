import { Refused } from './errors.ts'

/** Does work when it is its turn. @throws Refused where too much waits for its turn already */
export type Turns = <T>(work: () => Promise<T>) => Promise<T>

/**
 * Makes what lets so much be done at once; the rest waits, in its order.
 *
 * @param waitingMax more than this is refused
 */
export function createTurns(atOnce: number, waitingMax: number): Turns {
  const { take } = createQueue(atOnce, waitingMax)
  return async (work) => {
    const give = await take()
    try {
      return await work()
    } finally {
      give()
    }
  }
}

export interface Queue {
  /** Waits for a turn. @returns what ends the turn, to be called once @throws Refused when too many wait */
  take(): Promise<() => void>
  /** Whether nobody has a turn. */
  isIdle(): boolean
}

/** The same for a turn whose end is told. */
export function createQueue(atOnce: number, waitingMax: number): Queue {
  let running = 0
  const waiting: (() => void)[] = []

  function give(): void {
    const next = waiting.shift()
    if (next === undefined) running -= 1
    else next()
  }

  return {
    async take() {
      if (running < atOnce) {
        running += 1
        return give
      }
      if (waiting.length >= waitingMax)
        throw new Refused(429, 'As much is under way already as can be done at once: try again in a moment.')
      await new Promise<void>((resolve) => waiting.push(resolve))
      return give
    },
    isIdle: () => running === 0,
  }
}
