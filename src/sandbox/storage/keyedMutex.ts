/** One at a time for each name: of two requests with the same key, the second looks only when the first is stored. */
export class KeyedMutex {
  readonly #last = new Map<string, Promise<void>>()

  /** Waits for the lock. @returns what releases it */
  async take(name: string): Promise<() => void> {
    const before = this.#last.get(name)
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#last.set(name, promise)
    await before
    return () => {
      if (this.#last.get(name) === promise) this.#last.delete(name)
      resolve()
    }
  }
}
