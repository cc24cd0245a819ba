/** Gives Node 24 Temporal, and Node 22, on which only the sandbox runs, what the sandbox uses besides. */
if (!('Temporal' in globalThis)) await import('temporal-polyfill/global')

/** What the sandbox uses of AsyncDisposableStack. */
class Cleanups implements AsyncDisposable {
  private cleanups: (() => void | PromiseLike<void>)[] = []

  defer(cleanup: () => void | PromiseLike<void>): void {
    this.cleanups.push(cleanup)
  }

  move(): Cleanups {
    const moved = new Cleanups()
    moved.cleanups = this.cleanups.splice(0)
    return moved
  }

  /** Calls the last first, and all of them. @throws the first error */
  async disposeAsync(): Promise<void> {
    const errors: unknown[] = []
    for (const cleanup of this.cleanups.splice(0).toReversed()) {
      try {
        await cleanup()
      } catch (error) {
        errors.push(error)
      }
    }
    if (errors.length > 0) throw errors[0]
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.disposeAsync()
  }
}

if (!('AsyncDisposableStack' in globalThis)) Object.assign(globalThis, { AsyncDisposableStack: Cleanups })
