import { Refused } from './errors.ts'

export interface Semaphore {
  /** @throws Refused if too many wait already */
  take(): Promise<Disposable>
  isIdle(): boolean
}

export function createSemaphore(atOnceMax: number, waitingMax: number): Semaphore {
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
      else throw new Refused(429, 'Too many requests are under way. Try again in a moment.')
      return { [Symbol.dispose]: end }
    },
    isIdle: () => running === 0,
  }
}
