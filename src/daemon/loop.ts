import { createWakeup, type Wakeup } from './wakeup.ts'

/** A piece of work that can be done again and again. */
export interface Part {
  /** One round. @returns after how many milliseconds to begin the next, unless woken before */
  runOnce(): Promise<number>
}

/** A part that does the same work at fixed times. */
export const every = (waitMs: number, work: () => Promise<unknown>): Part => ({
  async runOnce() {
    await work()
    return waitMs
  },
})

/** Takes every step, also after one that failed. @throws Error of the first that did */
export async function takeEach(steps: readonly (() => Promise<void>)[]): Promise<void> {
  const failures: unknown[] = []
  for (const step of steps) await step().catch((error: unknown) => failures.push(error))
  if (failures.length > 0) throw failures[0]
}

/** A part whose rounds follow each other: when they say, when woken, and after a failure with backoff. */
export interface Loop {
  readonly name: string
  /** Lets a round that has begun come to its end, and begins no other. */
  stop(): Promise<void>
}

export interface LoopDeps {
  name: string
  part: Part
  /** Begins a round as soon as possible; several wakes while one runs count as one. */
  wakeup: Wakeup
  succeeded(name: string): void
  /** A round threw; the next comes after a while. */
  failed(name: string, error: unknown): void
  /** How long that while may become. */
  backoffMaxMs: number
}

const backoffMinMs = 250

export function startLoop({ name, part, wakeup, succeeded, failed, backoffMaxMs }: LoopDeps): Loop {
  let stopped = false
  let failures = 0
  /** After a failure a wake does not count: whoever wakes cannot know that it would help. Only the end interrupts it. */
  const backoff = createWakeup()

  async function round(): Promise<number> {
    try {
      const waitMs = await part.runOnce()
      failures = 0
      succeeded(name)
      return waitMs
    } catch (error) {
      failures += 1
      failed(name, error)
      return Math.min(backoffMaxMs, backoffMinMs * 2 ** Math.min(failures - 1, 10))
    }
  }

  async function run(): Promise<void> {
    while (!stopped) {
      wakeup.reset()
      const waitMs = await round()
      if (waitMs <= 0) await new Promise(setImmediate)
      else if (!stopped) await (failures > 0 ? backoff : wakeup).sleep(waitMs)
    }
  }

  const running = run()
  return {
    name,
    stop() {
      stopped = true
      backoff.wake()
      wakeup.wake()
      return running
    },
  }
}
