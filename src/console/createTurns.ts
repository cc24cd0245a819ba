import { Refused } from './errors.ts'

/** Lets a few things run at once; the rest waits, first come first served. */
export interface Turns {
  /** @throws Refused if too many wait already */
  take(): Promise<Disposable>
  isIdle(): boolean
}

export function createTurns(atOnceMax: number, waitingMax: number): Turns {
  let running = 0
  const waiting: (() => void)[] = []

  function end(): void {
    const next = waiting.shift()
    if (next === undefined) running -= 1
    else next()
  }

  return {
    async take() {
      if (running < atOnceMax) running += 1
      else if (waiting.length < waitingMax) await new Promise<void>((resolve) => waiting.push(resolve))
      else throw new Refused(429, 'As much is under way already as can be done at once: try again in a moment.')
      return { [Symbol.dispose]: end }
    },
    isIdle: () => running === 0,
  }
}
