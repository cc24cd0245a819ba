/** A piece of work that is done again and again: when it says, when it is woken, and after a failure with backoff. */
export interface Loop {
  readonly name: string
  /** Does the work again as soon as possible; several calls while it runs count as one. */
  wake(): void
  /** Lets a round that has begun come to its end, and begins no other. */
  stop(): Promise<void>
}

export interface LoopDeps {
  name: string
  /** One round. @returns after how many milliseconds to begin the next, unless woken before */
  runOnce(): Promise<number>
  succeeded(name: string): void
  /** A round threw; the next comes after a while. */
  failed(name: string, error: unknown): void
  /** How long that while may become. */
  backoffMaxMs: number
}

const backoffMinMs = 250

export function startLoop({ name, runOnce, succeeded, failed, backoffMaxMs }: LoopDeps): Loop {
  let stopped = false
  let woken = false
  let failures = 0
  let interrupt = () => {}

  async function round(): Promise<number> {
    try {
      const waitMs = await runOnce()
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
      woken = false
      const waitMs = await round()
      if (waitMs <= 0) await new Promise(setImmediate)
      // After a failure a wake does not count: whoever wakes cannot know that it would help.
      else if (!stopped && (!woken || failures > 0)) await pause(waitMs)
    }
  }

  function pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms)
      interrupt = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }

  const running = run()
  return {
    name,
    wake() {
      woken = true
      if (failures === 0) interrupt()
    },
    stop() {
      stopped = true
      interrupt()
      return running
    },
  }
}

/** Takes every step, also after one that failed. @throws Error of the first that did */
export async function takeEach(steps: readonly (() => Promise<void>)[]): Promise<void> {
  const failures: unknown[] = []
  for (const step of steps) await step().catch((error: unknown) => failures.push(error))
  if (failures.length > 0) throw failures[0]
}
