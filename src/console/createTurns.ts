import { Refused } from './guard/refused.ts'

/** Does work when it is its turn. @throws Refused where too much waits for its turn already */
export type Turns = <T>(work: () => Promise<T>) => Promise<T>

/**
 * Makes what lets so much be done at once; the rest waits, in its order.
 *
 * @param waitingMax more than this is refused
 */
export function createTurns(atOnce: number, waitingMax: number): Turns {
  let running = 0
  const waiting: (() => void)[] = []

  async function takeTurn(): Promise<void> {
    if (running < atOnce) {
      running += 1
      return
    }
    if (waiting.length >= waitingMax)
      throw new Refused(429, 'Others are asking for as much as can be done at once: try again in a moment.')
    await new Promise<void>((resolve) => waiting.push(resolve))
  }

  function giveTurn(): void {
    const next = waiting.shift()
    if (next === undefined) running -= 1
    else next()
  }

  return async (work) => {
    await takeTurn()
    try {
      return await work()
    } finally {
      giveTurn()
    }
  }
}
